"""Encodes answers item by item, so that a large answer can take many iterations of the loop.

kio's writer writes a whole entity at once: 10 us for a partition of Metadata, and as much again to
make the entity. `encode` takes the value that a handler answered (`ottla.broker.wire.answers`) and
goes over the fields of the schema's entity class. Each field is the attribute of that name, or the
schema's default if the value has none. `encode` itself iterates arrays of entities; kio's writers
of single fields write everything else. So the bytes are the same as kio's (a test compares every
answer), at half the cost.

No client is throttled, so throttle times are 0. Tagged fields are not written, because no answer
here has any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from io import BytesIO
from typing import NamedTuple

from ottla.broker.wire.api.call import Steps
from ottla.broker.wire.codec import (
    converter,
    field_writer,
    write_compact_count,
    write_count,
    write_no_tags,
)
from ottla.broker.wire.guard import Entity, nested_entity
from ottla.broker.wire.translation.packing import Piece

PIECE_BYTES = 1 << 16
"""The approximate size of one piece of an answer."""
NOT_THROTTLED = {"throttle_time": 0}
"""The throttle time in every answer that has that field."""


class _Field(NamedTuple):
    """How a field is written."""

    name: str
    convert: Callable[[Entity], Entity]
    """Converts a plain value for kio's writer."""
    write: Callable[[Entity, Entity], None]
    default: Entity
    items: _Plan | None
    """The plan of its items, if it is an array of entities."""


class _Plan:
    """How entities of one class are written."""

    def __init__(self, cls: type[Entity]):
        self.tail = write_no_tags if cls.__flexible__ else None
        self.fields = [_field(cls, each) for each in fields(cls) if "tag" not in each.metadata]
        self.flat = all(each.items is None for each in self.fields)
        """Whether it has no array of entities."""


def _field(cls: type[Entity], field: Entity) -> _Field:
    flexible = bool(cls.__flexible__)
    nested, is_array = nested_entity(field.type)
    default = NOT_THROTTLED.get(field.name) if field.default is MISSING else field.default
    convert = converter(field.metadata.get("kafka_type"), field.type)
    if nested is not None and is_array:
        length: Entity = write_compact_count if flexible else write_count
        return _Field(field.name, convert, length, default, _plan(nested))
    write = field_writer(field, flexible=flexible, is_request_header=False, is_tag=False)
    return _Field(field.name, convert, write, default, None)


_plans: dict[type[Entity], _Plan] = {}


def _plan(cls: type[Entity]) -> _Plan:
    found = _plans.get(cls)
    if found is None:
        found = _plans[cls] = _Plan(cls)
    return found


def encode(cls: type[Entity], value: Entity, pieces: list[Piece]) -> Steps:
    """Append to `pieces` the bytes of an entity of `cls` with the fields of `value`, in steps."""
    out = _Out(pieces)
    yield from _entity(_plan(cls), value, out)
    out.cut()


class _Out:
    """Collects the bytes of an answer in pieces."""

    __slots__ = ("_pieces", "buffer")

    def __init__(self, pieces: list[Piece]):
        self._pieces = pieces
        self.buffer = BytesIO()

    def cut(self) -> None:
        """End the present piece and begin a new one."""
        self._pieces.append(self.buffer.getvalue())
        self.buffer = BytesIO()


def _entity(plan: _Plan, values: Entity, out: _Out) -> Steps:
    for field in plan.fields:
        value = getattr(values, field.name, field.default)
        if field.items is None:
            field.write(out.buffer, field.convert(value))
        elif value is None:
            field.write(out.buffer, None if plan.tail else -1)
        else:
            field.write(out.buffer, len(value))
            yield from _array(field.items, value, out)
    if plan.tail is not None:
        plan.tail(out.buffer)


def _array(plan: _Plan, items: Entity, out: _Out) -> Steps:
    for item in items:
        if plan.flat:
            _write_flat(plan, item, out.buffer)
        else:
            yield from _entity(plan, item, out)
        if out.buffer.tell() > PIECE_BYTES:
            out.cut()
        yield 1


def _write_flat(plan: _Plan, values: Entity, buffer: BytesIO) -> None:
    """Write an entity that has no arrays of entities."""
    for name, convert, write, default, _ in plan.fields:
        write(buffer, convert(getattr(values, name, default)))
    if plan.tail is not None:
        plan.tail(buffer)
