"""Walks over the records of a batch, piece by piece, without decoding their content.

**Theory.** A batch may have one record for every seven bytes, and may inflate to very many bytes,
so a walk over it can take seconds. All walks share one event loop with everything else. Therefore a
walk is a generator that spends an `Allowance` and yields when it is used up. The caller lets others
run, refills the allowance and continues the walk. The allowance is counted in records and bytes,
never in time, so that a simulation can repeat the walk.

There are three ways to step over a record; the first one that works is taken:

* *plain* (`run`): for a record with no headers, a key of at most 63 bytes, lengths of at most two
  bytes, and its place as its number. Nearly every record is of this kind. Up to 64 of them are
  stepped over in one call, because within such a run only one byte of the number changes;
* *whole* (`ottla.log.record_layout`): for any record that is completely in the window, the part of
  the batch that is inflated;
* *in parts* (`Window.record`): for all others. A record may be larger than the window, which then
  moves over the record, or may have a million headers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterator
from functools import lru_cache
from typing import TypeAlias

from ottla.log.errors import InflateError, RecordsError
from ottla.log.inflate import Piece, inflated
from ottla.log.record_layout import (
    INT_BITS,
    LONG_BITS,
    Layout,
    ManyHeadersError,
    layout,
    plain_headers,
    record_length,
    varint,
)
from ottla.log.types import BATCH_HEADER_BYTES, CODEC_MASK, RecordBatch, Unpacked

LEAST_RECORD_BYTES = 7
"""The smallest record: seven numbers of one byte."""

SLICE = 8192
"""How many plain records are walked over before others may run: about 5 ms."""
BYTES_PER_RECORD = 128
"""Inflating this many bytes takes about as long as walking over one plain record."""
_RECORD, _PIECE, _HEADER = 12, 16, 4
"""The cost of a record that is not plain, of a piece, and of a header; unit: one plain record."""
_HEADERS = 1024
"""How many plain headers are stepped over at once; each costs less than a plain record."""
_MOST_HEADER_BYTES = 256
"""At most this many bytes of a record's headers are charged to the allowance."""
WORK_PER_BYTE = 32
"""The work for one batch is limited to its inflation limit in bytes divided by this, in plain
records. A batch inflates to at most 64 times max.message.bytes, so this is 2 plain records for each
byte of max.message.bytes. No uncompressed batch can need more."""
LEAST_WORK = 1_000
"""Every batch may take at least this work, in plain records, even if max.message.bytes is small."""
_Unpack: TypeAlias = Callable[[bytes | memoryview, int], tuple[Unpacked, ...]]
RUN = 64
"""Length of a run of records whose numbers differ in one byte only."""
_ANY_SIZE = 2**63


class Allowance:
    """How much work may still be done before others may run, in plain records."""

    __slots__ = ("left",)

    def __init__(self, left: int = 2**63):
        self.left = left


Walk: TypeAlias = Generator[None, None, None]
"""Yields when its allowance is used up."""


# ---- plain records


@lru_cache(1024)
def _shape(group: int) -> tuple[bytes, _Unpack, _Unpack]:
    """How to read the records of a run: the bytes that follow the first byte of their numbers, and
    two functions that unpack time, number and key length, for times of one and of two bytes."""
    rest, high = b"", group
    while high:
        rest += bytes([high & 0x7F | (0x80 if high > 0x7F else 0)])
        high >>= 7
    form = f"B{len(rest)}sB"
    return rest, struct.Struct("<xB" + form).unpack_from, struct.Struct("<xBB" + form).unpack_from


def run(data: bytes, at: int, place: int, count: int, times: dict[int, None]) -> tuple[int, int]:
    """Step over plain records from the one at `place` on, at most to the end of its run.

    Returns the place of the first record that is not stepped over, and the position where it
    begins. Adds the undecoded time deltas of the others to `times`.
    """
    rest, narrow, wide = _shape(group := place // RUN)
    first = 0x80 if rest else 0
    stop = first + (min(RUN, count - group * RUN) << 1)
    behind = 3 + len(rest)
    number = begin = first + (place % RUN << 1)
    seen = -1
    try:
        for number in range(begin, stop, 2):
            length = data[at]
            if length < 0x80:
                head = at + 1
            else:
                high = data[at + 1]
                length = high << 7 | length & 0x7F
                head = at + 2
                if high >= 0x80:
                    break
            time, low, tail, key = narrow(data, head)
            value_at = head + behind
            if time >= 0x80:
                time, high, low, tail, key = wide(data, head)
                value_at += 1
                time = time & 0x7F | high << 7
                if high >= 0x80:
                    break
            value_at += 1 if key & 1 else 1 + (key >> 1)
            size = data[value_at]
            if size >= 0x80:
                value_at += 1
                size = data[value_at] << 7 | size & 0x7F
            end = value_at + (size >> 1) + 2
            if (
                end != head + (length >> 1)
                or low != number
                or tail != rest
                or key >= 0x80
                or (length | size) & 1
                or size >= 0x4000
                or data[end - 1]
            ):
                break
            if time != seen:
                times[seen := time] = None
            at = end
        else:
            number = stop
    except (IndexError, struct.error):
        pass  # the rest of this record may be in the next piece
    return group * RUN + (number - first >> 1), at


# ---- the window


class Window:
    """The inflated part of a batch's records that is in memory. It moves forward, never back."""

    __slots__ = ("_begin", "_pieces", "_work", "allowance", "at", "data", "exact")

    def __init__(self, batch: RecordBatch, limit: int, allowance: Allowance):
        codec = batch.attributes & CODEC_MASK
        self.allowance = allowance
        self.exact = not codec
        """Whether a record must have the length that it states."""
        self.data = batch.data
        self.at = BATCH_HEADER_BYTES
        self._begin = 0
        """How many bytes the window has moved over."""
        self._work = LEAST_WORK + limit // WORK_PER_BYTE
        """How much work may still be done for this batch, in plain records."""
        self._pieces: Iterator[Piece] = iter(())
        if codec:
            records = memoryview(batch.data)[BATCH_HEADER_BYTES:]
            self._pieces = inflated(codec, records, limit)
            self.data, self.at = b"", 0

    @classmethod
    def to_read(cls, batch: RecordBatch, allowance: Allowance) -> Window:
        """A window for a stored batch: a reader checks record lengths, also if it is compressed."""
        window = cls(batch, _ANY_SIZE, allowance)
        window.exact = True
        return window

    def spend(self, work: int) -> None:
        """Charge work, in plain records, to the allowance and to the batch. Raises `InflateError`
        if the batch needs more work than its limit: a few compressed kilobytes may hold millions of
        headers, and other clients of the partition would wait for them."""
        self.allowance.left -= work
        self._work -= work
        if self._work < 0:
            raise InflateError("a batch that takes too much work to be looked into")

    def more(self) -> Generator[None, None, bool]:
        """Inflate one more piece and add it to the window. Returns False if there is none. Raises
        `InflateError`."""
        allowance = self.allowance
        while True:
            while allowance.left <= 0:
                yield
            piece, worked = next(self._pieces, (None, 0))
            self.spend(_PIECE + worked // BYTES_PER_RECORD)
            if piece is None:
                return False
            if piece:
                self.data = self.data[self.at :] + piece if self.at < len(self.data) else piece
                self._begin, self.at = self._begin + self.at, 0
                return True

    def to_the_end(self) -> Walk:
        """Inflate all that is left and drop it. Raises `InflateError`."""
        while (yield from self.more()):
            self.at = len(self.data)

    def record(self) -> Generator[None, None, Layout]:
        """Step over one record of any kind and return its layout. The positions in it are -1 if the
        record was read in parts. Raises `RecordsError`."""
        self.spend(_RECORD)
        try:
            found = layout(self.data, self.at, exact=self.exact)
        except (IndexError, ManyHeadersError):
            return (yield from self._in_parts())
        self.spend(min(found.end - found.headers_at, _MOST_HEADER_BYTES))
        self.at = found.end
        return found

    def record_in_turn(self) -> Generator[None, None, Layout]:
        """As `record`, but yields first while the allowance is used up."""
        while self.allowance.left <= 0:
            yield
        return (yield from self.record())

    def _in_parts(self) -> Generator[None, None, Layout]:
        self.spend(_PIECE)
        length = yield from self._number(first=True)
        end = self._begin + self.at + length
        yield from self._skip(1)
        time = yield from self._number(LONG_BITS)
        number = yield from self._number()
        key_size = yield from self._number()
        yield from self._skip(key_size)
        value_size = yield from self._number()
        yield from self._skip(value_size)
        headers = yield from self._number()
        if headers < 0:
            raise RecordsError(f"{headers} headers")
        while headers:
            done, self.at = plain_headers(self.data, self.at, min(headers, _HEADERS))
            self.spend(done)
            if not done:
                yield from self._header()
            headers -= max(done, 1)
            while self.allowance.left <= 0:
                yield
        behind = self._begin + self.at - end
        if self.exact and behind:
            raise RecordsError(f"a record of {length} bytes ends {behind} behind")
        return Layout(time, number, -1, key_size, -1, value_size, -1, self.at)

    def _header(self) -> Walk:
        self.spend(_HEADER)
        size = yield from self._number()
        if size < 0:
            raise RecordsError("a header without a name")
        yield from self._skip(size)
        size = yield from self._number()
        yield from self._skip(size)

    def _number(self, bits: int = INT_BITS, *, first: bool = False) -> Generator[None, None, int]:
        while True:
            try:
                if first:
                    number, self.at = record_length(self.data, self.at)
                else:
                    number, self.at = varint(self.data, self.at, bits)
            except IndexError:
                if not (yield from self.more()):
                    raise RecordsError("records end inside a number") from None
            else:
                return number

    def _skip(self, size: int) -> Walk:
        while size > (there := len(self.data) - self.at):
            size -= there
            self.at = len(self.data)
            if not (yield from self.more()):
                raise RecordsError(f"records end {size} bytes inside a field")
        self.at += max(size, 0)


# ---- the walk


class Times:
    """The result of a walk: time deltas, and the first wrongly numbered record."""

    __slots__ = ("_raw", "largest", "misplaced", "smallest", "whole")

    def __init__(self) -> None:
        self._raw: dict[int, None] = {}
        """Undecoded time deltas of plain records; a dict used as an ordered set."""
        self.smallest, self.largest = 2**63, -(2**63)
        """Smallest and largest time delta, once the walk is over."""
        self.misplaced: int | None = None
        """Place of the first record whose number differs from its place."""
        self.whole = False
        """Whether all records were walked over."""

    def walk(self, window: Window, count: int, most_misplaced: int) -> Walk:
        """Walk over `count` records. Raises `RecordsError`, also if there are more.

        Compressed records must be numbered by their places. After the first one that is not, only
        `most_misplaced` more records are checked, because the batch is refused anyway.
        """
        allowance, place, raw = window.allowance, 0, self._raw
        while place < count:
            while allowance.left <= 0:
                yield
            before = place
            place, window.at = run(window.data, window.at, place, count, raw)
            window.spend(place - before)
            if place == count or (place % RUN == 0 and place > before):
                continue
            record = yield from window.record()
            self._note(record, place)
            place += 1
            wrong = self.misplaced
            if wrong is not None and place - wrong > most_misplaced and not window.exact:
                return
        if window.at < len(window.data) or (yield from window.more()):
            raise RecordsError("there is more behind the last record")
        self.whole = True
        self._finish()

    def _note(self, record: Layout, place: int) -> None:
        time = record.time_delta
        self.smallest = min(self.smallest, time)
        self.largest = max(self.largest, time)
        if record.number != place and self.misplaced is None:
            self.misplaced = place

    def _finish(self) -> None:
        for raw in self._raw:
            time = (raw >> 1) ^ -(raw & 1)
            self.smallest = min(self.smallest, time)
            self.largest = max(self.largest, time)
