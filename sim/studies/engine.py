"""What a study asks of an engine, and which one it gets.

Spark (`spark.py`) and DuckDB with a pool of processes (`duck.py`) run the same batch function over
the same runs, and the same SQL text over the same Parquet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ottla.sim.studies.bronze import Work
from ottla.sim.studies.study import StudyError

AUTO, DUCKDB, SPARK = "auto", "duckdb", "spark"
ENGINES = (SPARK, DUCKDB, AUTO)


class Engine(Protocol):
    """Runs and SQL. Folders it makes are whole or absent (`lake.making`)."""

    name: str

    def simulate(self, work: Work, runs: range, into: Path, told: Callable[[int], None]) -> None:
        """Events of these runs as the folder `into`. `told` hears how many more runs are over."""

    def define(
        self, name: str, folders: Sequence[Path], columns: Mapping[str, str] | None = None
    ) -> None:
        """A view over Parquet folders. `columns` says which there are to be, by name with their SQL
        type; one that older files lack is NULL. Without it files have all of them."""

    def make(self, name: str, sql: str) -> None:
        """A table that lasts until it is dropped, or the engine is closed."""

    def drop(self, names: Iterable[str]) -> None:
        """Let tables and views go."""

    def keep(self, sql: str, into: Path) -> int:
        """What a query gives, as the folder `into`; how many rows that is."""

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """What a query gives, where that is little."""

    def close(self) -> None:
        """Let everything go."""


def open_engine(
    name: str,
    *,
    master: str | None = None,
    jobs: int,
    told: Callable[[str], None] = lambda _: None,
) -> Engine:
    """The engine of that name; with *auto* `told` hears in one line why it is not Spark. `jobs` is
    how many processes simulate where that is ours to say. Raises `StudyError`."""
    if name not in ENGINES:
        raise StudyError(f"no such engine: {name}; one of {', '.join(ENGINES)}")
    if name == DUCKDB:
        from ottla.sim.studies.duck import Duck

        if master is not None:
            raise StudyError(f"--master {master}: is for Spark; DuckDB has none")
        return Duck(jobs)
    told("engine duckdb: Spark is not there yet")
    return open_engine(DUCKDB, jobs=jobs)
