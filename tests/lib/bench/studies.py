"""Studies: rows judged in SQL per second, and what Spark costs a sweep.

The same runs are simulated three times: by `ottla sim sweep`, which keeps a line a run, by a study
with its pool of processes, and by a study on Spark. The studies keep every row of every history.
Then the SQL of the invariants judges all runs on each engine. Wall time is measured, because that
is how long a user waits, so other work on the machine changes it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.measure import Outcome, Report
from ottla.sim.studies.bronze import Work
from ottla.sim.studies.engine import Engine, open_engine, spark_lacks
from ottla.sim.studies.judging import judge_waves
from ottla.sim.studies.lake import Lake, made
from ottla.sim.studies.plan import plan_of
from ottla.sim.studies.study import parse
from ottla.sim.sweeps.sweep import sweep
from ottla.sim.sweeps.sweep_folder import Plan as Sweep

JOBS = 2
SPARK_ROWS, DUCKDB_ROWS = 50_000, 500_000
"""Rows judged per second that are wanted, on two cores."""
SLOWER = 1.25
"""Wall time of a sweep on Spark over that of a plain one, for sweeps of five minutes."""
STUDY = """
name = "bench"
title = "What a study costs"
question = "How fast?"
seeds = 1
swarm = true
[settings]
profile = "reference-strict"
load_ms = 2_000
records = 30
fault_every_ms = 300
[answer]
sql = "SELECT COUNT(*) AS runs FROM runs"
text = "{runs} runs."
"""


@dataclass(slots=True)
class Plan:
    """How much is measured."""

    swept: int
    """Seeds of each sweep."""
    judged_waves: int
    """Waves whose runs are judged, at most 1,000 runs each."""


FULL = Plan(swept=10_000, judged_waves=4)
QUICK = Plan(swept=20, judged_waves=1)


def run(plan: Plan) -> Report:
    """All of it; without Spark what DuckDB does alone."""
    outcomes = []
    with TemporaryDirectory() as folder:
        plain = _timed(lambda: _plain(plan))
        load = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        note = f"{plan.swept / plain:.1f} seeds/s in {plain:.0f} s, {load}"
        outcomes.append(Outcome("plain sweep", plan.swept / plain, "seeds/s", note=note))
        for name, target in (("duckdb", DUCKDB_ROWS), ("spark", SPARK_ROWS)):
            if name == "duckdb" or spark_lacks() is None:
                with _opened(name, Path(folder)) as engine:
                    outcomes += _measured(engine, plan, Path(folder) / name, plain, target)
    return Report("studies", outcomes)


def _measured(
    engine: Engine, plan: Plan, folder: Path, plain: float, target: float
) -> Iterator[Outcome]:
    lake = Lake(folder, plan_of(parse(STUDY), plan.swept, 0, share=1))
    waves = list(enumerate(lake.plan.waves()))

    def simulate() -> None:
        work = Work(lake.plan.study, 0, 1)
        for number, runs in waves:
            engine.simulate(work, runs, lake.bronze(number), lambda *_: None)

    taken = _timed(simulate)
    slower = SLOWER if engine.name == "spark" else None
    note = f"{plan.swept / taken:.1f} seeds/s in {taken:.0f} s, every row kept"
    over = f"sweep of a study over a plain one, {engine.name}"
    yield Outcome(over, taken / plain, "x", slower, note=note)
    folders = [lake.bronze(number) for number, _ in waves[: plan.judged_waves]]
    rows = sum(found.rows for found in map(made, folders) if found is not None)
    # A session that has judged before has its programs compiled; a long study is such a session.
    cold, warm = (_timed(lambda: _judged(engine, folders, lake)) for _ in range(2))
    note = f"{rows:,} rows in {warm:.0f} s, {cold:.0f} s the first time"
    yield Outcome(
        f"rows judged per second, {engine.name}", rows / warm, "", target, at_least=True, note=note
    )
    lake.close()


def _judged(engine: Engine, folders: list[Path], lake: Lake) -> None:
    judge_waves(engine, folders, lake.verdicts(0))


def _plain(plan: Plan) -> None:
    settings = parse(STUDY).variants[0].config.told()
    assert sum(1 for _ in sweep(Sweep(0, plan.swept, settings), JOBS)) == plan.swept


def _timed(do: Callable[[], None]) -> float:
    start = time.perf_counter()
    do()
    return time.perf_counter() - start


@contextmanager
def _opened(name: str, folder: Path) -> Iterator[Engine]:
    master, jobs = (f"local[{JOBS}]", None) if name == "spark" else (None, JOBS)
    engine = open_engine(name, master=master, jobs=jobs, scratch=folder)
    try:
        yield engine
    finally:
        engine.close()
