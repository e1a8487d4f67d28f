"""The engine for one machine: a pool of processes simulates, DuckDB runs the SQL.

DuckDB runs in this process and keeps its tables in memory, or on disk if they are too large. Every
result is cast to the types that both engines share (`engine.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ParamSpec, TypeVar

from ottla.sim.studies.bronze import Work
from ottla.sim.studies.lake import SCRATCH, making
from ottla.sim.studies.marks import Said, Told, marks_of
from ottla.sim.studies.names import DUCKDB_LACKS, KIND
from ottla.sim.studies.pool import COMPRESSION, Pool
from ottla.sim.studies.study import StudyError
from ottla.sim.sweeps.canary import Canary

_ROWS = 1_000
_BY_ZERO = ("ieee_floating_point_ops", "error_on_division_by_zero")
"""Without these settings (a version has some of them) a division by zero gives NULL."""
P = ParamSpec("P")
T = TypeVar("T")


def _plainly(method: Callable[P, T]) -> Callable[P, T]:
    """Turns an error of DuckDB into one line; an interruption is passed on."""

    @wraps(method)
    def called(*given: P.args, **named: P.kwargs) -> T:
        import duckdb

        try:
            return method(*given, **named)
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            raise StudyError(f"engine duckdb: {str(error).partition(chr(10))[0]}") from None

    return called


class Duck:
    """See `ottla.sim.studies.engine.Engine`. Raises `StudyError` without DuckDB."""

    name = "duckdb"
    at_once = 1  # all cores work on one query

    def __init__(self, jobs: int, scratch: Path | None = None, said: Said = lambda _: None):
        try:
            import duckdb
        except ImportError:
            raise StudyError(DUCKDB_LACKS) from None
        self.described = f"{self.name} {duckdb.__version__}, --jobs {jobs}"
        self._spill = TemporaryDirectory(prefix=SCRATCH, dir=scratch)
        self._connection = duckdb.connect(
            config={"threads": jobs, "temp_directory": self._spill.name}
        )
        self._connection.execute("SET preserve_insertion_order = false")
        for name in _BY_ZERO:
            with suppress(duckdb.CatalogException):  # 2.0 has one of them that it does not list
                self._connection.execute(f"SET {name} = false")
        self._pool = Pool(jobs, said)
        self._views: set[str] = set()

    def canary(self) -> Canary:
        """The canary's result in a process of the pool."""
        return self._pool.canary()

    def simulate(self, work: Work, runs: range, into: Path, told: Told) -> None:
        """Write the events of these runs into the folder `into`."""
        with making(into, self.described) as folder, marks_of(into, told) as marks:
            self._pool.simulate(work, runs, folder, marks)

    @_plainly
    def define(
        self, name: str, folders: Sequence[Path], columns: Mapping[str, str] | None = None
    ) -> None:
        """Make a view over Parquet folders."""
        globs = ", ".join(f"'{_quoted(each / '*.parquet')}'" for each in folders)
        files = f"read_parquet([{globs}], hive_partitioning = false, union_by_name = true)"
        told = "*"
        if columns is not None:
            found = {row[0] for row in self._all(f"DESCRIBE SELECT * FROM {files}")}
            told = ", ".join(
                f"CAST({each if each in found else 'NULL'} AS {kind}) AS {each}"
                for each, kind in columns.items()
            )
        self.drop([name])
        self._connection.execute(f"CREATE TEMP VIEW {name} AS SELECT {told} FROM {files}")
        self._views.add(name)

    @_plainly
    def make(self, name: str, sql: str) -> None:
        """Make a temporary table. Rows of histories are sorted by kind, because a statement needs
        few kinds and DuckDB skips blocks without them."""
        self.drop([name])
        columns = {row[0] for row in self._all(f"DESCRIBE {sql}")}
        made = f"SELECT * FROM (\n{sql}\n) ORDER BY {KIND}" if KIND in columns else sql
        self._connection.execute(f"CREATE TEMP TABLE {name} AS\n{made}")

    @_plainly
    def drop(self, names: Iterable[str]) -> None:
        """Drop tables and views."""
        for each in names:
            kind = "VIEW" if each in self._views else "TABLE"
            self._connection.execute(f"DROP {kind} IF EXISTS {each}")
            self._views.discard(each)

    @_plainly
    def keep(self, sql: str, into: Path) -> int:
        """Write the result of a query into the folder `into`; returns the number of rows."""
        with making(into, self.described) as folder:
            part = _quoted(folder / "part-0.parquet")
            told = (
                f"COPY ({self._asked(sql)}) TO '{part}' (FORMAT parquet, COMPRESSION {COMPRESSION})"
            )
            return int(self._all(told)[0][0])

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The result of a query, for small ones."""
        found: list[dict[str, Any]] = []

        def keep(row: dict[str, Any]) -> bool:
            found.append(row)
            return False

        self.until(sql, keep)
        return found

    @_plainly
    def until(self, sql: str, enough: Callable[[dict[str, Any]], bool]) -> None:
        """Pass on the rows of a query, one by one, until it is `enough`."""
        # Not through `_asked`: an outer query does not keep the order of the inner one.
        found = self._connection.execute(sql)
        columns = [each[0] for each in found.description]
        while rows := found.fetchmany(_ROWS):
            for row in rows:
                told = {name: _plain(value) for name, value in zip(columns, row, strict=True)}
                if enough(told):
                    return

    def interrupt(self) -> None:
        """Interrupt the running query."""
        self._connection.interrupt()

    def close(self) -> None:
        """Close the pool and the database."""
        self._pool.close()
        self._connection.close()
        self._spill.cleanup()

    def _asked(self, sql: str) -> str:
        """The query, in the types that both engines share."""
        columns = ", ".join(
            f'CAST("{name}" AS {_agreed(kind)}) AS "{name}"'
            for name, kind, *_ in self._all(f"DESCRIBE {sql}")
        )
        return f"SELECT {columns} FROM (\n{sql}\n)"

    def _all(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql).fetchall()


def _agreed(kind: str) -> str:
    if kind.endswith("INT") or kind == "INTEGER":
        return "BIGINT"
    return "DOUBLE" if kind == "FLOAT" or kind.startswith("DECIMAL") else kind


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
