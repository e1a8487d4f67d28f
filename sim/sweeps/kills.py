"""The kill matrix: how many seeds until a mutant is caught, and by which invariant.

Each mutant is swept under its own settings (`catalogue.py`). Its figure is the number of seeds
until the first that fails, estimated from the share of seeds that fail: with a share of p it takes
1/p on average. A share of a few hundred seeds is uncertain, so it comes with its interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ottla.sim.machine.processes import go_on, processes
from ottla.sim.mutants.catalogue import BY_ID, Row, of_plugins
from ottla.sim.run import run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.settings.settings_file import from_toml
from ottla.sim.sweeps.bounds import interval

CHUNK = 25
"""Seeds of one mutant that a process runs before it returns its results."""
PROFILE = "reference-strict"
"""The profile of mutants: it has no known hole of its own (docs/decisions/0012)."""


@dataclass(frozen=True, slots=True)
class Kills:
    """What a sweep found out about one mutant."""

    row: Row
    start: int
    """The first seed that was run."""
    seeds: int
    killed: int
    invariants: tuple[tuple[str, int], ...]
    """The invariants that noticed it, in how many of the killed seeds, the most frequent first."""
    failing: int | None = None
    """The first seed that failed; None: none did, or it was not kept."""
    broke: tuple[int, ...] = ()
    """Seeds whose run itself broke, which is a bug of the simulator and no kill."""

    @property
    def share(self) -> tuple[float, float, float]:
        """Share of seeds that fail, with the ends of its 95 % interval."""
        return interval(self.killed, self.seeds)

    @property
    def seeds_to_kill(self) -> float | None:
        """Seeds until the first kill, on average; None: there was none."""
        return self.seeds / self.killed if self.killed else None


def settings_of(row: Row, plugins: str = "") -> RunConfig:
    """The settings under which a mutant is swept: the swarm does not change those of its row.
    Raises `ConfigError` for the row of a plugin whose settings make no sense."""
    with_plugins = {"plugins": plugins} if plugins else {}
    return from_toml("", {"profile": PROFILE, "mutants": row.id, **with_plugins, **row.settings})


def matrix(
    ids: Sequence[str],
    seeds: range,
    jobs: int,
    told: Callable[[int], None] = lambda _: None,
    *,
    plugins: str = "",
) -> Iterator[Kills]:
    """The kills of these mutants, as they are done. `told` is called with the number of seeds run,
    of all mutants together. `plugins`: the setting of that name. Raises `KeyError` for an unknown
    id."""
    known = BY_ID | of_plugins(plugins)
    rows = [known[each] for each in ids]
    starts = range(seeds.start, seeds.stop, CHUNK)
    chunks = [range(start, min(start + CHUNK, seeds.stop)) for start in starts]
    todo = [(row, chunk) for row in rows for chunk in chunks]
    done, parts = 0, list[Kills]()
    for part in _all(todo, jobs, plugins):
        parts.append(part)
        done += part.seeds
        told(done)
        if len(parts) == len(chunks):
            yield _joined(parts)
            parts = []


def _all(todo: Sequence[tuple[Row, range]], jobs: int, plugins: str) -> Iterator[Kills]:
    one = partial(kills, plugins=plugins)
    if jobs == 1:
        for row, chunk in todo:
            yield one(row, chunk)
        return
    with processes(jobs) as pool:
        yield from pool.map(one, *zip(*todo, strict=True))


def _joined(parts: Sequence[Kills]) -> Kills:
    """One mutant's kills from those of its chunks, in the order of seeds."""
    noticed: Counter[str] = Counter()
    for part in parts:
        noticed.update(dict(part.invariants))
    return Kills(
        parts[0].row,
        parts[0].start,
        sum(part.seeds for part in parts),
        sum(part.killed for part in parts),
        tuple(noticed.most_common()),
        next((part.failing for part in parts if part.failing is not None), None),
        tuple(seed for part in parts for seed in part.broke),
    )


def kills(row: Row, seeds: range, *, once: bool = False, plugins: str = "") -> Kills:
    """Sweep one mutant; with `once` only until the first seed that catches it."""
    config = settings_of(row, plugins)
    found: Counter[str] = Counter()
    tried = killed = 0
    failing: int | None = None
    broke: list[int] = []
    for seed in seeds:
        go_on()
        tried += 1
        outcome = run(seed, config)
        if outcome.broke:
            broke.append(seed)
        elif outcome.anomalies:
            killed += 1
            failing = seed if failing is None else failing
            found.update(dict.fromkeys((each.invariant for each in outcome.anomalies), 1))
            if once:
                break
    return Kills(row, seeds.start, tried, killed, tuple(found.most_common()), failing, tuple(broke))
