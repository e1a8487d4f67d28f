"""Kafka's own reading of a body, written down a second time and in the plainest way.

It follows what Kafka's generator of message classes makes of a schema: field by field, lengths as
Java's 32 bits, any negative one null, booleans by "not 0", known tags by their schema and not by
their size. It knows nothing of Ottla's guard, so the two can be compared; and it says where every
length, count and tag lies, so that a fuzz can aim at them.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from datetime import datetime, timedelta
from enum import Enum
from types import NoneType, UnionType
from typing import Any, NamedTuple, get_args, get_origin
from uuid import UUID

FIXED = {
    "int8": 1,
    "int16": 2,
    "error_code": 2,
    "int32": 4,
    "timedelta_i32": 4,
    "timedelta_i64": 8,
    "int64": 8,
    "datetime_i64": 8,
    "uuid": 16,
}


LONGEST_MILLIS = (2**63 - 1) // 1000
"""Kafka takes longer times, and the codec has none."""


class RefusedError(Exception):
    """Kafka closes the connection."""


class Spot(NamedTuple):
    """Where a number lies that other bytes are counted by: `kind` is short, int or varint."""

    at: int
    size: int
    kind: str


class Java:
    """Reads one body. `spots` are filled on the way."""

    def __init__(self, data: bytes, at: int = 0):
        self.data = data
        self.at = at
        self.spots: list[Spot] = []

    def take(self, size: int) -> bytes:
        """The next bytes. Raises `RefusedError` when there are not so many."""
        if not 0 <= size <= len(self.data) - self.at:
            raise RefusedError(f"{size} bytes")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        """The next number of that many bytes."""
        return int.from_bytes(self.take(size), "big", signed=True)

    def varint(self) -> int:
        """The next varint, as an int of Java's."""
        start, number, shift = self.at, 0, 0
        while True:
            byte = self.take(1)[0]
            number |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
            if shift == 35:
                raise RefusedError("varint")
        self.spots.append(Spot(start, self.at - start, "varint"))
        number &= 0xFFFFFFFF
        return number - 2**32 if number >= 2**31 else number

    def length(self, compact: bool, width: int) -> int:
        """The next length or count; any negative one is null."""
        if compact:
            return (self.varint() - 1 + 2**31) % 2**32 - 2**31
        self.spots.append(Spot(self.at, width, "short" if width == 2 else "int"))
        return self.number(width)

    def entity(self, cls: type[Any]) -> dict[str, Any]:
        """The next entity, its fields by name."""
        flexible, found, tagged = cls.__flexible__, {}, {}
        for field in fields(cls):
            if "tag" in field.metadata:
                tagged[field.metadata["tag"]] = field
                assert field.default is not MISSING
                found[field.name] = plain(field.default)
            else:
                found[field.name] = self.field(field.type, field.metadata, flexible)
        if flexible:
            for _ in range(self.varint()):
                tag, size = self.varint(), self.varint()
                if tag in tagged:
                    field = tagged[tag]
                    found[field.name] = self.field(field.type, field.metadata, flexible)
                else:
                    self.take(size)
        return found

    def field(self, kind: Any, metadata: Any, compact: bool) -> Any:
        """One field of the type that kio annotates it with."""
        nullable = get_origin(kind) is UnionType and NoneType in get_args(kind)
        if nullable:
            (kind,) = (each for each in get_args(kind) if each is not NoneType)
        name = metadata.get("kafka_type")
        if get_origin(kind) is tuple:
            count = self.length(compact, 4)
            if count < 0:
                return null(nullable)
            if count > len(self.data) - self.at:
                raise RefusedError(f"{count} elements")
            item = get_args(kind)[0]
            return [self.value(item, name, False, compact) for _ in range(count)]
        if nullable and hasattr(kind, "__flexible__") and self.number(1) < 0:
            return None
        return self.value(kind, name, nullable, compact)

    def value(self, kind: Any, name: str | None, nullable: bool, compact: bool) -> Any:
        """The next value that is no array."""
        if hasattr(kind, "__flexible__"):
            return self.entity(kind)
        if name == "bool":
            return self.take(1) != b"\0"
        if name == "string":
            size = self.length(compact, 2)
            if size > 0x7FFF:
                raise RefusedError("string")
            return null(nullable) if size < 0 else java_text(self.take(size))
        if name in {"bytes", "records"}:
            size = self.length(compact, 4)
            return null(nullable) if size < 0 else self.take(size)
        assert name is not None
        if name == "uuid":
            return none_if(self.take(16), bytes(16))
        number = self.number(FIXED[name])
        if name == "timedelta_i64":
            return max(-LONGEST_MILLIS, min(number, LONGEST_MILLIS))
        return none_if(number, -1 if name == "datetime_i64" else None)


def none_if(value: Any, absent: Any) -> Any:
    """kio has None for the value that means: none."""
    return None if value == absent else value


def null(allowed: bool) -> None:
    """Null. Raises `RefusedError` where the schema has none."""
    if not allowed:
        raise RefusedError("null")


def java_text(data: bytes) -> str:
    """UTF-8 as Java's String decodes it, byte by byte: each malformed piece is one U+FFFD."""
    text, at = "", 0
    while at < len(data):
        size = _piece(data[at : at + 4])
        try:
            text += data[at : at + size].decode()
        except UnicodeDecodeError:
            text += "\ufffd"
        at += size
    return text


def _piece(data: bytes) -> int:
    """Bytes of the first character, or of the longest beginning of one; Java alone takes a
    surrogate for the beginning of a character, and refuses it as a whole."""
    first = data[0]
    if first < 0xC2 or first > 0xF4:
        return 1
    wanted = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    second = {0xE0: (0xA0, 0xBF), 0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}
    size = 1
    low, high = second.get(first, (0x80, 0xBF))
    while size < wanted and size < len(data) and low <= data[size] <= high:
        size += 1
        low, high = 0x80, 0xBF
    return size


def plain(value: Any) -> Any:
    """What kio read, as `Java` says the same."""
    if hasattr(type(value), "__flexible__"):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    return value.bytes if isinstance(value, UUID) else value
