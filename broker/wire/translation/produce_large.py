"""Reads large Produce requests without copying their records at once.

kio copies the records of every partition while it decodes; for a request of 100 MB that takes 50 ms
or more. So in a frame above `LARGE_BYTES`, one walk over the lengths finds the records first. kio
then decodes the frame as if all records of at least `TAKEN_BYTES` were empty. These records are
returned as views of the frame, and are copied one by one later.

If lengths do not fit or arrays are null, kio decodes the whole frame; the guard refuses such frames
(`ottla.broker.wire.guard`). Bytes behind the body are dropped.

The caller must not change such a frame while there are views of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import NamedTuple

from ottla.broker.errors import FrameError
from ottla.broker.wire.codec import Schema
from ottla.broker.wire.requests import ProducePartition, ProduceRequest, ProduceTopic
from ottla.broker.wire.translation.packing import INT, SHORT
from ottla.broker.wire.translation.produce_answer import FLEXIBLE_FROM
from ottla.broker.wire.translation.reading import translator
from ottla.broker.wire.walk import ReadOnlyBuffer, read_varint

LARGE_BYTES = 1 << 22
"""A frame above this size has its own buffer, which is not reused (`receiving.SPARE_BYTES`)."""
TAKEN_BYTES = 1 << 10
"""kio decodes smaller records: 20,000 of them have at most 20 MB."""
MOST_ELEMENTS = 20_000
"""The most elements that the guard allows."""

Records = list[memoryview | None]
"""The records of each partition in order; None: kio has decoded them."""
Read = Callable[[ReadOnlyBuffer, int], ProduceRequest]

_short = SHORT.unpack_from
_int = INT.unpack_from


def reader(version: int, schema: Schema) -> Read:
    """The function that reads Produce requests of this version."""
    translate = translator(ProduceRequest, schema.cls)

    def either(frame: ReadOnlyBuffer, at: int) -> ProduceRequest:
        found = _found(memoryview(frame), at, version) if len(frame) > LARGE_BYTES else None
        if found is None:
            whole: ProduceRequest = schema.read(frame, at, translate)
            return whole
        request: ProduceRequest = schema.read(found.rest, 0, translate)
        return request._replace(topic_data=_with_records(request, iter(found.records)))

    return either


def _with_records(
    request: ProduceRequest, records: Iterator[memoryview | None]
) -> list[ProduceTopic]:
    """The topics of a request with their records; large ones are views of the frame."""
    topics = []
    for topic in request.topic_data:
        taken = list(islice(records, len(topic.partition_data)))
        topics.append(ProduceTopic(topic.name, _Taken(topic.partition_data, taken)))
    return topics


class _Taken(Collection[ProducePartition]):
    """Partitions of a topic; a view replaces the records that kio has not decoded."""

    def __init__(self, parts: Collection[ProducePartition], views: Records):
        self._parts = parts
        self._views = views

    def __len__(self) -> int:
        """How many partitions there are."""
        return len(self._views)

    def __iter__(self) -> Iterator[ProducePartition]:
        """The partitions, one by one."""
        for part, view in zip(self._parts, self._views, strict=True):
            yield part if view is None else part._replace(records=view)

    def __contains__(self, item: object) -> bool:
        """Whether there is such a partition."""
        return any(item == each for each in self)


class _Found(NamedTuple):
    rest: bytes
    """The body without the records that were taken."""
    records: Records


def _found(frame: memoryview, at: int, version: int) -> _Found | None:
    """Take the large records out of a body; None if it is not of the usual form."""
    walk = (_Compact if version >= FLEXIBLE_FROM else _Plain)(frame, at)
    try:
        walk.body()
    except (IndexError, FrameError, _UnusualError):
        return None
    pieces: list[ReadOnlyBuffer] = []
    records: Records = []
    start = at
    for length_at, first, stop in walk.found:
        if stop - first < TAKEN_BYTES:
            records.append(None)
            continue
        records.append(frame[first:stop])
        pieces += (frame[start:length_at], walk.empty)
        start = stop
    return _Found(b"".join((*pieces, frame[start : walk.at])), records)


class _UnusualError(Exception):
    """The body is not of the usual form."""


class _Plain:
    """A walk over a body of versions 3 to 8."""

    empty = bytes(4)

    def __init__(self, frame: memoryview, at: int):
        self.frame = frame
        self.at = at
        self.found: list[tuple[int, int, int]] = []
        """For each partition: the position of the length of its records, their first byte, their
        end."""
        self.tagged = 0
        """How many tagged fields there were so far."""

    def body(self) -> None:
        """Step over the whole body."""
        self.step(max(self.text(), 0))  # any negative size is null
        self.step(6)
        for _ in range(self.count()):
            self.step(self.text())
            for _ in range(self.count()):
                self.step(4)
                length_at = self.at
                size = max(self.size(), 0)
                first = self.at
                self.step(size)
                self.found.append((length_at, first, self.at))
                self.tags()
            self.tags()
        self.tags()

    def step(self, size: int) -> None:
        """Step over `size` bytes."""
        if not 0 <= size <= len(self.frame) - self.at:
            raise _UnusualError
        self.at += size

    def count(self) -> int:
        """How many elements an array has."""
        count = self.size()
        if count < 0 or len(self.found) + count > MOST_ELEMENTS:
            raise _UnusualError
        return count

    def text(self) -> int:
        """The size of a text."""
        self.step(2)
        return int(_short(self.frame, self.at - 2)[0])

    def size(self) -> int:
        """The size of records, or of an array."""
        self.step(4)
        return int(_int(self.frame, self.at - 4)[0])

    def tags(self) -> None:
        """These versions have no tagged fields."""


class _Compact(_Plain):
    """A walk over a body of version 9 or later."""

    empty = b"\1"

    def text(self) -> int:
        """The size of a text."""
        return self.size()

    def size(self) -> int:
        """The size of records or of an array: a varint with the size plus one."""
        size, self.at = read_varint(self.frame, self.at)
        return size - 1

    def tags(self) -> None:
        """Step over tagged fields; none of them has a meaning here."""
        count, self.at = read_varint(self.frame, self.at)
        self.tagged += max(count, 0)
        if self.tagged > MOST_ELEMENTS:
            raise _UnusualError
        for _ in range(count):
            _, self.at = read_varint(self.frame, self.at)
            size, self.at = read_varint(self.frame, self.at)
            self.step(size)
