"""The codec: the one adapter around kio, the generated values of Kafka's protocol.

kio has one module per message, version and direction, each with frozen dataclasses ("entities"),
a native reader and a Python writer. This module

* finds the entity classes of an API key and version when they are first needed, and keeps them (a
  schema module takes milliseconds to import, and a broker uses a dozen of two thousand),
* reads a request header itself, and a body by kio's native reader,
* builds entities from plain values: `Schema.build(**fields)` drops fields that a version does not
  have and takes nested entities as dicts, so a caller works for all versions,
* converts kio's types: durations are ints in milliseconds here, topic ids 16 bytes.

Bytes that do not fit the schema raise `FrameError`; then the connection closes, as Kafka does it.

kio's readers need a read-only buffer, and read from it without a copy; only `records` and strings
are new objects.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import cache
from io import BytesIO
from pkgutil import iter_modules
from struct import Struct
from typing import NamedTuple
from uuid import UUID

from ottla.broker.errors import FrameError
from ottla.broker.event_loop.collecting import MANY_OBJECTS, nothing_collected
from ottla.broker.wire.guard import Entity, Guard, nested_entity
from ottla.broker.wire.modules import load
from ottla.broker.wire.requests import ZERO_ID
from ottla.broker.wire.walk import (
    ANSWER_LIMITS,
    REQUEST_LIMITS,
    ReadOnlyBuffer,
    decode_text,
    read_varint,
)


@contextmanager
def _hypothesis_hidden() -> Iterator[None]:
    """kio registers its types with hypothesis if hypothesis can be imported. That costs each
    process 0.5 s and 200 MB, and only kio's own tests use it. With None in `sys.modules` the import
    fails, and kio takes hypothesis for not installed.
    """
    hidden = sys.modules.get("hypothesis")
    sys.modules["hypothesis"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if hidden is None:
            del sys.modules["hypothesis"]
        else:
            sys.modules["hypothesis"] = hidden


with _hypothesis_hidden():
    # The only module of kio that imports hypothesis; all others import this one.
    import kio.static.primitive  # noqa: F401

from kio.serial import _serialize, entity_reader, entity_writer, writers  # noqa: E402
from kio.static.constants import EntityType  # noqa: E402

# How entities and single fields are written, for `ottla.broker.wire.translation.encoding`.
field_writer = _serialize.get_field_writer
write_count = writers.write_legacy_array_length
write_compact_count = writers.write_compact_array_length
write_no_tags = writers.write_empty_tagged_fields

API_NAMES: dict[int, str] = {
    0: "produce",
    1: "fetch",
    2: "list_offsets",
    3: "metadata",
    8: "offset_commit",
    9: "offset_fetch",
    10: "find_coordinator",
    11: "join_group",
    12: "heartbeat",
    13: "leave_group",
    14: "sync_group",
    15: "describe_groups",
    16: "list_groups",
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    21: "delete_records",
    22: "init_producer_id",
    23: "offset_for_leader_epoch",
    42: "delete_groups",
    47: "offset_delete",
    60: "describe_cluster",
    68: "consumer_group_heartbeat",
    69: "consumer_group_describe",
}
"""API key to kio's name of the schema, for every API that Ottla speaks as broker or client."""

API_VERSIONS_KEY = 18
MANY_BYTES = 1 << 15
"""A body with this many bytes may have thousands of elements."""
MAX_HEADER_TAGS = 1_000
"""Most tagged fields in a header; Kafka defines none for a request."""

_HEADER = Struct(">hhih")


class RequestHeader(NamedTuple):
    """The part of a request's header that every version has (request header v1)."""

    key: int
    version: int
    correlation_id: int
    client_id: str | None
    end: int
    """Where the header ends; the tagged fields of header v2 follow."""


def read_header(frame: ReadOnlyBuffer) -> RequestHeader:
    """Read the request header at the start of a frame. Raises `FrameError` if it is cut off."""
    size = len(frame)
    if size < _HEADER.size:
        raise FrameError(f"a frame of {size} bytes holds no request header")
    key, version, correlation_id, length = _HEADER.unpack_from(frame)
    end = _HEADER.size + max(length, 0)
    if end > size:
        raise FrameError(f"client id of {length} bytes in a frame of {size}")
    client_id = None if length < 0 else decode_text(bytes(frame[_HEADER.size : end]))
    return RequestHeader(key, version, correlation_id, client_id, end)


def skip_tags(frame: ReadOnlyBuffer, at: int) -> int:
    """Skip the tagged fields of a header (KIP-482), which have no meaning there. Returns where they
    end. Raises `FrameError`."""
    if at < len(frame) and frame[at] == 0:
        return at + 1
    count, at = read_varint(frame, at)
    if count > MAX_HEADER_TAGS:
        raise FrameError(f"{count} tagged fields in a header")
    for _ in range(count):
        _, at = read_varint(frame, at)
        size, at = read_varint(frame, at)
        if size < 0 or size > len(frame) - at:
            raise FrameError(f"a tagged field of {size} bytes in the last {len(frame) - at}")
        at += size
    return at


def _same(value: Entity) -> Entity:
    return value


class Schema:
    """The entity of one API key, version and direction, with its reader, writer and builder."""

    __slots__ = ("_guard", "_read", "_write", "cls", "header_tags")

    def __init__(self, key: int, version: int, direction: EntityType):
        module = load(f"kio.schema.{API_NAMES[key]}.v{version}.{direction.name}")
        self.cls: type[Entity] = next(
            found
            for found in vars(module).values()
            if isinstance(found, type) and getattr(found, "__type__", None) is direction
        )
        flexible = bool(self.cls.__flexible__)
        # The answer to ApiVersions always has header v0, so that every client can read it.
        self.header_tags = flexible and not (
            direction is EntityType.response and key == API_VERSIONS_KEY
        )
        """Whether the message's header ends in tagged fields (request v2, response v1)."""
        answers = direction is EntityType.response
        self._guard = Guard(self.cls, ANSWER_LIMITS if answers else REQUEST_LIMITS)
        self._read = entity_reader(self.cls)
        self._write: Entity = None

    def read(
        self, frame: ReadOnlyBuffer, at: int, translate: Callable[[Entity], Entity] = _same
    ) -> Entity:
        """Decode the entity that begins at byte `at`, and return `translate` of it. Bytes after it
        are ignored. Raises `FrameError`.

        The guard checks the body first (`ottla.broker.wire.guard`). If kio then fails, the guard
        checks it once more, for text that is not UTF-8. A large body is read without garbage
        collection: its objects all stay in use, and collections would take as long as reading.
        """
        if len(frame) - at < MANY_BYTES:
            return translate(self._read_body(frame, at))
        with nothing_collected(aged=True, least=MANY_OBJECTS):
            return translate(self._read_body(frame, at))

    def _read_body(self, frame: ReadOnlyBuffer, at: int) -> Entity:
        mended = self._guard.check(frame, at)
        if mended is not None:
            frame, at = mended, 0
        try:
            return self._read(frame, at)[0]
        except Exception as error:
            mended = self._guard.check(frame, at, texts=True)
            if mended is None:
                raise self._unread(error) from error
        try:
            return self._read(mended, 0)[0]
        except Exception as error:
            raise self._unread(error) from error

    def _unread(self, error: Exception) -> FrameError:
        """The `FrameError` for an error of kio. Also a `ValueError` occurs, for an unknown code or
        time."""
        return FrameError(f"{self.cls.__name__}: {error}")

    def write(self, entity: Entity) -> bytes:
        """Encode an entity of this schema."""
        if self._write is None:
            self._write = entity_writer(self.cls)
        buffer = BytesIO()
        self._write(buffer, entity)
        return buffer.getvalue()

    def build(self, **values: Entity) -> Entity:
        """Make an entity of this schema; see the function `build`."""
        return build(self.cls, **values)

    @property
    def shape(self) -> tuple[str, ...]:
        """The names of its fields."""
        return tuple(item.name for item in fields(self.cls))


_schemas: dict[tuple[int, int, EntityType], Schema] = {}


def request_schema(key: int, version: int) -> Schema:
    """Schema of a request; the version must be one that kio knows."""
    return _schema(key, version, EntityType.request)


def response_schema(key: int, version: int) -> Schema:
    """Schema of a response; the version must be one that kio knows."""
    return _schema(key, version, EntityType.response)


def _schema(key: int, version: int, direction: EntityType) -> Schema:
    found = _schemas.get((key, version, direction))
    if found is None:
        found = _schemas[key, version, direction] = Schema(key, version, direction)
    return found


@cache
def known_versions(key: int) -> Sequence[int]:
    """The versions of an API that kio has schemas for, ascending."""
    package = load(f"kio.schema.{API_NAMES[key]}")
    found = [each.name for each in iter_modules(package.__path__)]
    return sorted(int(each[1:]) for each in found if each[:1] == "v" and each[1:].isdigit())


_names: dict[type[Entity], frozenset[str]] = {}


def field_names(cls: type[Entity]) -> frozenset[str]:
    """The names of an entity's fields and of the fields of all entities in it."""
    found = _names.get(cls)
    if found is None:
        nested = [nested_entity(item.type)[0] for item in fields(cls)]
        inner = [field_names(each) for each in nested if each is not None]
        found = _names[cls] = frozenset(item.name for item in fields(cls)).union(*inner)
    return found


def build(cls: type[Entity], **values: Entity) -> Entity:
    """Make an entity of class `cls`, of any version, from plain values.

    A field that the version does not have is dropped; a field that is not given has the schema's
    default. A nested entity may be a dict, a list of them any iterable. Milliseconds are ints,
    error codes anything with a `.value`, topic ids 16 bytes.
    """
    shape = _shapes.get(cls)
    if shape is None:
        shape = _shapes[cls] = _shape(cls)
    return cls(**{name: shape[name](value) for name, value in values.items() if name in shape})


_shapes: dict[type[Entity], dict[str, Callable[[Entity], Entity]]] = {}


def _shape(cls: type[Entity]) -> dict[str, Callable[[Entity], Entity]]:
    """For each field of an entity: the function that converts a plain value for kio's writer."""
    return {
        item.name: converter(item.metadata.get("kafka_type"), item.type) for item in fields(cls)
    }


def converter(kafka_type: str | None, annotation: Entity) -> Callable[[Entity], Entity]:
    """The function that converts a plain value for kio's writer of a field."""
    nested, is_array = nested_entity(annotation)
    one: Callable[[Entity], Entity]
    if nested is not None:

        def one(value: Entity) -> Entity:
            return build(nested, **value) if isinstance(value, dict) else value

    else:
        one = _PLAIN.get(kafka_type or "", _same)
    if not is_array:
        return one

    def many(values: Entity) -> Entity:
        return None if values is None else tuple(map(one, values))

    return many


def _duration(value: Entity) -> Entity:
    return timedelta(milliseconds=value) if isinstance(value, int) else value


def _time(value: Entity) -> Entity:
    if not isinstance(value, int):
        return value
    return None if value < 0 else datetime.fromtimestamp(value / 1000, UTC)


def _topic_id(value: Entity) -> Entity:
    if not isinstance(value, bytes):
        return value
    return None if value == ZERO_ID else UUID(bytes=value)


_PLAIN: dict[str, Callable[[Entity], Entity]] = {
    "timedelta_i32": _duration,
    "datetime_i64": _time,
    "uuid": _topic_id,
}


def id_bytes(topic_id: UUID | None) -> bytes:
    """A topic id of kio as 16 bytes."""
    return ZERO_ID if topic_id is None else topic_id.bytes


def error_name(code: int) -> str | int:
    """Kafka's name of an error code; the number itself if kio does not know it."""
    if code not in _error_names:
        errors = load("kio.schema.errors")
        _error_names.update({int(each): each.name.upper() for each in errors.ErrorCode})
    return _error_names.get(code, code)


def error_names() -> frozenset[str]:
    """Kafka's names of all error codes that kio knows."""
    error_name(0)
    return frozenset(_error_names.values())


_error_names: dict[int, str] = {}
