"""The kill matrix: how many seeds until a mutant is caught, and by which invariant.

Each mutant is swept under its own settings (`catalogue.py`). Its figure is the number of seeds
until the first that fails, estimated from the share of seeds that do: with a share of p it takes
1/p on average. A share of a few hundred seeds is itself uncertain, so it comes with its interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

from ottla.sim.mutants.catalogue import BY_ID, Row
from ottla.sim.processes import go_on, processes
from ottla.sim.run import run
from ottla.sim.settings import RunConfig

Z = 1.96
"""Of a 95 % interval."""
PROFILE = "reference-strict"
"""What mutants are made of: it has no hole of its own (docs/decisions/0012)."""


@dataclass(frozen=True, slots=True)
class Kills:
    """What a sweep found of one mutant."""

    row: Row
    seeds: int
    killed: int
    invariants: tuple[tuple[str, int], ...]
    """Which noticed, in how many of the killed seeds, the most frequent first."""
    first: int | None
    """The first seed that caught it."""
    reason: str
    """What was seen there."""

    @property
    def share(self) -> tuple[float, float, float]:
        """Share of seeds that fail, with the ends of its 95 % Wilson interval."""
        return wilson(self.killed, self.seeds)

    @property
    def seeds_to_kill(self) -> float | None:
        """Seeds until the first kill, on average; None if none was seen."""
        return self.seeds / self.killed if self.killed else None


def wilson(hits: int, tries: int) -> tuple[float, float, float]:
    """A share and its 95 % interval (Wilson 1927).

    >>> [round(each, 3) for each in wilson(5, 100)]
    [0.05, 0.022, 0.112]
    """
    if not tries:
        return 0.0, 0.0, 1.0
    share = hits / tries
    spread = Z * sqrt(share * (1 - share) / tries + Z * Z / (4 * tries * tries))
    middle, scale = share + Z * Z / (2 * tries), 1 + Z * Z / tries
    return share, max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def settings_of(row: Row) -> RunConfig:
    """Under which settings a mutant is swept."""
    return RunConfig(profile=PROFILE, mutants=row.id).with_(**row.settings)


def matrix(ids: Sequence[str], seeds: int, jobs: int) -> Iterator[Kills]:
    """The kills of these mutants, as they are done. Raises `KeyError` for an unknown id."""
    rows = [BY_ID[each] for each in ids]
    if jobs == 1:
        for row in rows:
            yield kills(row, seeds)
        return
    with processes(jobs) as pool:
        yield from pool.map(kills, rows, [seeds] * len(rows))


def kills(row: Row, seeds: int, *, once: bool = False) -> Kills:
    """Sweep one mutant; with `once` until the first seed that catches it."""
    config = settings_of(row)
    found: Counter[str] = Counter()
    first: int | None = None
    reason = ""
    tried = killed = 0
    for seed in range(seeds):
        go_on()
        tried += 1
        outcome = run(seed, config)
        if outcome.anomalies:
            killed += 1
            found.update(dict.fromkeys((each.invariant for each in outcome.anomalies), 1))
            if first is None:
                first, reason = seed, outcome.reason
            if once:
                break
    return Kills(row, tried, killed, tuple(found.most_common()), first, reason)
