"""`Walk`: the state of the guard's pass over the bytes of a body (`ottla.broker.wire.guard`).

It reads numbers as Kafka does, keeps the limits, and collects fixes. It decodes only numbers, and
texts in a body that the codec has failed to read.
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
"""The longest string in bytes, in every version."""
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
    """A varint as Kafka reads it (32 bits with a sign), and the position after it. Raises
    `FrameError`."""
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
    """The text of UTF-8 bytes, with U+FFFD for each malformed piece, as in Java.

    Python does the same, except for the three bytes of a lone surrogate, which are one piece in
    Java and three in Python.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return _BEGINNING_OF_SURROGATE.sub(_REPLACEMENT, raw).decode(errors="replace")


_NO_ID = bytes(16)


class Limits(NamedTuple):
    """The limits of a body."""

    elements: int
    """Elements of all arrays by their weight, plus tagged fields, plus two for each topic id."""
    mended: int
    """Elements of a body that must be rewritten, because kio does not read it as it is."""
    text_bytes: int
    """Bytes of non-ASCII texts in a body with text that is not UTF-8; fixing takes up to 70
    nanoseconds per byte."""
    body_bytes: int
    """Bytes of a body without its records."""


REQUEST_LIMITS = Limits(elements=20_000, mended=2_000, text_bytes=1 << 18, body_bytes=3 << 20)
"""The limits of a request. Decoding 20,000 elements takes the codec 10 to 30 ms and up to 10 MB; an
iteration of the loop should take at most 50 ms. No client of a cluster in one process names so many
topics and partitions at once. Checking, rewriting and decoding 2,000 elements twice takes 10 ms. 3
MiB have room for 10,000 names (more would exceed the elements) of 249 bytes, the longest name of a
topic; if they are not ASCII, they take 7 to 15 ms more."""
ANSWER_LIMITS = Limits(elements=2_000_000, mended=2_000_000, text_bytes=1 << 28, body_bytes=1 << 31)
"""The limits of an answer. A client reads it and has no loop to keep short; the Metadata answer of
a large cluster must be possible."""


class Length(NamedTuple):
    """How a length or count is encoded."""

    read: Callable[[ReadOnlyBuffer, int], tuple[int, int]]
    """The number, and the position after it. A negative number means null."""
    write: Callable[[int], bytes]
    """The bytes of a number in the usual form; -1 means null."""
    least: int
    """The least size of the encoded number."""


def _read_compact(frame: ReadOnlyBuffer, at: int) -> tuple[int, int]:
    value, at = read_varint(frame, at)
    return value - 1 if value > -(2**31) else 2**31 - 1, at  # as Java's int wraps


SHORT = Length(lambda frame, at: (read_short(frame, at)[0], at + 2), _SHORT.pack, 2)
INT = Length(lambda frame, at: (read_int(frame, at)[0], at + 4), _INT.pack, 4)
COMPACT = Length(_read_compact, lambda size: varint(size + 1), 1)


class Field(NamedTuple):
    """A field with a length, as its step knows it."""

    name: str
    nullable: bool
    length: Length


class Fix(NamedTuple):
    """Replaces bytes `start` to `stop` of the frame by `data`."""

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
        """How many more elements are allowed."""
        self.text_room = limits.text_bytes
        self.records = 0
        """Bytes of records so far, including their lengths."""
        self.texts = texts
        self.fixes: list[Fix] = []
        """The fixes, in the order of their positions."""

    def take(self, count: int, least: int, at: int, weight: int = 1) -> None:
        """Count `count` elements, which begin at byte `at` and have at least `least` bytes each.
        Each counts `weight` times. Raises `FrameError`."""
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
        """The step over a topic id. An id that is not zero counts as two elements, because it costs
        the codec 2 microseconds, most of it in Python's UUID."""
        if self.frame[at : at + 16] != _NO_ID:
            self.take(2, 0, at)
        return at + 16

    def refuse_mending(self) -> None:
        """Raise `FrameError`: the body has too many elements to be rewritten."""
        raise FrameError(f"more than {self.limits.mended} elements, not all in a usual form")

    def mend(self, start: int, stop: int, data: bytes) -> None:
        """Note a fix. Raises `FrameError` if the body is too large for fixes."""
        limits = self.limits
        if not self.texts and limits.elements - self.room > limits.mended:
            self.refuse_mending()
        self.fixes.append(Fix(start, stop, data))

    def odd_length(self, field: Field, at: int) -> tuple[int, int]:
        """Read the length or count at byte `at`, -1 for null, and the position after it. Notes a
        fix if it is not in the usual form. Raises `FrameError`."""
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
        """The step over a string whose length is at byte `at`; with `texts` it is checked."""
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
        """Check a string and note a fix if it is not UTF-8. Its length is at byte `start`, and it
        ends before `stop`."""
        self.text_room -= len(raw)
        if self.text_room < 0:
            raise FrameError(f"more than {self.limits.text_bytes} bytes of text, not all UTF-8")
        good = decode_text(raw).encode()
        if good == raw:
            return
        if len(good) > LONGEST_TEXT:
            raise FrameError(f"{field.name}: not UTF-8, and too long to be mended")
        if self.fixes and self.fixes[-1].start == start:
            self.fixes.pop()  # the fix of the length; the new fix replaces length and text
        self.mend(start, stop, field.length.write(len(good)) + good)


def with_fixes(frame: ReadOnlyBuffer, start: int, stop: int, fixes: list[Fix]) -> bytes:
    """Bytes `start` to `stop` of the frame, with the fixes in them applied."""
    pieces: list[ReadOnlyBuffer] = []
    for fix in fixes:
        pieces += (frame[start : fix.start], fix.data)
        start = fix.stop
    pieces.append(frame[start:stop])
    return b"".join(pieces)
