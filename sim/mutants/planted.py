"""Planted mutants: product code with a few words changed, as data.

A mutant of the catalogue lacks a mechanism that its author knew, and the author also knew how runs
are judged. Planted mutants come from people who had read only the product, so they break what a bug
might break. Each is a text that a file has exactly once, and its replacement.

| field | what it is |
|---|---|
| `id` | its name, such as `P07` |
| `room` | the room that it breaks |
| `file` | a file of the package, as in the repository: `raft/core.py` |
| `old`, `new` | the text that the file has once, and its replacement |
| `breaks` | what no longer holds |
| `shows` | how it could be noticed |
| `excuse` | optional: why no plain sweep can notice it |
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHIPPED = Path(__file__).with_name("planted.toml")
_TABLE = "planted"
_TOLD = ("id", "room", "file", "old", "new", "breaks", "shows")


class PlantedError(Exception):
    """A table of planted mutants, or one of them, is invalid; the text is one line that says
    why."""


@dataclass(frozen=True, slots=True)
class Planted:
    """One planted mutant: see the table in the module's docstring."""

    id: str
    room: str
    file: str
    old: str
    new: str
    breaks: str
    shows: str
    excuse: str = ""

    def put_into(self, source: str) -> str:
        """The content of the file with the mutant. Raises `PlantedError`."""
        times = source.count(self.old)
        if times != 1:
            raise PlantedError(
                f"{self.id}: its `old` stands {times} times in {self.file}, and must stand there "
                "once; the code was changed: write `old` and `new` anew from the code of today, "
                "so that the same promise is broken, or take the mutant out"
            )
        return source.replace(self.old, self.new)


def read(text: str) -> tuple[Planted, ...]:
    """The planted mutants of a table in TOML. Raises `PlantedError`."""
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlantedError(f"is no TOML: {error}") from None
    rows = told.get(_TABLE)
    if not isinstance(rows, list) or not all(isinstance(each, dict) for each in rows):
        raise PlantedError(f"has no mutants; each begins with a line [[{_TABLE}]]")
    found = tuple(map(_planted, rows))
    ids = [each.id for each in found]
    for each in ids:
        if ids.count(each) > 1:
            raise PlantedError(f"two mutants are called {each}")
    return found


def shipped() -> tuple[Planted, ...]:
    """The mutants that come with Ottla."""
    return read(SHIPPED.read_text(encoding="utf-8"))


def named(found: Iterable[Planted], id_: str) -> Planted | None:
    """The mutant of this name, in upper or lower case; None: there is none."""
    return next((each for each in found if each.id.lower() == id_.lower()), None)


def _planted(row: dict[str, Any]) -> Planted:
    """One row. Raises `PlantedError`."""
    name = row.get("id", "a mutant without id")
    for each in _TOLD:
        if each not in row:
            raise PlantedError(f"{name}: has no `{each}`")
    for each, value in row.items():
        if each not in (*_TOLD, "excuse"):
            raise PlantedError(f"{name}: there is no field `{each}`")
        if not isinstance(value, str) or (each != "new" and not value.strip()):
            raise PlantedError(f"{name}: `{each}` is no text, or empty")
    if row["old"] == row["new"]:
        raise PlantedError(f"{name}: `old` and `new` are the same")
    return Planted(**{**row, "file": row["file"].removeprefix("src/ottla/")})
