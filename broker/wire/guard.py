"""The guard in front of the codec: checks every length in a body before kio reads the body.

**Why.** kio's native reader allocates memory for as many elements as an array claims to have. So
five bytes, a compact array of 2**33 elements, would end the process
(docs/decisions/0015-guard-in-front-of-the-codec.md says what would have to change in kio).

**How.** A `Guard` is compiled once for each schema, from the fields of its entity classes. It has a
*plan* for each class. A plan adds up the bytes of fixed size, and has a *step* for each field with
a length, a count, tags, or a boolean. A step takes the position where its field begins and returns
the position where it ends. `Guard.check` runs the plan over a body:

* For an array, at least its count times the least size of an element must be left; for a length, as
  many bytes as it says. Null is refused if the schema does not allow it.
* Elements and tagged fields are counted, each by its *weight*, and so are all bytes except records.
  A body with too many is refused. (The codec copies texts at 1 to 4 nanoseconds a byte.)

The guard decodes nothing and allocates nothing. Plans nest as deep as the schema, whatever the
bytes say.

**What Kafka accepts and kio does not.** A step that finds such a value notes a *fix*: the same
value in the form that kio reads. A body with fixes is rewritten. That is rare, and refused for
large bodies (`Limits.mended`).

* A boolean other than 0 and 1 is true; every negative length or count means null.
* Varints are 32 bits that wrap, and need not be in the shortest form.
* Tagged fields may come in any order, or twice (the last one counts). A known field may state any
  size (Kafka goes by the schema); an unknown one is skipped.
* A time with more milliseconds than kio allows becomes the longest possible. Each malformed piece
  of a text becomes U+FFFD, as in Java. Texts are checked only after the codec has failed (`texts`).

**Cost.** 2 to 5 microseconds for a body, and 0.2 to 0.7 for each element of variable size: at most
15 ms.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import fields
from types import NoneType
from typing import Any, NamedTuple, TypeAlias, get_args

from ottla.broker.errors import FrameError
from ottla.broker.wire.translation.packing import varint
from ottla.broker.wire.walk import (
    COMPACT,
    INT,
    SHORT,
    Field,
    Limits,
    ReadOnlyBuffer,
    Walk,
    long_bytes,
    read_int,
    read_long,
    read_short,
    read_varint,
    with_fixes,
)

Entity: TypeAlias = Any  # kio has a class per API, version and direction, found at run time

LONGEST_MILLIS = (2**63 - 1) // 1000
"""The longest duration of kio, which counts microseconds in 64 bits."""

RECORDS_WEIGHT = 2
"""The weight of records, also of null: a handler checks those of each partition."""
TEXT_WEIGHT = 2
"""The weight of a text: 19,999 non-ASCII names of 200 bytes took 29 to 68 ms."""

_FIXED = {
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "error_code": 2,
    "int32": 4,
    "uint32": 4,
    "timedelta_i32": 4,
    "int64": 8,
    "uint64": 8,
    "float64": 8,
    "datetime_i64": 8,
}
"""Sizes of kio's types for which every value is valid."""


def nested_entity(annotation: object) -> tuple[type[Entity] | None, bool]:
    """The entity class inside a field's type, if there is one, and whether it is an array."""
    is_array = False
    todo = [annotation]
    while todo:
        found = todo.pop()
        if getattr(found, "__origin__", None) is tuple:
            is_array = True
        if isinstance(found, type) and hasattr(found, "__flexible__"):
            return found, is_array
        todo.extend(get_args(found))
    return None, is_array


class Guard:
    """Checks bodies of one schema; see the module's docstring."""

    __slots__ = ("_limits", "_name", "_plan")

    def __init__(self, entity: type[Entity], limits: Limits):
        self._name = entity.__name__
        self._plan = _plan_of(entity)
        self._limits = limits

    def check(self, frame: ReadOnlyBuffer, at: int, *, texts: bool = False) -> bytes | None:
        """Check the body that begins at byte `at`. None: the codec may read it as it is. Else
        returns the body in the form that the codec reads. With `texts`, text that is not UTF-8 is
        fixed, too.

        Raises `FrameError` for a body that Kafka refuses, and for one that exceeds the limits.
        """
        walk = Walk(frame, self._limits, texts)
        try:
            end = _run(self._plan, walk, at)
        except (IndexError, struct.error):
            end = walk.end + 1
        if end > walk.end:
            raise FrameError(f"{self._name}: cut off after {walk.end - at} bytes")
        if (beside := end - at - walk.records) > (most := self._limits.body_bytes):
            raise FrameError(f"{self._name}: {beside} bytes beside the records, limit {most}")
        return with_fixes(frame, at, end, walk.fixes) if walk.fixes else None


# ---- plans


_Step: TypeAlias = Callable[[Walk, int], int]


class _Plan(NamedTuple):
    """How to step over an entity, or over an element that is a single value."""

    steps: tuple[tuple[int, _Step], ...]
    """For each step: how many bytes to skip before it, and the step."""
    tail: int
    """Bytes after the last step."""
    least: int
    """The least size of the entity."""
    tags_only: bool = False
    """Whether everything except the tagged fields at the end has a fixed size."""
    weight: int = 1
    """For how many elements this one counts: see `_plan_of`."""


def _run(plan: _Plan, walk: Walk, at: int) -> int:
    for skip, step in plan.steps:
        at = step(walk, at + skip)
    return at + plan.tail


def _plan_of(entity: type[Entity]) -> _Plan:
    """The plan of an entity class.

    Its weight is the sum of those of its texts, arrays and records, and at least 1: an array costs
    the codec and the handler about as much as an entity that has only numbers.
    """
    flexible = bool(entity.__flexible__)
    steps: list[tuple[int, _Step]] = []
    tagged: dict[int, _Tagged] = {}
    skip = least = weight = 0
    for item in fields(entity):
        name = f"{entity.__name__}.{item.name}"
        tag = item.metadata.get("tag")
        part = _plan_of_field(name, item.metadata.get("kafka_type"), item.type, flexible)
        if tag is not None:
            tagged[tag] = _Tagged(_single(part), NoneType in get_args(item.type))
            continue
        least += part.least
        if part.steps:
            # The plan of a field has either one step or a fixed size.
            steps.append((skip, part.steps[0][1]))
            weight += part.weight
            skip = 0
        else:
            skip += part.tail
    if not flexible:
        return _Plan(tuple(steps), skip, least, weight=max(weight, 1))
    only = not steps and not tagged
    steps.append((skip, _tags(entity.__name__, tagged)))
    return _Plan(tuple(steps), 0, least + 1, only, max(weight, 1))


def _single(plan: _Plan) -> _Step:
    """The whole plan as one step."""

    def step(walk: Walk, at: int) -> int:
        return _run(plan, walk, at)

    return step


def _one(step: _Step, least: int, weight: int = 1) -> _Plan:
    return _Plan(((0, step),), 0, least, weight=weight)


def _plan_of_field(name: str, kind: str | None, annotation: object, flexible: bool) -> _Plan:
    """The plan of one field: one step, or a fixed size."""
    nested, is_array = nested_entity(annotation)
    nullable = NoneType in get_args(annotation)
    if is_array:
        length = COMPACT if flexible else INT
        item = _plan_of(nested) if nested else _plan_of_value(name, str(kind), False, flexible)
        assert item.least > 0, f"{name}: elements without a byte could be of any number"
        return _one(_array(Field(name, nullable, length), item), length.least)
    if nested is not None:
        plan = _plan_of(nested)
        step, least = (_optional(plan), 1) if nullable else (_single(plan), plan.least)
        return _one(step, least, plan.weight)
    return _plan_of_value(name, str(kind), nullable, flexible)


def _plan_of_value(name: str, kind: str, nullable: bool, flexible: bool) -> _Plan:
    """The plan of a field or an element that is not an entity."""
    if kind == "string":
        length = COMPACT if flexible else SHORT
        return _one(_string(Field(name, nullable, length)), length.least, TEXT_WEIGHT)
    if kind in {"bytes", "records"}:
        length = COMPACT if flexible else INT
        step = _bytes(Field(name, nullable, length))
        if kind == "bytes":
            return _one(step, length.least)
        return _one(_records(step), length.least, RECORDS_WEIGHT)
    if kind in _STEPS:
        return _one(*_STEPS[kind], weight=0)
    return _Plan((), _FIXED[kind], _FIXED[kind])


# ---- steps


def _boolean(walk: Walk, at: int) -> int:
    """A boolean: every value except 0 is true."""
    if walk.frame[at] > 1:
        walk.mend(at, at + 1, b"\1")
    return at + 1


def _duration(walk: Walk, at: int) -> int:
    """A duration in milliseconds, at most 292,000 years."""
    value: int = read_long(walk.frame, at)[0]
    if not -LONGEST_MILLIS <= value <= LONGEST_MILLIS:
        walk.mend(at, at + 8, long_bytes(LONGEST_MILLIS if value > 0 else -LONGEST_MILLIS))
    return at + 8


_STEPS = {"bool": (_boolean, 1), "timedelta_i64": (_duration, 8), "uuid": (Walk.topic_id, 16)}


def _string(field: Field) -> _Step:
    def compact(walk: Walk, at: int) -> int:
        if walk.texts:
            return walk.text(field, at)
        size = walk.frame[at]
        if 0 < size < 0x80:
            return at + size
        if size and 0 < (high := walk.frame[at + 1]) < 0x80:
            return at + 1 + size - 0x80 + (high << 7)
        return walk.text(field, at)

    def short(walk: Walk, at: int) -> int:
        size: int = read_short(walk.frame, at)[0]
        if size >= 0 and not walk.texts:
            return at + 2 + size
        return walk.text(field, at)

    return compact if field.length is COMPACT else short


def _bytes(field: Field) -> _Step:
    def compact(walk: Walk, at: int) -> int:
        size = walk.frame[at]
        if 0 < size < 0x80:
            return at + size
        if size and 0 < (high := walk.frame[at + 1]) < 0x80:
            return at + 1 + size - 0x80 + (high << 7)
        size, at = walk.odd_length(field, at)
        return at + max(size, 0)

    def long(walk: Walk, at: int) -> int:
        size: int = read_int(walk.frame, at)[0]
        if size >= 0:
            return at + 4 + size
        _, at = walk.odd_length(field, at)
        return at

    return compact if field.length is COMPACT else long


def _records(step: _Step) -> _Step:
    def records(walk: Walk, at: int) -> int:
        end = step(walk, at)
        walk.records += end - at
        return end

    return records


def _array(field: Field, item: _Plan) -> _Step:
    """The step over an array: its count and its elements."""
    elements = _elements(item)

    def compact(walk: Walk, at: int) -> int:
        count = walk.frame[at] - 1
        if 0 <= count < 0x7F:
            at += 1
        else:
            count, at = walk.odd_length(field, at)
        return elements(walk, at, count) if count > 0 else at

    def long(walk: Walk, at: int) -> int:
        count: int = read_int(walk.frame, at)[0]
        if count < 0:
            _, at = walk.odd_length(field, at)
            return at
        return elements(walk, at + 4, count) if count > 0 else at + 4

    return compact if field.length is COMPACT else long


def _elements(item: _Plan) -> Callable[[Walk, int, int], int]:
    """The step over all elements of an array; done for all at once where that is possible."""
    least, tail, steps, tags_only = item.least, item.tail, item.steps, item.tags_only
    only = steps[0][1] if len(steps) == 1 and not tail and not steps[0][0] else None
    weight = max(item.weight, 1)

    def elements(walk: Walk, at: int, count: int) -> int:
        walk.take(count, least, at, weight)
        if not steps or (tags_only and _no_tags(walk.frame, at, count, least)):
            return at + count * least
        if only is not None:
            for _ in range(count):
                at = only(walk, at)
            return at
        for _ in range(count):
            for skip, step in steps:
                at = step(walk, at + skip)
            at += tail
        return at

    return elements


def _no_tags(frame: ReadOnlyBuffer, at: int, count: int, size: int) -> bool:
    """Whether none of `count` elements of `size` bytes has tagged fields: whether the last byte of
    each is 0."""
    return bytes(frame[at + size - 1 : at + count * size : size]) == bytes(count)


def _optional(plan: _Plan) -> _Step:
    """An entity that may be null (KIP-893): it is null if the byte before it is negative."""

    def step(walk: Walk, at: int) -> int:
        mark = walk.frame[at]
        usual = 0xFF if mark >= 0x80 else 1
        if mark != usual:
            walk.mend(at, at + 1, bytes((usual,)))
        return at + 1 if mark >= 0x80 else _run(plan, walk, at + 1)

    return step


class _Tagged(NamedTuple):
    """A tagged field that the schema knows."""

    step: _Step
    nullable: bool
    """Whether it may be null. Then null is its default, and kio reads null only as a field that is
    left out."""


def _tags(name: str, known: dict[int, _Tagged]) -> _Step:
    """The step over a section of tagged fields. `known` has those of the schema, by tag."""

    def step(walk: Walk, at: int) -> int:
        return at + 1 if walk.frame[at] == 0 else section(walk, at)

    def section(walk: Walk, start: int) -> int:
        count, at = read_varint(walk.frame, start)
        walk.take(max(count, 0), 2, at)
        found: dict[int, bytes] = {}
        for _ in range(count):
            tag, at = read_varint(walk.frame, at)
            size, at = read_varint(walk.frame, at)
            field = known.get(tag)
            if field is None:
                at = at + size if size >= 0 else walk.end + 1
            else:
                found[tag], at = _tagged(field.step, walk, at)
                if field.nullable and found[tag] == b"\0":
                    del found[tag]
            if at > walk.end:
                raise FrameError(f"{name}: tagged field {tag} of {size} bytes is cut off")
        usual = _section(found)
        if walk.frame[start:at] != usual:
            walk.mend(start, at, usual)
        return at

    return step


def _tagged(step: _Step, walk: Walk, at: int) -> tuple[bytes, int]:
    """The content of a known tagged field in the form that the codec reads, and where it ends."""
    outer, walk.fixes = walk.fixes, []
    end = step(walk, at)
    data = with_fixes(walk.frame, at, end, walk.fixes)
    walk.fixes = outer
    return data, end


def _section(found: dict[int, bytes]) -> bytes:
    """The bytes of a section with these tagged fields."""
    out = bytearray(varint(len(found)))
    for tag in sorted(found):
        data = found[tag]
        out += varint(tag) + varint(len(data)) + data
    return bytes(out)
