"""How messages quote what a user wrote: names in quotes where needed, values cut to one line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

_PLAIN = re.compile(r"[\w./-]+")
_LONG = 60
LONGEST_NAME = 249
"""Characters. The longest name of a topic fits."""
LONGEST_TEXT = 1_000
"""Characters of an error message of Kafka's protocol, which may quote what the client sent."""
_MANY = 20


def called(name: str) -> str:
    """A name within a sentence or a list: in quotes where it is more than one plain word, and cut
    where it is longer than `LONGEST_NAME`.

    >>> called("acks"), called("a follower lags, the leader dies"), called("")
    ('acks', "'a follower lags, the leader dies'", "''")
    """
    if len(name) <= LONGEST_NAME and _PLAIN.fullmatch(name):
        return name
    return _cut(repr(name[: LONGEST_NAME + 1]), LONGEST_NAME + 2)


def listed(names: Iterable[str]) -> str:
    """Names separated by commas; names of several words are in quotes."""
    return ", ".join(map(called, names))


def no_such(name: str, known: Iterable[str], *, all_of_them: bool = False) -> str:
    """For a message: an unknown name, then the known name that is most like it, else all known
    names if they are few or `all_of_them` is set.

    >>> no_such("aks", ("acks", "nodes")), no_such("x", ("sql", "text"))
    ('aks; did you mean acks?', 'x; there are sql, text')
    """
    there = tuple(known)
    near = get_close_matches(name, there, 1, cutoff=0.7) if len(name) <= LONGEST_NAME else []
    if near:
        return f"{called(name)}; did you mean {called(near[0])}?"
    return called(name) + (
        f"; there are {listed(there)}" if all_of_them or len(there) <= _MANY else ""
    )


def shown(value: object) -> str:
    """A value of any type for use in a sentence: its `repr`, on one line and cut if it is long.

    >>> shown("3"), shown(2.5), shown("x" * 99)[-6:]
    ("'3'", '2.5', 'xxx...')
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a stranger's `__repr__`, or a number of too many digits
        text = f"a value of type {type(value).__name__}"
    # The `__repr__` of other code may be of any length and full of blanks.
    text = text[: 4 * _LONG].encode("utf-8", "backslashreplace").decode()
    return _cut(printable(" ".join(text.split())), _LONG)


def printable(text: str, most: int = LONGEST_TEXT) -> str:
    """A text from outside, made safe to print: characters that cannot be printed are escaped, and
    the text is cut to `most` characters.

    >>> printable("no name: \\ud800"), printable("x" * 9, 6)
    ('no name: \\\\ud800', 'xxx...')
    """
    some = text[: most + 1]
    if not some.isprintable():
        some = "".join(each if each.isprintable() else repr(each)[1:-1] for each in some)
    return _cut(some, most)


def said(error: BaseException) -> str:
    """The message of an exception from other code, on one line and cut as `shown` does; its type if
    it has no message."""
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a stranger's `__str__`
        text = ""
    return printable(f"{kind}: {text}" if text else kind, 2 * _LONG)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
