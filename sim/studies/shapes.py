"""What a study's file may contain where. Errors are one line: the key, its value, and what to
write."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ottla.broker.arguments.spelling import listed, no_such
from ottla.sim.settings.spelling import as_written

TOP: Mapping[str, type] = {
    "name": str,
    "title": str,
    "question": str,
    "seeds": int,
    "swarm": bool,
    "coverage": bool,
    "settings": dict,
    "grid": dict,
    "variant": list,
    "answer": dict,
    "table": list,
    "chart": list,
    "worst": dict,
}
"""Keys of the file, and their types."""
NEEDED = ("name", "title", "question", "seeds", "answer")
_BLOCKS = ("variant", "table", "chart")
"""Blocks that may be repeated."""
_WANTED: Mapping[type, str] = {
    str: 'write a text, in "quotes"',
    int: "write a whole number",
    bool: "write true or false",
}
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


def wrong_top(told: Mapping[str, Any]) -> str | None:
    """What is wrong with the keys of a file, in one line; None: nothing."""
    for key, value in told.items():
        if key not in TOP:
            return f"study: no such key: {no_such(key, TOP)}"
        if type(value) is not TOP[key]:
            return f"{key} is {as_written(value)}; {_wanted(key)}"
    for key in NEEDED:
        if key not in told:
            return f"study: {key} is missing; {_wanted(key)}"
    if not _NAME.fullmatch(told["name"]):
        return f"name is {as_written(told['name'])}; write small letters, digits and hyphens"
    if told["seeds"] < 1:
        return f"seeds is {told['seeds']}; write 1 at least"
    return None


def wrong_block(
    told: Any, where: str, needed: Sequence[str], more: Sequence[str] = ()
) -> str | None:
    """What is wrong with a block of texts, in one line; None: nothing."""
    if not isinstance(told, dict):
        return f"{where} is {as_written(told)}; {_wanted(where)}, with {listed(needed)} below it"
    for key, value in told.items():
        if key not in (*needed, *more):
            return f"{where}: no such key: {no_such(key, (*needed, *more))}"
        if not isinstance(value, str):
            return f"{where}.{key} is {as_written(value)}; {_WANTED[str]}"
    for key in needed:
        if key not in told:
            return f"{where}.{key} is missing; {_WANTED[str]}"
    return None


def wrong_grid(key: str, values: Any) -> str | None:
    """What is wrong with the values of one setting of the grid, in one line; None: nothing."""
    if not isinstance(values, list):
        return f"grid.{key} is {as_written(values)}; write a list, such as [{as_written(values)}]"
    if not values:
        return f"grid.{key} has no value; write one at least, or leave {key} out"
    for place, value in enumerate(values):
        if any(value == each and type(value) is type(each) for each in values[:place]):
            return f"grid.{key} has {as_written(value)} twice; leave one of them out"
    return None


def _wanted(key: str) -> str:
    return _WANTED.get(TOP[key], f"write [[{key}]]" if key in _BLOCKS else f"write [{key}]")
