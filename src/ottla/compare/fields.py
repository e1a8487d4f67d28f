"""Decodes an answer into its fields, each with its place in the bytes.

A field is named by its path, `responses[0].partition_responses[0].error_code`; `responses.length`
is the number of elements. The names are kio's: Kafka's in small letters, times without `_ms`. So
two answers are compared as two dicts, and a difference can point at its bytes.

* Error codes are their names, ids of topics are texts, bytes are hexadecimal, times are ms.
* Brokers answer topics and partitions in any order, so elements that have a name or a number are
  sorted by it.
* `records` are decoded: `records[0].base_offset` is a field of the first batch and
  `records[0].values` are the values of its records; `records.rest` are bytes behind the last whole
  batch.

Source: Kafka protocol guide; the classes of kio have the layout of each version.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields as fields_of
from functools import cache
from typing import NamedTuple, TypeAlias, cast
from uuid import UUID

from ottla.broker.errors import FrameError
from ottla.broker.wire.codec import error_name
from ottla.broker.wire.guard import Entity, nested_entity
from ottla.broker.wire.walk import COMPACT, INT, SHORT, decode_text, read_varint
from ottla.log.errors import RecordsError
from ottla.log.record_batch import HEADER, HEADER_FIELDS, MAGIC, read_batch
from ottla.log.records import records_of
from ottla.log.types import RecordBatch

Plain: TypeAlias = bool | int | float | str | list[str] | None


class Field(NamedTuple):
    """A value, and the bytes `start` to `end` of the frame that it was read from."""

    value: Plain
    start: int
    end: int


Fields: TypeAlias = dict[str, Field]

KEYS = ("name", "topic", "topic_id", "partition_index", "partition", "index", "node_id", "api_key")
"""Fields by which the elements of an array are sorted; the first that there is counts."""
RECORDS_FIELDS = frozenset((*HEADER_FIELDS, "values", "rest"))
"""What `records` are decoded into."""

_DERIVED = {"batch_length", "crc"}
"""Fields of a header that follow from the others."""
_NUMBERS = {
    "int8": struct.Struct(">b"),
    "uint8": struct.Struct(">B"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "uint32": struct.Struct(">I"),
    "int64": struct.Struct(">q"),
    "uint64": struct.Struct(">Q"),
    "float64": struct.Struct(">d"),
    "error_code": struct.Struct(">h"),
    "timedelta_i32": struct.Struct(">i"),
    "timedelta_i64": struct.Struct(">q"),
    "datetime_i64": struct.Struct(">q"),
    "bool": struct.Struct(">?"),
}
_RECORDS = "records"
"""kio's type of a set of batches."""
_LEAST_BATCH = 12
"""Bytes: a base offset and a length, without which no batch has an end."""


def decode(cls: type[Entity], frame: bytes, at: int) -> Fields:
    """The fields of the answer of class `cls` that begins at byte `at`. Raises `FrameError`."""
    try:
        found, end = _entity(cls, frame, at)
    except (struct.error, IndexError, ValueError) as error:
        raise FrameError(f"{cls.__name__}: cut off at byte {len(frame)} ({error})") from error
    if end > len(frame):
        raise FrameError(f"{cls.__name__}: cut off at byte {len(frame)}")
    return found


class _Part(NamedTuple):
    """A field of a class, as reading it needs it: kio's descriptions are slow to look through."""

    name: str
    kind: str
    nested: type[Entity] | None
    is_array: bool
    nullable: bool
    """Whether a nested entity may be null."""


@cache
def _parts(cls: Hashable) -> tuple[tuple[_Part, ...], Mapping[int, _Part]]:
    """The fields of a class in their order, and the tagged ones by their tags."""
    plain, tagged = [], {}
    for item in fields_of(cast("type[Entity]", cls)):
        nested, is_array = nested_entity(item.type)
        nullable = nested is not None and "None" in str(item.type)
        kind = str(item.metadata.get("kafka_type"))
        part = _Part(item.name, kind, nested, is_array, nullable)
        tag = item.metadata.get("tag")
        if tag is None:
            plain.append(part)
        else:
            tagged[tag] = part
    return tuple(plain), tagged


def _entity(cls: type[Entity], frame: bytes, at: int) -> tuple[Fields, int]:
    flexible, found = bool(cls.__flexible__), Fields()
    plain, tagged = _parts(cast(Hashable, cls))
    for item in plain:
        if item.nested is None and not item.is_array and item.kind != _RECORDS:
            value = found[item.name] = _value(item.kind, frame, at, flexible=flexible)
            at = value.end
        else:
            part, at = _field(item, frame, at, flexible=flexible)
            _put(found, item.name, part)
    if flexible:
        at = _tagged(tagged, frame, at, found)
    return found, at


def _put(into: Fields, name: str, part: Fields) -> None:
    for path, field in part.items():
        into[f"{name}{path}" if path[:1] in {"", "[", "."} else f"{name}.{path}"] = field


def _tagged(known: Mapping[int, _Part], frame: bytes, at: int, into: Fields) -> int:
    count, at = read_varint(frame, at)
    for _ in range(count):
        tag, start = read_varint(frame, at)
        size, start = read_varint(frame, start)
        if tag in known:
            part, _ = _field(known[tag], frame, start, flexible=True)
            _put(into, known[tag].name, part)
        at = start + size
    return at


def _field(item: _Part, frame: bytes, at: int, *, flexible: bool) -> tuple[Fields, int]:
    """One field: its own path is empty, those within it begin with `[` or a name."""
    kind, nested = item.kind, item.nested
    if kind == _RECORDS:
        return _records(frame, at, flexible=flexible)
    read: Callable[[int], tuple[Fields, int]]
    if nested is not None:

        def read(place: int) -> tuple[Fields, int]:
            return _entity(nested, frame, place)

    else:

        def read(place: int) -> tuple[Fields, int]:
            field = _value(kind, frame, place, flexible=flexible)
            return {"": field}, field.end

    if item.is_array:
        return _array(read, frame, at, flexible=flexible)
    if item.nullable:
        if frame[at] >= 0x80:
            return {"": Field(None, at, at + 1)}, at + 1
        at += 1
    return read(at)


def _array(
    read: Callable[[int], tuple[Fields, int]], frame: bytes, at: int, *, flexible: bool
) -> tuple[Fields, int]:
    count, end = (COMPACT if flexible else INT).read(frame, at)
    if count < 0:
        return {"": Field(None, at, end)}, end
    if count > len(frame) - end:
        raise FrameError(f"{count} elements in the last {len(frame) - end} bytes")
    found: Fields = {".length": Field(count, at, end)}
    elements = []
    for _ in range(count):
        element, end = read(end)
        elements.append(element)
    for number, element in enumerate(sorted(elements, key=_sorted_by)):
        _put(found, f"[{number}]", element)
    return found, end


def _sorted_by(element: Fields) -> tuple[int, str]:
    value = next((element[key].value for key in KEYS if key in element), None)
    return (value, "") if isinstance(value, int) else (0, str(value or ""))


def _value(kind: str, frame: bytes, at: int, *, flexible: bool) -> Field:
    if kind in _NUMBERS:
        layout = _NUMBERS[kind]
        (number,) = layout.unpack_from(frame, at)
        value = error_name(number) if kind == "error_code" else number
        return Field(value, at, at + layout.size)
    if kind == "uuid":
        return Field(str(UUID(bytes=frame[at : at + 16])), at, at + 16)
    short = SHORT if kind == "string" else INT
    size, start = (COMPACT if flexible else short).read(frame, at)
    end = start + max(size, 0)
    if end > len(frame):
        raise FrameError(f"{size} bytes of text in the last {len(frame) - start}")
    if size < 0:
        return Field(None, at, start)
    raw = frame[start:end]
    return Field(decode_text(raw) if kind == "string" else raw.hex(), at, end)


# ---- records


def _records(frame: bytes, at: int, *, flexible: bool) -> tuple[Fields, int]:
    size, start = (COMPACT if flexible else INT).read(frame, at)
    if size < 0:
        return {"": Field(None, at, start)}, start
    end, count = start + size, 0
    if end > len(frame):
        raise FrameError(f"{size} bytes of records in the last {len(frame) - start}")
    found: Fields = {}
    place = start
    while end - place >= _LEAST_BATCH:
        after = place + _LEAST_BATCH + int.from_bytes(frame[place + 8 : place + 12], signed=True)
        if not place + _LEAST_BATCH < after <= end:
            break
        _put(found, f"[{count}]", _batch(frame[place:after], place))
        place, count = after, count + 1
    found[".length"] = Field(count, at, start)
    found[".rest"] = Field(end - place, place, end)
    return found, end


def _batch(data: bytes, at: int) -> Fields:
    if len(data) < HEADER.size or data[16] != MAGIC:
        return {"magic": Field(data[16] if len(data) > 16 else None, at, at + len(data))}
    found: Fields = {}
    place = at
    for name, code, value in zip(
        HEADER_FIELDS, HEADER.format[1:], HEADER.unpack_from(data), strict=True
    ):
        end = place + struct.Struct(f">{code}").size
        if name not in _DERIVED:
            found[name] = Field(value, place, end)
        place = end
    found["values"] = Field(_values(data), place, at + len(data))
    return found


def _values(data: bytes) -> Plain:
    """The values of a batch's records as texts; null is `null`."""
    batch = read_batch(data)
    if not isinstance(batch, RecordBatch):
        return "no readable batch"
    try:
        return [
            "null" if each.value is None else each.value.decode(errors="replace")
            for each in records_of(batch)
        ]
    except RecordsError:
        return "no readable records"
