"""Shrinking: how many choices are left of a failing run, and how long that takes.

One failing seed of each mutant of the catalogue is shrunk, as a sweep under the mutant's own
settings finds it. Seconds are of CPU: what else the machine does should not decide how much is
tried.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

from bench.measure import Outcome, Report
from ottla.sim.mutants.catalogue import CATALOGUE, Row
from ottla.sim.run import Outcome as Run
from ottla.sim.run import run as run_seed
from ottla.sim.sweeps.kills import settings_of
from ottla.sim.sweeps.shrink import Shrinker
from ottla.sim.sweeps.shrink_run import replayer
from ottla.sim.sweeps.tape_file import Case

SECONDS = 60.0
"""Of CPU, at most, for one run; what `ottla sim shrink` takes if nothing else is said."""
DECISIONS = 15
"""Choices that are left, wanted in the median."""
FIRST = 2_000_000


@dataclass(slots=True)
class Plan:
    """How much is measured."""

    mutants: tuple[str, ...]
    seconds: float
    tries: int
    """Seeds that are looked at for one that fails."""


FULL = Plan(tuple(row.id for row in CATALOGUE), SECONDS, 200)
QUICK = Plan(("M01",), 2.0, 20)


@dataclass(slots=True)
class Shrunk:
    """What became of one run."""

    mutant: str
    before: int
    after: int
    seconds: float
    replays: int


def run(plan: Plan) -> Report:
    """All mutants of the plan that a seed shows."""
    rows = [row for row in CATALOGUE if row.id in plan.mutants]
    done = [each for each in (_shrunk(row, plan) for row in rows) if each is not None]
    left = sorted(each.after for each in done)
    spent = [each.seconds for each in done]
    told = " ".join(f"{each.mutant}:{each.before}>{each.after}" for each in done)
    before = median(each.before for each in done)
    note = f"{len(done)} runs of {len(rows)} mutants, {before:.0f} choices before; {left[-1]} most"
    outcomes = [
        Outcome("choices left, median", median(left), "", DECISIONS, note=note),
        Outcome(
            "seconds of CPU, median", median(spent), "s", SECONDS, note=f"at most {max(spent):.0f}"
        ),
        Outcome("replays, median", median(each.replays for each in done), "", note=told),
    ]
    return Report("shrinking", outcomes)


def _shrunk(row: Row, plan: Plan) -> Shrunk | None:
    found = _failing(row, plan.tries)
    if found is None:
        return None
    start = time.process_time()
    shrinker = Shrinker(
        Case(found.config, found.tape),
        replayer(found.anomalies[0]),
        lambda: time.process_time() - start > plan.seconds,
        lambda *_: None,
    )
    best = shrinker.run()
    spent = time.process_time() - start
    return Shrunk(row.id, len(found.tape), len(best.tape), spent, shrinker.replays)


def _failing(row: Row, tries: int) -> Run | None:
    config = settings_of(row)
    for seed in range(FIRST, FIRST + tries):
        found = run_seed(seed, config)
        if found.anomalies:
            return found
    return None
