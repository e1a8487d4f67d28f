"""The engine for a cluster: Spark, by DataFrames and SQL alone, so that Spark Connect serves too.

**Sweep.** `spark.range` over run numbers, `mapInArrow` with the batch function, Parquet. A task is
25 runs: small, so that an executor that dies costs little, and no wave waits long for its last one.
Which task wrote what is settled by Spark's own commit of tasks, so one that ran twice counts once.

**Tables that are made** are Parquet files beside the results, not cached views: the plan of a view
over a dozen other views is planned again with every query, and what is cached is gone with the
executor that has it. Half the time of the verdicts, over a million rows.

**What is set and what is not.** No master, unless one is asked for: `spark-submit --master` and
SPARK_REMOTE stand. The interpreter of workers is this one, unless PYSPARK_PYTHON says otherwise.
The package travels as a zip (`ship.py`).
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from importlib.resources import as_file, files
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ottla.sim.studies.bronze import SCHEMA, Batch, Work
from ottla.sim.studies.lake import SCRATCH, made, making
from ottla.sim.studies.marks import marked, marks_of
from ottla.sim.studies.ship import packed
from ottla.sim.studies.study import StudyError

TASK = 25
"""Runs of a task."""
COMPRESSION = "zstd"
_LOOK_S = 0.5
_LOCAL_SHUFFLE = 8
_STARTED_BY_OTHERS = frozenset({"SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"})
"""Set for a client of Spark Connect, and by spark-submit."""
QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # A driver remembers the plans of a thousand queries; those of verdicts are 0.5 MB each.
    "spark.sql.maxPlanStringLength": "10000",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
}


def spark_session(master: str | None, settings: Mapping[str, str]) -> Any:
    """A session where none is given by spark-submit or SPARK_REMOTE; or the one that is. Raises
    `StudyError`."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise StudyError("engine spark: PySpark is missing: pip install 'ottla[spark]'") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # A line of 7 kB of JSON for each query that is refused; what is wrong with it is raised anyway.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    builder = SparkSession.builder.appName("ottla study")
    remote = master is not None and master.startswith("sc://")
    if master is not None:
        builder = builder.remote(master) if remote else builder.master(master)
    if not remote and not _STARTED_BY_OTHERS.intersection(os.environ):
        # What a JVM is started with is for who starts it.
        for name, value in settings.items():
            builder = builder.config(name, value)
    with as_file(files("ottla.sim.studies") / "quiet.properties") as path:
        # Have a JVM that is started from here say nothing but errors, unless somebody wants more.
        os.environ.setdefault("SPARK_SUBMIT_OPTS", f"-Dlog4j2.configurationFile=file:{path}")
        return builder.getOrCreate()


class Spark:
    """See `ottla.sim.studies.engine.Engine`. Raises `StudyError` without PySpark."""

    name = "spark"

    def __init__(self, session: Any, scratch: Path | None = None):
        self.session = session
        """The Spark session: for what else is asked of it."""
        self._made = TemporaryDirectory(prefix=SCRATCH, dir=scratch)
        self._folders: dict[str, Path] = {}
        self._numbers = count()
        if session.conf.get("spark.master", "").startswith("local"):
            # 200 of them, the default, are 200 files a task where everything is on one machine.
            _set_unless_set(session, "spark.sql.shuffle.partitions", str(_LOCAL_SHUFFLE))
        self._shipped = TemporaryDirectory()  # executors fetch it when they begin: it stays
        session.addArtifacts(str(packed(Path(self._shipped.name))), pyfile=True)

    def simulate(self, work: Work, runs: range, into: Path, told: Callable[[int], None]) -> None:
        """Events of these runs as the folder `into`."""
        with making(into) as folder, marks_of(into, told) as marks, ThreadPoolExecutor(1) as thread:
            asked = self.session.range(runs.start, runs.stop, 1, -(-len(runs) // TASK))
            events = asked.mapInArrow(partial(_simulated, work, str(marks.folder)), _ddl(SCHEMA))
            writing = thread.submit(self._write, events, folder, COMPRESSION)
            try:
                while not writing.done():
                    wait([writing], _LOOK_S)
                    marks.look()
            except BaseException:
                self.session.interruptAll()  # or the thread goes on to the end of the wave
                raise
            writing.result()

    def define(
        self, name: str, folders: Sequence[Path], columns: Mapping[str, str] | None = None
    ) -> None:
        """A view over Parquet folders."""
        reader = self.session.read
        if columns is not None:
            reader = reader.schema(_ddl(columns))
        reader.parquet(*map(str, folders)).createOrReplaceTempView(name)

    def make(self, name: str, sql: str) -> None:
        """A view over Parquet files of its own."""
        self.drop([name])
        folder = Path(self._made.name) / f"{name}-{next(self._numbers)}"
        frame = self._asked(sql)
        self._write(frame, folder, "lz4")
        self.session.read.schema(frame.schema).parquet(str(folder)).createOrReplaceTempView(name)
        self._folders[name] = folder

    def drop(self, names: Iterable[str]) -> None:
        """Let tables and views go."""
        for each in names:
            self.session.catalog.dropTempView(each)
            folder = self._folders.pop(each, None)
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

    def keep(self, sql: str, into: Path) -> int:
        """What a query gives, as the folder `into`; how many rows that is."""
        with making(into) as folder:
            self._write(self._asked(sql), folder, COMPRESSION)
        found = made(into)
        return 0 if found is None else found.rows

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """What a query gives, where that is little."""
        return [row.asDict() for row in self._asked(sql).collect()]

    def each(self, queries: Sequence[str]) -> list[list[dict[str, Any]]]:
        """What each query gives, one after the other: four at once took a driver of 1 GB down."""
        return [self.rows(each) for each in queries]

    def close(self) -> None:
        """End the session."""
        self.session.stop()
        self._shipped.cleanup()
        self._made.cleanup()

    def _asked(self, sql: str) -> Any:
        """What a query gives, in the types that both engines agree on."""
        frame = self.session.sql(sql)
        return frame.selectExpr(
            *(f"CAST(`{name}` AS {_agreed(kind)}) AS `{name}`" for name, kind in frame.dtypes)
        )

    def _write(self, frame: Any, folder: Path, compression: str) -> None:
        (
            frame.write.mode("append")
            .option("compression", compression)
            .option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
            .parquet(str(folder))
        )


def _set_unless_set(session: Any, name: str, value: str) -> None:
    said = {row["key"] for row in session.sql("SET").collect()}
    if name not in said:
        session.conf.set(name, value)


def _agreed(kind: str) -> str:
    if kind in {"tinyint", "smallint", "int", "void"}:  # void: nothing but NULL
        return "bigint"
    return "double" if kind == "float" or kind.startswith("decimal") else kind


def _ddl(columns: Mapping[str, str]) -> str:
    """Spark's VARCHAR wants a length; a text without one is its STRING."""
    kinds = {"VARCHAR": "STRING"}
    return ", ".join(f"{name} {kinds.get(kind, kind)}" for name, kind in columns.items())


def _simulated(work: Work, marks: str, asked: Iterator[Batch]) -> Iterator[Batch]:
    """One task: the events of the runs that it is asked for."""
    for batch in asked:
        yield from marked(work, batch.column(0).to_pylist(), marks)
