"""How what a person wrote is said back: names told from each other, values cut to a line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

_PLAIN = re.compile(r"[\w./-]+")
_LONG = 60
_MANY = 20


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


def shown(value: object) -> str:
    """A value of any type in a sentence: its `repr`, on one line and not longer than it bears.

    >>> shown("3"), shown(2.5), shown("x" * 99)[-6:]
    ("'3'", '2.5', 'xxx...')
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a stranger's `__repr__`, or a number of too many digits
        text = f"a value of type {type(value).__name__}"
    text = " ".join(text.encode("utf-8", "backslashreplace").decode().split())
    return text if len(text) <= _LONG else f"{text[: _LONG - 3]}..."
