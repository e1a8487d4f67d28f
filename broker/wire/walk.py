"""One pass over bytes that a peer sent: numbers as Kafka reads them, what is left, what is mended.

`Walk` is the state of a pass; `ottla.broker.wire.guard` says where it leads. Nothing here decodes
more than numbers, but for texts in a body over which the codec has stumbled already.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from struct import Struct
from typing import NamedTuple, TypeAlias

from ottla.broker.errors import FrameError
from ottla.broker.wire.translation.packing import varint

ReadOnlyBuffer: TypeAlias = bytes | memoryview

LONGEST_TEXT = 0x7FFF
"""Bytes of a string, in every version."""
_BEGINNING_OF_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT = "\ufffd".encode()

_SHORT = Struct(">h")
_INT = Struct(">i")
read_short = _SHORT.unpack_from
_LONG = Struct(">q")
read_int = _INT.unpack_from
read_long = _LONG.unpack_from
long_bytes = _LONG.pack


def read_varint(frame: ReadOnlyBuffer, at: int) -> tuple[int, int]:
    """A varint as Kafka reads it, 32 bits with a sign, and where it ends. Raises `FrameError`."""
    value = 0
    for shift in range(0, 35, 7):
        if at >= len(frame):
            raise FrameError(f"number cut off at byte {at}")
        byte = frame[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value + 2**31) % 2**32 - 2**31, at
    raise FrameError(f"number of more than five bytes before byte {at}")


def decode_text(raw: bytes) -> str:
    """UTF-8, or what Java makes of it: U+FFFD for each malformed piece.

    Python does the same, but for the three bytes of a lone surrogate: one piece for Java, three
    for Python.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return _BEGINNING_OF_SURROGATE.sub(_REPLACEMENT, raw).decode(errors="replace")


_NO_ID = bytes(16)


class Limits(NamedTuple):
    """What a body may have."""

    elements: int
    """Those of all its arrays, by their weight, its tagged fields, and two for each topic id."""
    mended: int
    """In a body that must be written anew, because it holds what kio does not take."""
    text_bytes: int
    """Of texts beyond ASCII, in a body in which some are not UTF-8: mending costs up to 70
    nanoseconds for each byte."""
    body_bytes: int
    """But for records."""


REQUEST_LIMITS = Limits(elements=20_000, mended=2_000, text_bytes=1 << 18, body_bytes=3 << 20)
"""Decoding 20,000 elements takes the codec 10 to 30 ms and up to 10 MB, which leaves room in a turn
of 50 ms; no client of a cluster that fits into one process names as many topics and partitions at
once. 2,000 elements are checked twice, written anew and decoded twice in 10 ms. In 3 MiB there is
room for 10,000 names, the most there may be, of 249 bytes, the most a topic's may have; of texts
beyond ASCII so many take 7 to 15 ms more."""
ANSWER_LIMITS = Limits(elements=2_000_000, mended=2_000_000, text_bytes=1 << 28, body_bytes=1 << 31)
"""An answer is read by a client, which has no turns: a large cluster's Metadata must come through.
"""


class Length(NamedTuple):
    """How a length or count is encoded."""

    read: Callable[[ReadOnlyBuffer, int], tuple[int, int]]
    """What it says, and where it ends. A negative number is null."""
    write: Callable[[int], bytes]
    """The usual form; -1 is null."""
    least: int
    """The least size of it."""


def _read_compact(frame: ReadOnlyBuffer, at: int) -> tuple[int, int]:
    value, at = read_varint(frame, at)
    return value - 1 if value > -(2**31) else 2**31 - 1, at  # as Java's int wraps


SHORT = Length(lambda frame, at: (read_short(frame, at)[0], at + 2), _SHORT.pack, 2)
INT = Length(lambda frame, at: (read_int(frame, at)[0], at + 4), _INT.pack, 4)
COMPACT = Length(_read_compact, lambda size: varint(size + 1), 1)


class Field(NamedTuple):
    """What a step knows of its field."""

    name: str
    nullable: bool
    length: Length


class Fix(NamedTuple):
    """Bytes `start` to `stop` of the frame are to be read as `data`."""

    start: int
    stop: int
    data: bytes


class Walk:
    """One pass over one body."""

    __slots__ = ("end", "fixes", "frame", "limits", "records", "room", "text_room", "texts")

    def __init__(self, frame: ReadOnlyBuffer, limits: Limits, texts: bool):
        self.frame = frame
        self.end = len(frame)
        self.limits = limits
        self.room = limits.mended if texts else limits.elements
        """Elements that may still come."""
        self.text_room = limits.text_bytes
        self.records = 0
        """Bytes of records so far, with their lengths."""
        self.texts = texts
        self.fixes: list[Fix] = []
        """In the order of the bytes."""

    def take(self, count: int, least: int, at: int, weight: int = 1) -> None:
        """`count` elements of at least `least` bytes each begin at byte `at`; how many of usual
        ones each is worth is its `weight`."""
        if count * least > self.end - at:
            raise FrameError(
                f"{count} elements of at least {least} bytes in the last {self.end - at}"
            )
        self.room -= count * weight
        if self.room < 0:
            if self.texts:
                self.refuse_mending()
            raise FrameError(f"more than {self.limits.elements} elements")

    def topic_id(self, at: int) -> int:
        """The step over a topic id: one that is not zero counts as two elements, for it costs the
        codec 2 microseconds, most of it in Python's UUID."""
        if self.frame[at : at + 16] != _NO_ID:
            self.take(2, 0, at)
        return at + 16

    def refuse_mending(self) -> None:
        """There are too many elements for a body that is to be written anew."""
        raise FrameError(f"more than {self.limits.mended} elements, not all in a usual form")

    def mend(self, start: int, stop: int, data: bytes) -> None:
        """Note a fix."""
        limits = self.limits
        if not self.texts and limits.elements - self.room > limits.mended:
            self.refuse_mending()
        self.fixes.append(Fix(start, stop, data))

    def odd_length(self, field: Field, at: int) -> tuple[int, int]:
        """A length or count at byte `at`, -1 for null, and where it ends."""
        size, after = field.length.read(self.frame, at)
        if size < 0:
            size = -1
            if not field.nullable:
                raise FrameError(f"{field.name} is null")
        usual = field.length.write(size)
        if self.frame[at:after] != usual:
            self.mend(at, after, usual)
        return size, after

    def text(self, field: Field, at: int) -> int:
        """A string whose length stands at byte `at`, looked into if that is wanted."""
        start = at
        size, at = self.odd_length(field, at)
        if size > LONGEST_TEXT:
            raise FrameError(f"{field.name}: a string of {size} bytes")
        stop = at + max(size, 0)
        if self.texts and stop <= self.end:
            raw = bytes(self.frame[at:stop])
            if not raw.isascii():
                self._mend_text(field, start, raw, stop)
        return stop

    def _mend_text(self, field: Field, start: int, raw: bytes, stop: int) -> None:
        """Look into a string: its length stands at byte `start`, and it ends before `stop`."""
        self.text_room -= len(raw)
        if self.text_room < 0:
            raise FrameError(f"more than {self.limits.text_bytes} bytes of text, not all UTF-8")
        good = decode_text(raw).encode()
        if good == raw:
            return
        if len(good) > LONGEST_TEXT:
            raise FrameError(f"{field.name}: not UTF-8, and too long to be mended")
        if self.fixes and self.fixes[-1].start == start:
            self.fixes.pop()  # of the length alone
        self.mend(start, stop, field.length.write(len(good)) + good)


def with_fixes(frame: ReadOnlyBuffer, start: int, stop: int, fixes: list[Fix]) -> bytes:
    """Bytes `start` to `stop` of the frame, with the fixes that lie in them."""
    pieces: list[ReadOnlyBuffer] = []
    for fix in fixes:
        pieces += (frame[start : fix.start], fix.data)
        start = fix.stop
    pieces.append(frame[start:stop])
    return b"".join(pieces)
