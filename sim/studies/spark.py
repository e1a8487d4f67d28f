"""The engine for a cluster: Spark, only by DataFrames and SQL, so that Spark Connect works too.

**Sweep.** `spark_sweep.py`.

**Tables that are made** are Parquet files beside the results, not cached views. The plan of a view
over a dozen other views is made again for every query, and cached data is lost with its executor.
The files are bucketed by run, and nearly every join, window and aggregate of silver and of the
invariants has the run among its keys, so most queries move no row between tasks. Rows of histories
are sorted by kind in them: a statement needs few kinds, and with Parquet's page index it reads
little else.

**Settings.** There is no master unless one is asked for: `spark-submit --master` and SPARK_REMOTE
apply. Workers use this interpreter, unless PYSPARK_PYTHON says otherwise. The package is sent as a
zip (`ship.py`).
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial, wraps
from importlib.resources import as_file, files
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import uuid4

from ottla.sim.studies.bronze import Batch, Work
from ottla.sim.studies.jvm import options
from ottla.sim.studies.lake import cost, making
from ottla.sim.studies.marks import Said, Told
from ottla.sim.studies.masters import check, cores
from ottla.sim.studies.names import KIND
from ottla.sim.studies.run_interruptible import run_interruptible
from ottla.sim.studies.ship import packed
from ottla.sim.studies.spark_errors import in_one_line, spark_errors
from ottla.sim.studies.spark_frames import ddl, located, write_parquet
from ottla.sim.studies.spark_sweep import Sweeper
from ottla.sim.studies.study import StudyError
from ottla.sim.sweeps.canary import Canary, canary

_KEY = "run_id"
_CANARY = {
    "mutant": "VARCHAR",
    "noticed": "BOOLEAN",
    "invariant": "VARCHAR",
    "reason": "VARCHAR",
}
"""Columns of the canary's one row."""
_MOST_BUCKETS = 64
_EVERYWHERE = {
    # Data bucketed by run needs no shuffle for a join on run and another key.
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    # Variants are broadcast; data of runs needs no shuffle.
    "spark.sql.autoBroadcastJoinThreshold": "65536",
}
_LOCAL = {
    # Plans made again after every stage: more work than they save on tables of a few million rows.
    "spark.sql.adaptive.enabled": "false",
}
_ANSI = "spark.sql.ansi.enabled"
_BY_ZERO = re.compile(r"\[(DIVIDE|REMAINDER)_BY_ZERO\b")
_STARTED_BY_OTHERS = frozenset({"SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"})
"""Set for a client of Spark Connect, and by spark-submit."""
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # A driver keeps the plans of a thousand queries; those of verdicts are 0.5 MB each.
    "spark.sql.maxPlanStringLength": "10000",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    # By default a hundred compiled programs are kept, fewer than one batch has stages: the next
    # batch would compile all of them again.
    "spark.sql.codegen.cache.maxEntries": "500",
}
"""Settings for a JVM that is started here."""
WAREHOUSE = "spark.sql.warehouse.dir"
"""A folder that Spark makes with its first table; by default in the working folder."""


def spark_session(master: str | None, settings: Mapping[str, str]) -> Any:
    """The session of spark-submit or SPARK_REMOTE, or a new one if there is none. Raises
    `StudyError`."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise StudyError("engine spark: PySpark is missing: pip install 'ottla[spark]'") from None
    check(master)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # It logs a line of 7 kB of JSON for each refused query, whose error is raised anyway.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    # From 4.3 on PySpark warns about version 3 of pandas, which is installed but not used here.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    with as_file(files("ottla.sim.studies") / "quiet.properties") as path:
        # A JVM that is started here logs only errors, unless the user asks for more.
        os.environ.setdefault("SPARK_SUBMIT_OPTS", options(path, settings))
        try:
            # If the main thread opens it, PySpark handles Ctrl-C itself.
            return run_interruptible(
                _builder(SparkSession, master, settings).getOrCreate, lambda: None
            )
        except ImportError as error:  # PySpark lacks a part of Connect's client
            lacking = str(error).partition("\n")[0].rstrip(".")
            raise StudyError(f"engine spark: {lacking}: pip install 'pyspark[connect]'") from None
        except spark_errors() as error:
            raise StudyError(f"engine spark: {in_one_line(error)}") from None


def _builder(sessions: Any, master: str | None, settings: Mapping[str, str]) -> Any:
    """The builder for PySpark's session."""
    builder = sessions.builder.appName("ottla study")
    remote = master is not None and master.startswith("sc://")
    if master is not None:
        builder = builder.remote(master) if remote else builder.master(master)
    if not remote and not _STARTED_BY_OTHERS.intersection(os.environ):
        # Settings of a JVM belong to whoever starts it.
        for name, value in settings.items():
            builder = builder.config(name, value)
    return builder


P = ParamSpec("P")
T = TypeVar("T")


def _interruptible(
    method: Callable[Concatenate[Spark, P], T],
) -> Callable[Concatenate[Spark, P], T]:
    @wraps(method)
    def called(self: Spark, /, *given: P.args, **named: P.kwargs) -> T:
        try:
            return run_interruptible(partial(method, self, *given, **named), self.interrupt)
        except spark_errors() as error:
            raise StudyError(f"engine spark: {in_one_line(error)}") from None

    return called


class Spark:
    """See `ottla.sim.studies.engine.Engine`. Raises `StudyError` without PySpark."""

    name = "spark"
    at_once = 2  # one is planned while another runs; four killed a driver of 1 GB

    def __init__(
        self,
        session: Any,
        scratch: TemporaryDirectory[str] | None = None,
        said: Said = lambda _: None,
    ):
        self._said = said
        self.session = session
        """The Spark session, for other uses."""
        self.described = f"{self.name} {session.version}"
        self._made = TemporaryDirectory() if scratch is None else scratch
        self._tables: dict[str, str] = {}
        self._mine = f"ottla_{uuid4().hex}"
        self._lenient = Lock()  # the setting holds for all threads
        self._numbers = count()  # safe for several threads, which a generator is not
        self._shipped = TemporaryDirectory()  # executors fetch from it when they start
        self._prepare()

    @_interruptible
    def _prepare(self) -> None:
        """Set the settings, and send the package."""
        session = self.session
        _set_unless_set(session, _EVERYWHERE)
        master = session.conf.get("spark.master", "")
        if master.startswith("local"):
            # The default of 200 partitions makes 200 files per task if all is on one machine.
            shuffled = {"spark.sql.shuffle.partitions": str(cores(master))}
            _set_unless_set(session, _LOCAL | shuffled)
        partitions = int(session.conf.get("spark.sql.shuffle.partitions"))
        self._buckets = min(partitions, _MOST_BUCKETS)
        before = sys.path.copy()
        session.addArtifacts(str(packed(Path(self._shipped.name))), pyfile=True)
        # PySpark also puts it on the driver's path, before the installed package. Then processes
        # spawned by the driver's program would find only what executors need.
        sys.path[:] = [place for place in sys.path if place in before]

    @_interruptible
    def canary(self) -> Canary:
        """The canary's result in a task of its own."""
        (row,) = self.session.range(0, 1, 1, 1).mapInArrow(_canary, ddl(_CANARY)).collect()
        return Canary(**row.asDict())

    @_interruptible
    def simulate(self, work: Work, runs: range, into: Path, told: Told) -> None:
        """Write the events of these runs into the folder `into`. Raises `StudyError` if executors
        do not see it."""
        Sweeper(self.session, self.described, self._said).simulate(work, runs, into, told)

    @_interruptible
    def define(
        self, name: str, folders: Sequence[Path], columns: Mapping[str, str] | None = None
    ) -> None:
        """Make a view over Parquet folders."""
        reader = self.session.read
        if columns is not None:
            reader = reader.schema(ddl(columns))
        reader.parquet(*map(located, folders)).createOrReplaceTempView(name)

    @_interruptible
    def make(self, name: str, sql: str) -> None:
        """Make a view over a table of its own, Parquet files in buckets."""
        self.drop([name])
        table = f"{self._mine}_{next(self._numbers)}"
        frame = self._asked(sql)
        writer = frame.write.format("parquet").option("compression", "lz4")
        writer = writer.option("path", located(Path(self._made.name) / table))
        if _KEY in frame.columns:
            writer = writer.bucketBy(self._buckets, _KEY)
            if KIND in frame.columns:
                writer = writer.sortBy(KIND)
        writer.saveAsTable(table)
        self._tables[name] = table
        self.session.table(table).createOrReplaceTempView(name)

    @_interruptible
    def drop(self, names: Iterable[str]) -> None:
        """Drop tables and views."""
        for each in names:
            self.session.catalog.dropTempView(each)
            table = self._tables.pop(each, None)
            if table is not None:
                self.session.sql(f"DROP TABLE {table}")
                shutil.rmtree(Path(self._made.name) / table, ignore_errors=True)

    @_interruptible
    def keep(self, sql: str, into: Path) -> int:
        """Write the result of a query into the folder `into`; returns the number of rows."""
        with making(into, self.described) as folder:
            write_parquet(self._asked(sql), folder)
        found = cost(into)
        return 0 if found is None else found.rows

    @_interruptible
    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The result of a query, for small ones."""
        return self._dividing(lambda: [row.asDict() for row in self._asked(sql).collect()])

    @_interruptible
    def until(self, sql: str, enough: Callable[[dict[str, Any]], bool]) -> None:
        """Pass on the rows of a query, one by one, until it is `enough`."""

        def hand_on() -> None:
            for row in self._asked(sql).toLocalIterator():
                if enough(row.asDict()):
                    return

        self._dividing(hand_on)

    def _dividing(self, work: Callable[[], T]) -> T:
        """The result of `work`, with NULL for a division by zero, as in DuckDB. Spark has no
        setting for just that: its setting also hides other errors, such as the overflow of a sum.
        So the work is repeated with the setting only if it has failed with that error."""
        try:
            return work()
        except spark_errors() as error:
            if _BY_ZERO.search(str(error)) is None:
                raise
        with self._lenient:
            kept = self.session.conf.get(_ANSI)
            self.session.conf.set(_ANSI, "false")
            try:
                return work()
            finally:
                self.session.conf.set(_ANSI, kept)

    def interrupt(self) -> None:
        """Interrupt all running queries."""
        self.session.interruptAll()

    def close(self) -> None:
        """End the session."""
        with suppress(*spark_errors()):  # its JVM may be gone already
            self.session.stop()
        self._shipped.cleanup()
        self._made.cleanup()

    def _asked(self, sql: str) -> Any:
        """The result of a query, in the types that both engines share."""
        frame = self.session.sql(sql)
        return frame.selectExpr(
            *(f"CAST(`{name}` AS {_agreed(kind)}) AS `{name}`" for name, kind in frame.dtypes)
        )


def _set_unless_set(session: Any, settings: Mapping[str, str]) -> None:
    said = {row["key"] for row in session.sql("SET").collect()}
    for name, value in settings.items():
        if name not in said:
            session.conf.set(name, value)


def _agreed(kind: str) -> str:
    if kind in {"tinyint", "smallint", "int", "void"}:  # void: only NULL
        return "bigint"
    return "double" if kind == "float" or kind.startswith("decimal") else kind


def _canary(asked: Iterator[Batch]) -> Iterator[Batch]:
    """One task: runs the canary once for each row."""
    import pyarrow as pa

    for batch in asked:
        found = [canary()._asdict() for _ in batch.column(0)]
        yield pa.RecordBatch.from_pylist(found)
