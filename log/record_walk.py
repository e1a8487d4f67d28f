"""Walking over the records of a batch, a piece at a time, without making anything of them.

**Theory.** A batch may hold a record for every seven bytes, and may inflate to far more bytes than
it is, so a walk over it can take seconds. Whoever walks shares one event loop with all others.
Therefore a walk is a generator: it works off an `Allowance`, which is counted in records and bytes
and never in time (a simulation has to repeat it), and yields when that is used up. Its user
refills the allowance, lets others go on, and comes back.

Three ways over a record, each taken where the one before it does not do:

* *plain* (`run`): no headers, a key of at most 63 bytes, lengths of at most two bytes, its place
  for a number. Nearly every record is of this kind; up to 64 of them are stepped over without a
  call in between, because within such a run only one byte of the number changes;
* *whole* (`ottla.log.record_layout`): any record that lies in the window, the part of the batch
  that is inflated;
* *in parts* (`Window.record`): the rest. A record may be larger than the window, which then moves
  on over it, or may have a million headers.
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
"""No record is shorter: seven numbers of one byte."""

SLICE = 8192
"""Plain records that may be walked over before others have their turn: some 5 ms."""
BYTES_PER_RECORD = 128
"""Inflating so many bytes takes about as long as walking over one plain record."""
_RECORD, _PIECE, _HEADER = 12, 16, 4
"""What a record that is not plain, a piece and a header cost, in plain records."""
_HEADERS = 1024
"""Plain headers that are stepped over at once; each takes less than a plain record."""
_MOST_HEADER_BYTES = 256
"""Of a record's headers that are charged for: `MOST_HEADERS` empty ones, and a few."""
WORK_PER_BYTE = 32
"""A batch may inflate to so many bytes for each plain record's worth of work that it may take. As
batches inflate to 64 times max.message.bytes at the most, that is 2 for each of these bytes: more
than any batch could ask for that is not compressed."""
LEAST_WORK = 1_000
"""What any batch may take, however small those of its topic have to be."""
_Unpack: TypeAlias = Callable[[bytes | memoryview, int], tuple[Unpacked, ...]]
RUN = 64
"""Records whose numbers differ in one byte only."""
_ANY_SIZE = 2**63


class Allowance:
    """How much may still be looked into before others have their turn, in plain records."""

    __slots__ = ("left",)

    def __init__(self, left: int = 2**63):
        self.left = left


Walk: TypeAlias = Generator[None, None, None]
"""Yields when its allowance is used up."""


# ---- plain records


@lru_cache(1024)
def _shape(group: int) -> tuple[bytes, _Unpack, _Unpack]:
    """How the records of a run are read: what follows the first byte of their numbers, and from
    their attributes on time, number and the key's length, for times of one byte and of two."""
    rest, high = b"", group
    while high:
        rest += bytes([high & 0x7F | (0x80 if high > 0x7F else 0)])
        high >>= 7
    form = f"B{len(rest)}sB"
    return rest, struct.Struct("<xB" + form).unpack_from, struct.Struct("<xBB" + form).unpack_from


def run(data: bytes, at: int, place: int, count: int, times: dict[int, None]) -> tuple[int, int]:
    """Step over plain records from the one at `place` on, to the end of its run at most.

    Returns the place of the first record that is not stepped over, and where it begins. Adds their
    times, as they stand there, to `times`.
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
        pass  # it goes on in the next piece, if at all
    return group * RUN + (number - first >> 1), at


# ---- the window


class Window:
    """The part of a batch's records that is at hand; it moves over them, and never back."""

    __slots__ = ("_begin", "_pieces", "_work", "allowance", "at", "data", "exact")

    def __init__(self, batch: RecordBatch, limit: int, allowance: Allowance):
        codec = batch.attributes & CODEC_MASK
        self.allowance = allowance
        self.exact = not codec
        """Records are as long as they say."""
        self.data = batch.data
        self.at = BATCH_HEADER_BYTES
        self._begin = 0
        """Bytes that the window has moved over."""
        self._work = LEAST_WORK + limit // WORK_PER_BYTE
        """Plain records' worth that may still be done for this batch."""
        self._pieces: Iterator[Piece] = iter(())
        if codec:
            records = memoryview(batch.data)[BATCH_HEADER_BYTES:]
            self._pieces = inflated(codec, records, limit)
            self.data, self.at = b"", 0

    @classmethod
    def to_read(cls, batch: RecordBatch, allowance: Allowance) -> Window:
        """For a stored batch, which a reader holds to its lengths, compressed or not."""
        window = cls(batch, _ANY_SIZE, allowance)
        window.exact = True
        return window

    def spend(self, work: int) -> None:
        """Take so many plain records' worth from the allowance. Raises `InflateError` where the
        batch asks for more than any could that is not compressed: a few kilobytes may hold
        millions of headers, and would keep its partition from everybody for as long."""
        self.allowance.left -= work
        self._work -= work
        if self._work < 0:
            raise InflateError("a batch that takes too much work to be looked into")

    def more(self) -> Generator[None, None, bool]:
        """Inflate a piece more, behind what is left of this one. Returns False where there is
        none. Raises `InflateError`."""
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
        """Inflate all that is left, for nothing. Raises `InflateError`."""
        while (yield from self.more()):
            self.at = len(self.data)

    def record(self) -> Generator[None, None, Layout]:
        """Step over one record, whatever it looks like. The positions in what is returned hold
        where the record lay in the window whole. Raises `RecordsError`."""
        self.spend(_RECORD)
        try:
            found = layout(self.data, self.at, exact=self.exact)
        except (IndexError, ManyHeadersError):
            return (yield from self._in_parts())
        self.spend(min(found.end - found.headers_at, _MOST_HEADER_BYTES))
        self.at = found.end
        return found

    def record_in_turn(self) -> Generator[None, None, Layout]:
        """The same, once there is allowance for it."""
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
    """What a walk has found."""

    __slots__ = ("_raw", "largest", "misplaced", "smallest", "whole")

    def __init__(self) -> None:
        self._raw: dict[int, None] = {}
        """Time deltas of plain records, as they stand there; a set that has an order."""
        self.smallest, self.largest = 2**63, -(2**63)
        """Of the time deltas, once the walk is over."""
        self.misplaced: int | None = None
        """Place of the first record whose number is another."""
        self.whole = False
        """All records were walked over."""

    def walk(self, window: Window, count: int, most_misplaced: int) -> Walk:
        """Over `count` records, which have to be all. Raises `RecordsError`.

        Compressed records have to be numbered by their places. Behind one that is not, only
        `most_misplaced` are looked at: the batch is refused, whatever comes.
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
