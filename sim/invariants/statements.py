"""The invariants as SQL text that DuckDB and Spark 4 both run unchanged, and how to run it.

`sql/` has one statement per invariant over the table `ev`. Its rows are those of histories, with
`run_id` and `seed` in front. A statement returns a row `run_id, n` for each run in which the
invariant does not hold, and none for the others: it judges a whole sweep at once. Views that the
statements share come first. Figures (see `numbers.py`) return their value as `n`.

The dialect is what both engines support: windows, common table expressions, joins on equality with
at most one more comparison. No lists, no QUALIFY, no NULLS in LAG, no aggregates of one engine
only. Nothing here imports a database: the caller passes a connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, Protocol

from ottla.sim.history.history import COLUMNS, Event

FILES = (
    "0_views.sql",
    "clients.sql",
    "controller.sql",
    "producers.sql",
    "raft.sql",
    "replicas.sql",
    "metadata.sql",
    "in_sync.sql",
    "readers.sql",
    "figures.sql",
)
_TEXTS = frozenset({"kind", "code"})
_VIEW = "view "
_HEAD_TYPES = ("BIGINT", "BIGINT")


class Statement(NamedTuple):
    """One query, of an invariant, a figure or a view."""

    name: str
    """Id of an invariant, name of a figure, or name of a view."""
    text: str


class Connection(Protocol):
    """What is needed of a database: DuckDB's connection, or anything like it."""

    def execute(self, query: str, parameters: Any = ...) -> Any:
        """Run one statement; the result has `fetchall`."""


@cache
def views() -> tuple[Statement, ...]:
    """The queries of the shared views, each after those that it needs."""
    return tuple(each for each in _read() if each.name in _view_names())


@cache
def queries() -> dict[str, str]:
    """The query of each invariant and figure, by name."""
    return {name: text for name, text in _read() if name not in _view_names()}


@cache
def _view_names() -> tuple[str, ...]:
    return tuple(name for name, _ in _read() if not name.startswith(("sim-", "losses")))


@cache
def _read() -> tuple[Statement, ...]:
    folder = files("ottla.sim.invariants") / "sql"
    found = []
    for name in FILES:
        for block in (folder / name).read_text(encoding="utf-8").split("\n\n"):
            lines = block.strip().splitlines()
            if not lines[-1].startswith("--"):
                title = lines[0].removeprefix("-- ").removeprefix(_VIEW).partition(":")[0]
                found.append(Statement(title, "\n".join(lines[1:]).removesuffix(";")))
    return tuple(found)


def table(name: str = "ev") -> str:
    """The statement that creates an empty table of events."""
    columns = ["run_id BIGINT", "seed BIGINT", *(f"{each} {_type(each)}" for each in COLUMNS)]
    return f"CREATE OR REPLACE TABLE {name} ({', '.join(columns)})"


def _type(column: str) -> str:
    return "VARCHAR" if column in _TEXTS else "BIGINT"


def table_rows(run_id: int, seed: int, events: Iterable[Event]) -> Iterator[tuple[Any, ...]]:
    """The rows of one run, with the columns of that table."""
    for event in events:
        yield (run_id, seed, *event)


def load(connection: Connection, runs: Sequence[Sequence[Event]]) -> None:
    """Create table `ev` and fill it with these runs; their places in the sequence are their ids.

    Needs DuckDB: columns are passed as lists. A sweep reads Parquet files.
    """
    connection.execute(table())
    rows = [row for number, run in enumerate(runs) for row in table_rows(number, number, run)]
    columns = [list(column) for column in zip(*rows, strict=True)]
    if columns:
        types = [*_HEAD_TYPES, *(_type(each) for each in COLUMNS)]
        lists = ", ".join(f"unnest(CAST(? AS {each}[]))" for each in types)
        connection.execute(f"INSERT INTO ev SELECT {lists}", columns)


def prepare(connection: Connection) -> None:
    """Create the shared views as temporary tables, so that they are computed once for all queries.
    An engine without such tables uses cached views."""
    for name, text in views():
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS\n{text}")
