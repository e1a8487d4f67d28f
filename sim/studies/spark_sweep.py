"""A wave of runs on Spark: `spark.range` over run numbers, `mapInArrow`, Parquet.

A task is 25 runs: small, so that an executor that dies costs little, and no wave waits long for its
last one. Which task wrote what is settled by Spark's own commit of tasks, so one that ran twice
counts once.

A run that kills the Python it is run by fails its task, however often Spark tries that again, and
with the task the wave. So when a worker has crashed, the runs that were under way are run once
more, each as a job of its own; one whose worker crashes again has taken two along: in the wave that
is written then it is a row of kind *breakdown*. One that was killed by chance, or for want of
memory among many, lives the second time.
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
"""For so long after a crash nobody runs a suspect: most runs take less."""
_OTHERWISE = (
    "the same command goes on; if one of them kills its process, --engine duckdb finds it out"
)
_BY_CHANCE = "a worker crashed, and none of the runs under way does it alone"
_AGAIN = "; the wave is run again"


class Sweeper:
    """Simulates on a Spark session that `described` says more of; `said` hears why a wave is run
    again."""

    def __init__(self, session: Any, described: str, said: Said):
        self._session = session
        self._described = described
        self._say = said

    def simulate(self, work: Work, runs: range, into: Path, told: Told) -> None:
        """Events of these runs as the folder `into`; `told` hears how many more are over, and their
        rows. Raises `StudyError` when executors do not see it."""
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
                    suspects = marks.under_way()  # nobody knows them once marks are abandoned
                    deadly = self._deadly(work, suspects, marks) if crashed(error) else []
                    if not deadly and not (chance and crashed(error)):
                        raise StudyError(_swept_until(named(work, suspects), error)) from None
                    self._say(f"{killing(work, deadly) if deadly else _BY_CHANCE}{_AGAIN}")
                    chance = bool(deadly)  # by chance it was once, and not again and again
                    work = replace(work, deadly=(*work.deadly, *deadly))
                else:
                    return

    def _write(self, work: Work, runs: range, folder: Path, marks: Marks) -> None:
        asked = self._session.range(runs.start, runs.stop, 1, -(-len(runs) // TASK))
        simulated = partial(_simulated, work, str(marks.folder))
        write_parquet(asked.mapInArrow(simulated, _bronze()), folder)

    def _look(self, writing: Any, marks: Marks) -> None:
        """Until it is written. Raises what that raises."""
        try:
            while not writing.done():
                wait([writing], _LOOK_S)
                marks.look()
        except BaseException:
            self._session.interruptAll()  # or the thread goes on to the end of the wave
            raise
        writing.result()

    def _deadly(self, work: Work, suspects: list[int], marks: Marks) -> list[int]:
        """Those of the runs that were under way which kill a worker on their own, too."""
        # Spark calls a failed wave over while workers are at its runs: they must not kill a suspect
        # by what memory they have.
        marks.abandon()
        sleep(_SETTLE_S)
        return [each for each in suspects if self._is_deadly(work, each)]

    def _is_deadly(self, work: Work, run: int) -> bool:
        """Whether a run on its own kills its worker, too."""
        alone = self._session.range(run, run + 1, 1, 1).mapInArrow(partial(_alone, work), _bronze())
        try:
            alone.write.format("noop").mode("overwrite").save()
        except spark_errors() as error:
            if crashed(error):
                return True
            raise
        return False


def _bronze() -> Any:
    """The columns of bronze as Spark's type; the first one says the version (`versions.py`)."""
    from pyspark.sql.types import StructType

    columns = StructType.fromDDL(ddl(SCHEMA))
    columns.fields[0].metadata = {KEY: VERSION}
    return columns


def _swept_until(under_way: str, error: Exception) -> str:
    """What ended a wave, and what was under way."""
    told = f"engine spark: {in_one_line(error)}"
    return f"{told}; under way: {under_way}; {_OTHERWISE}" if under_way else told


def _simulated(work: Work, marks: str, asked: Iterator[Batch]) -> Iterator[Batch]:
    """One task: the events of the runs that it is asked for."""
    for batch in asked:
        yield from marked(work, batch.column(0).to_pylist(), marks)


def _alone(work: Work, asked: Iterator[Batch]) -> Iterator[Batch]:
    """One task, which marks nothing."""
    for batch in asked:
        yield from histories(work, batch.column(0).to_pylist())
