"""Reads TOML strictly: each key is taken once with its type, and no key may be left over.

A message names the file, the path of the value, what is there and what is accepted:
`gap.toml: steps[2].produce.epoch is "x"; a whole number or a $reference is wanted`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ottla.broker.arguments.spelling import no_such, shown
from ottla.compare.errors import CaseError

Value = TypeVar("Value")
LARGEST_FILE = 1 << 20
"""Bytes of a case; nobody reads a longer one."""


class Table:
    """A table of a TOML file; see the module's docstring."""

    def __init__(self, file: str, path: str, values: Mapping[str, Any]):
        self.file = file
        self.path = path
        self._left = dict(values)
        self._known: list[str] = []

    @property
    def names(self) -> Collection[str]:
        """Keys that nobody has taken yet."""
        return self._left.keys()

    def where(self, key: str) -> str:
        """The path of a key."""
        return f"{self.path}.{key}" if self.path else key

    def wrong(self, key: str, what: str) -> CaseError:
        """The error for a key: `what` is wrong with it."""
        return CaseError(f"{self.file}: {self.where(key)} {what}")

    def take(self, key: str, kind: type[Value], wanted: str, default: Any = ...) -> Any:
        """The value of a key; `wanted` is the type in words. Without a default it must be there.
        Raises `CaseError`."""
        self._known.append(key)
        if key not in self._left:
            if default is ...:
                raise self.wrong(key, f"is missing; {wanted} is wanted")
            return default
        value = self._left.pop(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.wrong(key, f"is {_seen(value)}; {wanted} is wanted")
        return value

    def anything(self, key: str, default: Any = None) -> Any:
        """The value of a key, of any type."""
        self._known.append(key)
        return self._left.pop(key, default)

    def text(self, key: str, default: Any = ...) -> Any:
        """A text."""
        return self.take(key, str, "a text", default)

    def whole(self, key: str, default: Any = ...) -> Any:
        """A whole number."""
        return self.take(key, int, "a whole number", default)

    def within(self, key: str, least: int, most: int, default: Any = ...) -> Any:
        """A whole number from `least` to `most`."""
        value = self.whole(key, default)
        if value is not None and not least <= value <= most:
            raise self.wrong(key, f"is {value}; {least} to {most} are possible")
        return value

    def truth(self, key: str, *, default: bool = False) -> bool:
        """True or false."""
        return bool(self.take(key, bool, "true or false", default))

    def number(self, key: str, default: Any = ..., bits: int = 64) -> Any:
        """A signed whole number of so many bits, or a reference to an earlier answer."""
        value = self.anything(key, default)
        if value is ...:
            raise self.wrong(key, "is missing; a whole number or a $reference is wanted")
        if value is None or is_reference(value):
            return value
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(key, f"is {_seen(value)}; a whole number or a $reference is wanted")
        most = (1 << bits - 1) - 1
        if not ~most <= value <= most:
            raise self.wrong(key, f"is {value}; {~most} to {most} are possible")
        return value

    def texts(self, key: str, default: Any = ...) -> list[str]:
        """A list of texts."""
        found = self.take(key, list, "a list of texts", default)
        for number, each in enumerate(found):
            if not isinstance(each, str):
                raise self.wrong(f"{key}[{number}]", f"is {_seen(each)}; a text is wanted")
        return list(found)

    def hexadecimal(self, key: str, default: bytes = b"") -> bytes:
        """Bytes, written as pairs of hexadecimal digits; blanks are left out."""
        text = self.text(key, None)
        if text is None:
            return default
        try:
            return bytes.fromhex(text)
        except ValueError:
            raise self.wrong(
                key, f"is {_seen(text)}; pairs of hexadecimal digits are wanted"
            ) from None

    def one_of(self, key: str, choices: Collection[str], default: Any = ...) -> str:
        """One of these texts."""
        value: str = self.text(key, default)
        if value not in choices:
            raise self.wrong(key, f"is {no_such(value, choices, all_of_them=True)}")
        return value

    def table(self, key: str, values: Any) -> Table:
        """`values`, which must be a table, as the table below `key`."""
        if not isinstance(values, dict):
            raise self.wrong(key, f"is {_seen(values)}; a table is wanted")
        return Table(self.file, self.where(key), values)

    def done(self) -> None:
        """Nothing may be left. Raises `CaseError`."""
        for key in self._left:
            raise self.wrong(key, f"is no key here: there is no {no_such(key, self._known)}")


def is_reference(value: object) -> bool:
    """Whether a value stands for a field of an earlier answer: `$init.producer_id`."""
    return isinstance(value, str) and value.startswith("$") and "." in value


def _seen(value: object) -> str:
    """A value as it stands in the file, on one line."""
    try:
        return shown(value) if isinstance(value, dict | list) else json.dumps(value)[:80]
    except TypeError:  # a date
        return shown(value)


def read_file(path: Path, called: str) -> Table:
    """A TOML file as a table; messages call the file `called`. Raises `CaseError`."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CaseError(f"{called}: {error.strerror or error}; name a file of TOML") from None
    if len(data) > LARGEST_FILE:
        raise CaseError(f"{called}: has {len(data)} bytes; at most {LARGEST_FILE} are read")
    try:
        return Table(called, "", tomllib.loads(data.decode()))
    except UnicodeDecodeError as error:
        raise CaseError(f"{called}: byte {error.start} is not UTF-8; TOML is UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise CaseError(f"{called}: {error}; see https://toml.io") from None
    except RecursionError:
        raise CaseError(f"{called}: is nested too deeply; a case has four levels") from None
