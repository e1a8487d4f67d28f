"""Blind sweeps: is a mutant noticed without any hint?

The kill matrix (`kills.py`) gives each sweep settings that fit the mutant. Here there are none:
every mutant, of the catalogue or planted, is swept as `ottla sim sweep` sweeps the broker. The
swarm draws all settings, the profile too. All sweeps begin at the same seed. A sweep stops at the
first seed that fails. The number of that seed is a single draw of a geometric distribution, not a
rate: both its mean and its deviation are about the seeds to kill. A sweep that goes to the end
gives a share, with its interval.

| what notices | what it is |
|---|---|
| an invariant | it does not hold |
| broke | an exception that is no verdict ended the run: the code is broken |
| did not end | more CPU than `LIMIT_S`, and without the mutant at most a tenth of it |
| does not import | the code with the mutant cannot be imported |

A seed that also fails without the mutant shows nothing about it. So each seed that fails is run
once more without the mutant, and counts only if that passes.

Each mutant has a process of its own, and a copy of the code if it was planted (`blind_child.py`);
`jobs` of them run at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

from ottla.sim.machine import trees
from ottla.sim.machine.processes import NobodyWaitsError
from ottla.sim.mutants.catalogue import Row
from ottla.sim.mutants.planted import Planted, PlantedError
from ottla.sim.settings.settings import RunConfig
from ottla.sim.sweeps.blind_child import HUNG, Seed
from ottla.sim.sweeps.blind_process import Child
from ottla.sim.sweeps.bounds import interval

FIRST = 3_000_000
"""The first seed: not among the seeds of the kill matrix, nor those that people try from 0."""
SEEDS = 300
LIMIT_S = 60.0
"""CPU seconds of one seed; without a mutant the longest of hundreds takes two or three."""
FAR_BELOW = 0.1
"""The part of the limit that a seed may need without the mutant, if it counts as hanging with
it."""
NO_IMPORT = "does not import"


@dataclass(frozen=True, slots=True)
class Target:
    """A mutant for a blind sweep: how to run it, and what to say of it."""

    id: str
    room: str
    breaks: str
    shows: str
    excuse: str
    """Why no plain sweep can notice it; empty: one should."""
    planted: Planted | None = None
    """None: a mutant of the catalogue, whose id is a setting."""

    @property
    def settings(self) -> str:
        """The settings of its sweep, in TOML: only the mutant."""
        return RunConfig(mutants="" if self.planted else self.id).told()

    def changes(self) -> trees.Changes:
        """The changed content of its files. Raises `PlantedError`."""
        if self.planted is None:
            return {}
        there = trees.content(self.planted.file)
        if there is None:
            raise PlantedError(f"{self.id}: there is no file {self.planted.file}")
        return {self.planted.file: self.planted.put_into(there.decode()).encode()}


def of_the_catalogue(row: Row) -> Target:
    """A mutant of the catalogue."""
    return Target(row.id, "catalogue", f"lacks {row.lacks}", row.conditions.why, row.blind)


def of_a_table(planted: Planted) -> Target:
    """A planted mutant."""
    return Target(planted.id, planted.room, planted.breaks, planted.shows, planted.excuse, planted)


@dataclass(frozen=True, slots=True)
class BlindKills:
    """What a blind sweep found out about one mutant."""

    id: str
    first: int
    """The first seed that was run."""
    seeds: int
    """How many seeds were run."""
    killed: int
    noticed: tuple[tuple[str, int], ...]
    """What noticed it, in how many of the killed seeds, the most frequent first."""
    failing: int | None
    """The first seed that killed it."""
    whole: bool
    """Whether it went on after the first seed that killed it, so that there is a share."""
    cpu_s: float = 0.0
    """CPU seconds of its seeds."""
    reason: str = ""
    """What was noticed first."""
    without: tuple[int, ...] = ()
    """Seeds that also fail without the mutant."""

    @property
    def number(self) -> int | None:
        """The number of the first seed that killed it, counted from 1."""
        return None if self.failing is None else self.failing - self.first + 1

    @property
    def share(self) -> tuple[float, float, float]:
        """Share of seeds that fail, with the ends of its 95 % interval."""
        return interval(self.killed, self.seeds)


class Sweep:
    """Blind sweeps of these seeds."""

    def __init__(
        self,
        seeds: range,
        *,
        to_the_end: bool = False,
        limit_s: float = LIMIT_S,
        told: Callable[[int], None] = lambda _: None,
    ):
        """`told` is called with the number of seeds run so far, of all mutants together."""
        self._seeds, self._to_the_end, self._limit = seeds, to_the_end, limit_s
        self._told, self._done = told, 0
        self._lock, self._of_plain = Lock(), Lock()
        self._plain_child: Child | None = None
        self._plain: dict[int, Seed] = {}
        self._children = list[Child]()
        self._over = False

    def kills(self, targets: Sequence[Target], jobs: int) -> Iterator[BlindKills]:
        """The result of each mutant, as they are done. After the last one, or when the caller
        stops, no process is left. Raises `PlantedError` and `OSError`."""
        with ThreadPoolExecutor(jobs) as pool:
            asked = [pool.submit(self.one, each) for each in targets]
            try:
                for each in as_completed(asked):
                    yield each.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                self.end()

    def one(self, target: Target) -> BlindKills:
        """The result of one mutant. Raises `PlantedError` and `OSError`."""
        changes = target.changes()
        found = _Found(target.id, self._seeds, self._to_the_end)
        seeds = iter(self._seeds)
        with TemporaryDirectory(prefix="ottla-") as folder:
            tree = trees.copied(Path(folder), changes) if changes else trees.package().parent
            while not found.over:  # a seed that does not end ends its process: begin another one
                with self._begun(tree, target.settings) as child:
                    if not child.ready:
                        found.no_import(child.last_words())
                        break
                    self._sweep(child, seeds, found)
        return found.kills()

    def end(self) -> None:
        """End every process that is running."""
        with self._lock:
            self._over = True
            children = [*self._children]
        for each in children:
            each.kill()
        if self._plain_child is not None:
            self._plain_child.close()

    def _sweep(self, child: Child, seeds: Iterator[int], found: _Found) -> None:
        for seed in seeds:
            result = child.run(seed)
            with self._lock:
                if self._over:
                    raise NobodyWaitsError
                self._done += 1
                done = self._done
            self._told(done)
            found.add(result, without=bool(result.noticed) and self._fails_without(result))
            if found.over or HUNG in result.noticed or child.ended:
                return

    def _fails_without(self, result: Seed) -> bool:
        """Whether a seed fails, or takes long, without the mutant as well."""
        with self._of_plain:
            if result.seed not in self._plain:
                if self._plain_child is None or self._plain_child.ended:
                    self._plain_child = self._begun(trees.package().parent, RunConfig().told())
                self._plain[result.seed] = self._plain_child.run(result.seed)
            plain = self._plain[result.seed]
        slow = HUNG in result.noticed and plain.cpu_s > FAR_BELOW * self._limit
        return slow or bool(plain.noticed)

    def _begun(self, tree: Path, settings: str) -> Child:
        child = Child(tree, settings, self._limit)
        with self._lock:
            self._children.append(child)
            if self._over:
                child.kill()
        return child


class _Found:
    """What has been found out about one mutant so far."""

    def __init__(self, id_: str, seeds: range, to_the_end: bool):
        self.over = False
        self._id, self._first, self._to_the_end = id_, seeds.start, to_the_end
        self._seeds, self._killed, self._left = 0, 0, len(seeds)
        self._noticed = Counter[str]()
        self._failing: int | None = None
        self._cpu_s, self._reason = 0.0, ""
        self._without: list[int] = []

    def add(self, result: Seed, *, without: bool) -> None:
        """Add one seed; `without`: it also fails without the mutant."""
        self._seeds += 1
        self._cpu_s += result.cpu_s
        if without:
            self._without.append(result.seed)
        elif result.noticed:
            self._kill(result.seed, result.noticed, result.reason)
        self.over = self._seeds == self._left or (bool(self._killed) and not self._to_the_end)

    def no_import(self, reason: str) -> None:
        """The code cannot be imported."""
        self._seeds = max(self._seeds, 1)
        self._kill(self._first, [NO_IMPORT], reason)

    def _kill(self, seed: int, noticed: Sequence[str], reason: str) -> None:
        self._noticed.update(noticed)
        self._killed += 1
        if self._failing is None:
            self._failing, self._reason = seed, reason

    def kills(self) -> BlindKills:
        """The result."""
        return BlindKills(
            self._id,
            self._first,
            self._seeds,
            self._killed,
            tuple(self._noticed.most_common()),
            self._failing,
            self._to_the_end,
            self._cpu_s,
            self._reason,
            tuple(self._without),
        )
