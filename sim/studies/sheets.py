"""The SQL of a study: the statements that make silver and gold tables, read from `sql/`.

Blocks have the format of those of the invariants (`ottla.sim.invariants.statements`): a line `--
NAME: one row per what`, a line `-- COLUMN TYPE: meaning` for each column, the query, an empty line.
`-- view NAME: what it is` begins a view that later blocks of the file share. A block of only
comments is for people.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from ottla.sim.invariants import statements

SILVER, GOLD, JUDGING, QUANTILES = "silver", "gold", "judging", "quantiles"
_VIEW = "view "
_COLUMN = re.compile(r"(\w+) (BIGINT|BOOLEAN|DOUBLE|VARCHAR): (.*)")
_INVARIANTS_VIEWS = ("log_start", "canon", "cut_short", "erased")
"""Views of the invariants that silver tables need too."""


class Column(NamedTuple):
    """One column of a table."""

    name: str
    type: str
    """Its SQL type."""
    says: str
    """What it means, its unit, and when it is NULL."""


class Sheet(NamedTuple):
    """One statement."""

    name: str
    says: str
    """What one row is about."""
    shared: bool
    """Whether it is a view for later statements, not a table."""
    columns: tuple[Column, ...]
    """Its columns; none for a view."""
    text: str
    """The text of the query."""

    @property
    def types(self) -> dict[str, str]:
        """The SQL type of each column, by name."""
        return {each.name: each.type for each in self.columns}


@cache
def sheets(layer: str) -> tuple[Sheet, ...]:
    """The statements of *silver*, *gold*, *judging* or *quantiles*, each after those that it
    needs."""
    text = (files("ottla.sim.studies") / "sql" / f"{layer}.sql").read_text(encoding="utf-8")
    known = (
        Sheet(name, "", True, (), query)
        for name, query in statements.views()
        if layer == SILVER and name in _INVARIANTS_VIEWS
    )
    return (*known, *_sheets(text))


def sheet(layer: str, name: str) -> Sheet:
    """One statement. Raises LookupError."""
    for each in sheets(layer):
        if each.name == name:
            return each
    raise LookupError(f"no such table in {layer}: {name}")


def _sheets(text: str) -> Iterator[Sheet]:
    for block in text.split("\n\n"):
        lines = block.strip().splitlines()
        head = [line.removeprefix("--").strip() for line in lines if line.startswith("--")]
        if len(head) == len(lines):
            continue
        title, *columns = _paragraphs(head)
        name, _, says = title.removeprefix(_VIEW).partition(": ")
        query = "\n".join(lines[len(head) :]).removesuffix(";")
        told = [found.groups() for found in map(_COLUMN.fullmatch, columns) if found is not None]
        yield Sheet(
            name, says, title.startswith(_VIEW), tuple(Column(*each) for each in told), query
        )


def _paragraphs(head: list[str]) -> list[str]:
    """The paragraphs of the head: the title, and one for each column."""
    found = [head[0]]
    for line in head[1:]:
        if _COLUMN.fullmatch(line) is None:
            found[-1] += f" {line}"
        else:
            found.append(line)
    return found
