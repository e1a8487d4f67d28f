"""The SQL of a study: which statements make silver and gold tables, read from `sql/`.

Blocks are written as those of the invariants (`ottla.sim.invariants.statements`): a line
`-- NAME: what it is`, the query, an empty line; `-- view NAME` is what later blocks of the file
share. A block of comments alone is for people.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

_VIEW = "view "


class Sheet(NamedTuple):
    """One statement."""

    name: str
    shared: bool
    """Whether it is no table of its own, but what later ones need."""
    text: str


@cache
def sheets(layer: str) -> tuple[Sheet, ...]:
    """The statements of *silver* or *gold*, in the order of their file."""
    text = (files("ottla.sim.studies") / "sql" / f"{layer}.sql").read_text(encoding="utf-8")
    return tuple(_sheets(text))


def _sheets(text: str) -> list[Sheet]:
    found = []
    for block in text.split("\n\n"):
        lines = block.strip().splitlines()
        if not lines[-1].startswith("--"):
            title = lines[0].removeprefix("-- ")
            name = title.removeprefix(_VIEW).partition(":")[0]
            told = "\n".join(lines[1:]).removesuffix(";")
            found.append(Sheet(name, title.startswith(_VIEW), told))
    return found
