"""Large Produce requests: their records are not copied where they are decoded.

kio copies the records of every partition while it decodes, and of a request of 100 MB that is one
turn of 50 ms or more. So in a frame above `LARGE_BYTES` the records are looked for first, by one
walk over the lengths; kio decodes the frame without those of `TAKEN_BYTES` and more, as if they
were empty; and they come as views of the frame, to be copied one by one, when their turn has come.

A frame in which lengths do not fit, or arrays are null, is kio's as a whole: those are the guard's
to refuse (`ottla.broker.wire.guard`). What follows a good body is left out, as nobody reads it.

Whoever hands over such a frame must leave it as it is for as long as there are views of it.
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
"""Frames above this size have a buffer of their own, never used again (`receiving.SPARE_BYTES`)."""
TAKEN_BYTES = 1 << 10
"""Smaller records are kio's: 20,000 of them are no more than 20 MB."""
MOST_ELEMENTS = 20_000
"""What the guard lets through."""

Records = list[memoryview | None]
"""Of each partition in order; None: kio has them."""
Read = Callable[[ReadOnlyBuffer, int], ProduceRequest]

_short = SHORT.unpack_from
_int = INT.unpack_from


def reader(version: int, schema: Schema) -> Read:
    """How Produce requests are read."""
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
    """The topics of a request, with the records that lie in the frame."""
    topics = []
    for topic in request.topic_data:
        taken = list(islice(records, len(topic.partition_data)))
        topics.append(ProduceTopic(topic.name, _Taken(topic.partition_data, taken)))
    return topics


class _Taken(Collection[ProducePartition]):
    """Partitions of a topic, and their records where kio does not have them."""

    def __init__(self, parts: Collection[ProducePartition], views: Records):
        self._parts = parts
        self._views = views

    def __len__(self) -> int:
        """How many there are."""
        return len(self._views)

    def __iter__(self) -> Iterator[ProducePartition]:
        """Each, when its turn has come."""
        for part, view in zip(self._parts, self._views, strict=True):
            yield part if view is None else part._replace(records=view)

    def __contains__(self, item: object) -> bool:
        """Whether there is such a one."""
        return any(item == each for each in self)


class _Found(NamedTuple):
    rest: bytes
    """The body without the records that were taken."""
    records: Records


def _found(frame: memoryview, at: int, version: int) -> _Found | None:
    """Take the records out of a body; None where it is not of the usual form."""
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
    """For the guard to refuse."""


class _Plain:
    """A walk over a body of versions 3 to 8."""

    empty = bytes(4)

    def __init__(self, frame: memoryview, at: int):
        self.frame = frame
        self.at = at
        self.found: list[tuple[int, int, int]] = []
        """Of each partition: where the length of its records stands, and they."""
        self.tagged = 0
        """Tagged fields so far."""

    def body(self) -> None:
        """Step over all of it."""
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
        """Go on by so many bytes."""
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
        """There are none yet."""


class _Compact(_Plain):
    """A walk over a body of version 9 or later."""

    empty = b"\1"

    def text(self) -> int:
        """Its size and one."""
        return self.size()

    def size(self) -> int:
        """In a varint, one more than it is."""
        size, self.at = read_varint(self.frame, self.at)
        return size - 1

    def tags(self) -> None:
        """None that are known."""
        count, self.at = read_varint(self.frame, self.at)
        self.tagged += max(count, 0)
        if self.tagged > MOST_ELEMENTS:
            raise _UnusualError
        for _ in range(count):
            _, self.at = read_varint(self.frame, self.at)
            size, self.at = read_varint(self.frame, self.at)
            self.step(size)
