"""Answers encoded item by item, so that a large one takes many turns of the loop (`slices.py`).

kio's writer takes a whole entity and writes it in one go: 10 us for a partition of Metadata, and as
much again to make the entity before. `encode` takes the plain values that a handler has, as
`codec.build` does, and walks the fields of the schema's entity class. Into arrays of entities it
goes itself; everything else is written by the writers that kio has for the field. So an answer is
the same bytes that kio makes of it (a test holds every answer to that), and costs half.

The items of an array need not exist before they are encoded: `Lazily(found, describe)` stands for
`[describe(each) for each in found]`, and each is described when its turn has come.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from io import BytesIO
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ottla.broker.wire.codec import (
    build,
    converter,
    field_writer,
    whole_writer,
    write_compact_count,
    write_count,
    write_no_tags,
)
from ottla.broker.wire.guard import nested_entity

PIECE_BYTES = 1 << 16
"""About so much of an answer lies in one piece."""

Values: TypeAlias = Mapping[str, Any]
"""An entity as handlers describe it, by the names of its fields."""
Steps: TypeAlias = Generator[int, None, None]
"""See `slices.py`: an item of an array is one unit."""


Item = TypeVar("Item")
"""What stands in an array: of an answer that `encode` makes, `Values`."""


class Lazily(Collection[Item]):
    """An array with an item for each of `items`, made when it is encoded."""

    __slots__ = ("_describe", "_items")

    def __init__(self, items: Sequence[Any], describe: Callable[[Any], Item]):
        self._items = items
        self._describe = describe

    def __len__(self) -> int:
        """How many items there are."""
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        """The items, one by one."""
        return map(self._describe, self._items)

    def __contains__(self, item: object) -> bool:
        """Whether there is such an item; makes them for it."""
        return any(item == each for each in self)


class _Field(NamedTuple):
    """How a field is written."""

    name: str
    convert: Callable[[Any], Any]
    """Makes of a plain value what kio's writer wants."""
    write: Callable[[Any, Any], None]
    default: Any
    items: _Plan | None
    """How its items are, if it is an array of entities."""


class _Plan:
    """How entities of one class are written."""

    def __init__(self, cls: type[Any]):
        self.cls = cls
        self.tags = [each.name for each in fields(cls) if "tag" in each.metadata]
        """Fields that are written only where a value is given."""
        self.tail = write_no_tags if cls.__flexible__ else None
        self.fields = [_field(cls, each) for each in fields(cls) if each.name not in self.tags]
        self.flat = all(each.items is None for each in self.fields)
        """No array of entities in it."""

    def whole(self, values: Values) -> bool:
        """kio writes it in one go: it has tagged fields, as few entities do."""
        return any(tag in values for tag in self.tags)


def _field(cls: type[Any], field: Any) -> _Field:
    flexible = bool(cls.__flexible__)
    nested, is_array = nested_entity(field.type)
    default = None if field.default is MISSING else field.default
    convert = converter(field.metadata.get("kafka_type"), field.type)
    if nested is not None and is_array:
        length: Any = write_compact_count if flexible else write_count
        return _Field(field.name, convert, length, default, _plan(nested))
    write = field_writer(field, flexible=flexible, is_request_header=False, is_tag=False)
    return _Field(field.name, convert, write, default, None)


_plans: dict[type[Any], _Plan] = {}


def _plan(cls: type[Any]) -> _Plan:
    found = _plans.get(cls)
    if found is None:
        found = _plans[cls] = _Plan(cls)
    return found


def encode(cls: type[Any], values: Values, pieces: list[bytes]) -> Steps:
    """Steps that append to `pieces` what an entity of `cls` with these values is on the wire."""
    out = _Out(pieces)
    yield from _entity(_plan(cls), values, out)
    out.cut()


class _Out:
    """Where an answer is written to."""

    __slots__ = ("_pieces", "buffer", "write")

    def __init__(self, pieces: list[bytes]):
        self._pieces = pieces
        self.buffer = BytesIO()

    def cut(self) -> None:
        """What has been written is a piece."""
        self._pieces.append(self.buffer.getvalue())
        self.buffer = BytesIO()


def _entity(plan: _Plan, values: Values, out: _Out) -> Steps:
    if plan.tags and plan.whole(values):
        _write_flat(plan, values, out.buffer)
        return
    for field in plan.fields:
        value = values.get(field.name, field.default)
        if field.items is None:
            field.write(out.buffer, field.convert(value))
        elif value is None:
            field.write(out.buffer, None if plan.tail else -1)
        else:
            field.write(out.buffer, len(value))
            yield from _array(field.items, value, out)
    if plan.tail is not None:
        plan.tail(out.buffer)


def _array(plan: _Plan, items: Any, out: _Out) -> Steps:
    for item in items:
        if plan.flat:
            _write_flat(plan, item, out.buffer)
        else:
            yield from _entity(plan, item, out)
        if out.buffer.tell() > PIECE_BYTES:
            out.cut()
        yield 1


def _write_flat(plan: _Plan, values: Any, buffer: BytesIO) -> None:
    """An entity without arrays of entities, or one that is written whole."""
    if plan.tags and plan.whole(values):
        whole_writer(plan.cls)(buffer, build(plan.cls, **values))
        return
    for name, convert, write, default, _ in plan.fields:
        write(buffer, convert(values.get(name, default)))
    if plan.tail is not None:
        plan.tail(buffer)
