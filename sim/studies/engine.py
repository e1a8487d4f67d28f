"""What a study needs of an engine, and which engine it gets.

Spark (`spark.py`) and DuckDB with a pool of processes (`duck.py`) run the same batch function over
the same runs, and the same SQL text over the same Parquet. Their results have the same few types:
whole numbers are BIGINT, others DOUBLE, whatever type an engine gives a sum or a quotient. So one
engine can go on with a study that the other has begun. On both a division by zero gives NULL.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from ottla.sim.studies.bronze import Work
from ottla.sim.studies.lake import SCRATCH
from ottla.sim.studies.marks import Said, Told
from ottla.sim.studies.masters import check, is_named
from ottla.sim.studies.names import DUCKDB_LACKS
from ottla.sim.studies.study import StudyError
from ottla.sim.sweeps.canary import Canary

AUTO, DUCKDB, SPARK = "auto", "duckdb", "spark"
ENGINES = (SPARK, DUCKDB, AUTO)
MANY_RUNS = 1_000_000
"""About how many short runs two cores simulate and judge in a day (docs/reference/long-runs.md)."""
JAVA = 17
"""The oldest version that Spark 4 runs on."""
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


class Engine(Protocol):
    """Runs and SQL. Its folders are whole or absent, and say what made them (`lake.making`)."""

    name: str
    described: str
    """Its name, its version, and the number of jobs if Ottla chooses it."""
    at_once: int
    """How many statements it gets at once."""

    def canary(self) -> Canary:
        """The result of the canary, run now where this engine runs seeds."""

    def simulate(self, work: Work, runs: range, into: Path, told: Told) -> None:
        """Write the events of these runs into the folder `into`. `told` is called with how many
        more runs are done, and how many rows they have."""

    def define(
        self, name: str, folders: Sequence[Path], columns: Mapping[str, str] | None = None
    ) -> None:
        """Make a view over Parquet folders. `columns`: its columns and their SQL types; columns
        that older files lack are NULL. None: all files have all columns."""

    def make(self, name: str, sql: str) -> None:
        """Make a table that lasts until it is dropped, or the engine is closed."""

    def drop(self, names: Iterable[str]) -> None:
        """Drop tables and views."""

    def keep(self, sql: str, into: Path) -> int:
        """Write the result of a query into the folder `into`; returns the number of rows."""

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The result of a query, for small ones."""

    def until(self, sql: str, enough: Callable[[dict[str, Any]], bool]) -> None:
        """Pass on the rows of a query, one by one in order, until it is `enough`. Only few rows are
        in memory at once. Rows may come again, from the first one."""

    def interrupt(self) -> None:
        """Interrupt what other threads run; they get an error."""

    def close(self) -> None:
        """Close it."""


def open_engine(
    name: str,
    *,
    master: str | None = None,
    jobs: int | None = None,
    scratch: Path | None = None,
    told: Callable[[str], None] = lambda _: None,
    runs: int = 0,
) -> Engine:
    """The engine of that name.

    *auto* is DuckDB, with three exceptions: `master` or the environment says where Spark is;
    `runs`, the size of the study, is more than one machine can do (`MANY_RUNS`); or DuckDB is
    missing. `told` is called with one line: why it is Spark although nobody asked for it, why it is
    not although the study is large, and why an engine repeats runs. `jobs`: how many processes
    simulate besides DuckDB, None: one; the number of Spark's cores is not set here. `scratch`: a
    folder that driver and executors see, for temporary files of the engine. Raises `StudyError`.
    """
    _check_words(name, master, jobs)
    if name == SPARK or master is not None:
        return _asked_spark(master, scratch, told)
    if name == AUTO and (why := _why_spark(runs)):
        try:
            engine = _asked_spark(None, scratch, told)
        except StudyError as error:  # for example a Java that is too new for Hadoop
            if is_named(None) and spark_lacks() is None:
                raise
            told(f"engine duckdb, not Spark: {str(error).removeprefix('engine spark: ')}")
        else:
            beside = f"; --jobs {jobs} is for DuckDB" if jobs is not None else ""
            told(f"engine spark: {why}{beside}")
            return engine
    return _duck(jobs or 1, scratch, told)


def _why_spark(runs: int) -> str | None:
    """Why *auto* prefers Spark although the command does not name it; None: it does not."""
    if is_named(None):
        return "the environment says where it is"
    if find_spec("duckdb") is None:
        return "DuckDB is missing"
    if runs > MANY_RUNS:
        return f"{runs:,} runs are more than one machine does in a day"
    return None


def _asked_spark(master: str | None, scratch: Path | None, said: Said) -> Engine:
    """Raises `StudyError`, which begins with the engine's name."""
    lacking = spark_lacks(master)
    if lacking is not None:
        raise StudyError(f"engine spark: {lacking}")
    return _spark(master, scratch, said)


def _spark(master: str | None, scratch: Path | None, said: Said) -> Engine:
    from ottla.sim.studies.spark import SETTINGS, WAREHOUSE, Spark, spark_session
    from ottla.sim.studies.spark_frames import located

    made = TemporaryDirectory(prefix=SCRATCH, dir=scratch)
    settings = {**SETTINGS, WAREHOUSE: located(Path(made.name))}
    try:
        return Spark(spark_session(master, settings), made, said)
    except BaseException:
        made.cleanup()
        raise


def check_engine(name: str, master: str | None = None, jobs: int | None = None) -> None:
    """Raises `StudyError` as `open_engine` would, before a folder is bound to the study: options
    that contradict each other, or a named engine that is missing."""
    _check_words(name, master, jobs)
    if name == DUCKDB:
        if find_spec("duckdb") is None:
            raise StudyError(DUCKDB_LACKS)
    elif name == SPARK or master is not None:
        lacking = spark_lacks(master)
        if lacking is not None:
            raise StudyError(f"engine spark: {lacking}")
        check(master)


def _check_words(name: str, master: str | None, jobs: int | None) -> None:
    if name not in ENGINES:
        raise StudyError(f"no such engine: {name}; one of {', '.join(ENGINES)}")
    if name == DUCKDB and master is not None:
        raise StudyError(f"--master {master}: is for Spark; DuckDB has none")
    if name != DUCKDB and jobs is not None and (name == SPARK or master is not None):
        raise StudyError(f"--jobs {jobs}: is for DuckDB; Spark has cores of its own")


def _duck(jobs: int, scratch: Path | None, said: Said) -> Engine:
    from ottla.sim.studies.duck import Duck

    return Duck(jobs, scratch, said)


def spark_lacks(master: str | None = None) -> str | None:
    """What is missing for Spark on this machine, and what to install; None: nothing. A session
    elsewhere (Spark Connect) needs no Java here."""
    if find_spec("pyspark") is None:
        return "PySpark is missing: pip install 'ottla[spark]'"
    if find_spec("pandas") is None:  # PySpark does not bring it, and fails only when a sweep begins
        return "pandas is missing, which PySpark asks for: pip install 'ottla[spark]'"
    if (master or os.environ.get("SPARK_REMOTE", "")).startswith("sc://"):
        return None
    return java_lacks()


def java_lacks() -> str | None:
    """What is wrong with the Java that Spark would start, in one line; None: nothing."""
    home = os.environ.get("JAVA_HOME") or None  # an empty value counts as none, for Spark too
    java = which("java") if home is None else which("java", path=str(Path(home) / "bin"))
    ask = f"install a Java runtime of version {JAVA} or newer (Debian: openjdk-17-jre-headless)"
    if java is None:
        where = "" if home is None else f" in JAVA_HOME ({home})"
        return f"there is no Java{where}: {ask}"
    try:
        told = subprocess.run(  # noqa: S603 - the Java that Spark would start
            [java, "-version"], capture_output=True, text=True, check=False
        )
    except OSError:  # for example built for another machine
        return f"{java} cannot be run: {ask}"
    found = _VERSION.search(told.stderr + told.stdout)
    if found is None:
        return f"{java} does not print its version: {ask}"
    if int(found[1]) < JAVA:
        return f"{java} is Java {found[1]}: {ask}"
    return None
