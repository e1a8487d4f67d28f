"""Checks of what callers of the Python API hand in.

One function per kind of argument. Each gets the argument's name and its value, and returns the
value as the rest of the code wants it: a plain `int`, `float`, `str`, `bool` or member of an
enumeration. What it cannot take raises `ConfigError`: the text names the argument, shows the value,
and says what is accepted. So a wrong value never gets further than the call that it was given to. A
wrong type that reached the controller would stop every node that applies it.

A bool is not a number here, though Python counts it as one: `partitions=True` is a mistake.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from enum import Enum
from itertools import islice
from numbers import Real
from operator import index
from typing import SupportsIndex, TypeGuard, TypeVar, cast

from ottla.broker.arguments.spelling import no_such, said, shown
from ottla.broker.errors import ConfigError
from ottla.log.types import Unpacked

Choice = TypeVar("Choice", bound=Enum)
Item = TypeVar("Item")
Kind = TypeVar("Kind")

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
LONGEST_SECONDS = 31_536_000.0
"""A year. Longer waits, infinite ones too, are cut to a year."""
MOST_ITEMS = 1 << 20
"""Most members of a list or a mapping. No topic has more partitions, and an endless collection must
not hang its caller."""


def is_a(value: object, kind: type[Kind]) -> TypeGuard[Kind]:
    """Whether a value really is of that type. A mock of a `str` has only the `__class__` of one,
    so the answer is no."""
    return issubclass(type(value), kind)


def whole(name: str, value: object, least: int = -INT64_MAX - 1, most: int = INT64_MAX) -> int:
    """A whole number from `least` to `most`. numpy's are accepted; float, bool and text are not."""
    number = as_whole(value)
    if number is None:
        raise ConfigError(f"{name} is {shown(value)}; {_whole_number(least, most)} is wanted")
    if not least <= number <= most:
        raise ConfigError(f"{name} is {shown(value)}; {least} to {most} are possible")
    return number


def as_whole(value: object) -> int | None:
    """The whole number that a value is; None when it is none."""
    if isinstance(value, bool):
        return None
    try:
        return int(index(cast(SupportsIndex, value)))
    except Exception:  # noqa: BLE001 - a stranger's `__index__`
        return None


def _whole_number(least: int, most: int) -> str:
    if -least > INT32_MAX or most > INT32_MAX:
        return "a whole number"
    return f"a whole number from {least} to {most}"


def number(name: str, value: object, least: float, most: float) -> float:
    """A number from `least` to `most`, with or without a fraction."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ConfigError(f"{name} is {shown(value)}; a number is wanted")
    try:
        taken = float(value)
    except Exception:  # noqa: BLE001 - more than any float, or a stranger's `__float__`
        taken = math.nan
    if not least <= taken <= most:  # nor is what is not a number
        raise ConfigError(f"{name} is {shown(value)}; {least:g} to {most:g} are possible")
    return taken


def seconds(name: str, value: object) -> float:
    """A time to wait, in seconds: 0 or more; `math.inf` for as long as it takes."""
    return min(number(name, value, 0, math.inf), LONGEST_SECONDS)


def text(name: str, value: object) -> str:
    """A text; a subclass of `str` becomes a plain `str`."""
    if not is_a(value, str):
        raise ConfigError(f"{name} is {shown(value)}; a text is wanted")
    return str.__str__(value)


def encoded(name: str, value: object, most: int) -> bytes:
    """A text in UTF-8, of at most `most` bytes."""
    try:
        found = text(name, value).encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{name} is {shown(value)}; a text of UTF-8 is wanted") from error
    if len(found) > most:
        told = f"{name} is {shown(value)}, {len(found)} bytes; at most {most} are wanted"
        raise ConfigError(told)
    return found


def truth(name: str, value: object) -> bool:
    """True or False; a value that is only truthy or falsy is refused."""
    if not is_a(value, bool):
        raise ConfigError(f"{name} is {shown(value)}; True or False is wanted")
    return value


def choice(name: str, value: object, among: type[Choice]) -> Choice:
    """A member of an enumeration, given as itself or by its value in upper or lower case."""
    if is_a(value, among):
        return value
    words = [str(each.value) for each in among]
    if not is_a(value, str):
        raise ConfigError(f"{name} is {shown(value)}; one of {', '.join(words)} is wanted")
    word = text(name, value)
    if word.lower() not in words:
        raise ConfigError(f"{name}: there is no {no_such(word, words)}")
    return among(word.lower())


def items(
    name: str, value: object, of: str, most: int = MOST_ITEMS, *, ordered: bool = False
) -> list[Unpacked]:
    """The members of a list, a tuple or the like. A text, a mapping, more than `most` members and,
    if the members must be `ordered`, a set are refused."""
    if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Collection):
        raise ConfigError(f"{name} is {shown(value)}; a list of {of} is wanted")
    if ordered and isinstance(value, AbstractSet):
        raise ConfigError(f"{name} is {shown(value)}, which has no order; a list of {of} is wanted")
    with reading(name, value):
        return _at_most(name, list(islice(value, most + 1)), most)


def pairs(
    name: str, value: Mapping[object, object], most: int = MOST_ITEMS
) -> list[tuple[Unpacked, Unpacked]]:
    """Keys and values of a mapping of any class; one with more than `most` is refused."""
    with reading(name, value):
        return _at_most(name, [(key, each) for key, each in islice(value.items(), most + 1)], most)


def _at_most(name: str, taken: list[Item], most: int) -> list[Item]:
    if len(taken) > most:
        raise ConfigError(f"{name} has more than {most} members; at most {most} are possible")
    return taken


@contextmanager
def reading(name: str, value: object) -> Iterator[None]:
    """Use while an argument's own class runs code, for example to list its members. Whatever that
    code raises becomes a `ConfigError` that names the argument."""
    try:
        yield
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"{name} is {shown(value)}; it cannot be read: {said(error)}") from error
