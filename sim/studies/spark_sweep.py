"""A wave of runs on Spark: `spark.range` over run numbers, `mapInArrow`, Parquet.

A task has 25 runs: so few that an executor that dies costs little, and no wave waits long for its
last task. Spark's own commit of tasks decides which task wrote what, so a task that ran twice
counts once.

A run that kills its Python worker fails its task, however often Spark repeats that, and so the
wave. So if a worker has crashed, the runs that it may have been running are run once more, each as
a job of its own. If a run's worker crashes again, it has killed two: in the repeated wave it is a
row of kind *breakdown*. A run that was killed by chance, or because memory was short among many,
succeeds the second time.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any

from ottla.sim.studies.bronze import SCHEMA, Batch, Work, histories
from ottla.sim.studies.lake import making
from ottla.sim.studies.marks import Marks, Said, Told, killing, marked, marks_of, named, unseen
from ottla.sim.studies.spark_errors import crashed, in_one_line, spark_errors
from ottla.sim.studies.spark_frames import ddl, write_parquet
from ottla.sim.studies.study import StudyError
from ottla.sim.studies.versions import KEY, VERSION

TASK = 25
"""Runs of a task."""
_LOOK_S = 0.5
_SETTLE_S = 3.0
"""How many seconds after a crash no suspect is run: most runs take less."""
_OTHERWISE = (
    "the same command goes on; if one of them kills its process, --engine duckdb shows which"
)
_BY_CHANCE = "a worker crashed, and none of the runs under way does it alone"
_AGAIN = "; the wave is run again"


class Sweeper:
    """Simulates on a Spark session, which `described` describes; `said` is called with why a wave
    is repeated."""

    def __init__(self, session: Any, described: str, said: Said):
        self._session = session
        self._described = described
        self._say = said

    def simulate(self, work: Work, runs: range, into: Path, told: Told) -> None:
        """Write the events of these runs into the folder `into`; `told` is called with how many
        more are done, and their rows. Raises `StudyError` if executors do not see the folder."""
        chance = True
        with marks_of(into, told) as marks, ThreadPoolExecutor(1) as thread:
            while True:
                try:
                    with making(into, self._described) as folder:
                        writing = thread.submit(self._write, work, runs, folder, marks)
                        self._look(writing, marks)
                except spark_errors() as error:
                    if line := unseen(str(error)):
                        raise StudyError(line) from None
                    suspects = marks.under_way()  # unknown after the marks are abandoned
                    deadly = self._deadly(work, suspects, marks) if crashed(error) else []
                    if not deadly and not (chance and crashed(error)):
                        raise StudyError(_swept_until(named(work, suspects), error)) from None
                    self._say(f"{killing(work, deadly) if deadly else _BY_CHANCE}{_AGAIN}")
                    chance = bool(deadly)  # a crash by chance is accepted once, not repeatedly
                    work = replace(work, deadly=(*work.deadly, *deadly))
                else:
                    return

    def _write(self, work: Work, runs: range, folder: Path, marks: Marks) -> None:
        asked = self._session.range(runs.start, runs.stop, 1, -(-len(runs) // TASK))
        simulated = partial(_simulated, work, str(marks.folder))
        write_parquet(asked.mapInArrow(simulated, _bronze()), folder)

    def _look(self, writing: Any, marks: Marks) -> None:
        """Wait until it is written. Raises what that raises."""
        try:
            while not writing.done():
                wait([writing], _LOOK_S)
                marks.look()
        except BaseException:
            self._session.interruptAll()  # otherwise the thread would finish the wave
            raise
        writing.result()

    def _deadly(self, work: Work, suspects: list[int], marks: Marks) -> list[int]:
        """Those of the suspect runs that also kill a worker when they run alone."""
        # When Spark calls a wave failed, workers are still running it: their use of memory must not
        # kill a suspect.
        marks.abandon()
        sleep(_SETTLE_S)
        return [each for each in suspects if self._is_deadly(work, each)]

    def _is_deadly(self, work: Work, run: int) -> bool:
        """Whether a run alone kills its worker, too."""
        alone = self._session.range(run, run + 1, 1, 1).mapInArrow(partial(_alone, work), _bronze())
        try:
            alone.write.format("noop").mode("overwrite").save()
        except spark_errors() as error:
            if crashed(error):
                return True
            raise
        return False


def _bronze() -> Any:
    """The columns of bronze as Spark's type; the first one has the version (`versions.py`)."""
    from pyspark.sql.types import StructType

    columns = StructType.fromDDL(ddl(SCHEMA))
    columns.fields[0].metadata = {KEY: VERSION}
    return columns


def _swept_until(under_way: str, error: Exception) -> str:
    """What ended a wave, and which runs were running."""
    told = f"engine spark: {in_one_line(error)}"
    return f"{told}; under way: {under_way}; {_OTHERWISE}" if under_way else told


def _simulated(work: Work, marks: str, asked: Iterator[Batch]) -> Iterator[Batch]:
    """One task: the events of its runs."""
    for batch in asked:
        yield from marked(work, batch.column(0).to_pylist(), marks)


def _alone(work: Work, asked: Iterator[Batch]) -> Iterator[Batch]:
    """One task without marks."""
    for batch in asked:
        yield from histories(work, batch.column(0).to_pylist())
