"""How what a person wrote is told back: values as files have them, names told from each other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

_PLAIN = re.compile(r"[\w./-]+")
_LONG = 60
_MANY = 20


def as_written(value: Any) -> str:
    """A value as a person may have written it, not longer than a line bears.

    >>> as_written(True), as_written("a"), as_written([1, False]), as_written({"sql": "SELECT 1"})
    ('true', "'a'", '[1, false]', 'a block of keys')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a block of keys"
    if isinstance(value, list):
        if any(isinstance(each, dict) for each in value):
            return "a list of blocks"
        told = f"[{', '.join(map(as_written, value))}]"
    else:
        told = repr(value) if isinstance(value, str) else str(value)
    return told if len(told) <= _LONG else f"{told[: _LONG - 3]}..."


def called(name: str) -> str:
    """A name within a sentence or a list: in quotes where it is more than one plain word.

    >>> called("acks"), called("a follower lags, the leader dies"), called("")
    ('acks', "'a follower lags, the leader dies'", "''")
    """
    return name if _PLAIN.fullmatch(name) else repr(name)


def listed(names: Iterable[str]) -> str:
    """Names with commas between, each told from the next."""
    return ", ".join(map(called, names))


def no_such(name: str, known: Iterable[str], *, all_of_them: bool = False) -> str:
    """A name that is none of those that are known, and the one that comes near, or all of a few, or
    `all_of_them` however many.

    >>> no_such("aks", ("acks", "nodes")), no_such("x", ("sql", "text"))
    ('aks; did you mean acks?', 'x; there are sql, text')
    """
    there = tuple(known)
    near = get_close_matches(name, there, 1, cutoff=0.7)
    if near:
        return f"{called(name)}; did you mean {called(near[0])}?"
    return called(name) + (
        f"; there are {listed(there)}" if all_of_them or len(there) <= _MANY else ""
    )
