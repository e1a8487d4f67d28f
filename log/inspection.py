"""What a broker asks of the records inside a produced batch (facts/kafka.md 1.2 step 18, 1.7).

**Theory.** Three questions, in Kafka's order, each answered for all records before the next is
asked:

* *structure*: do the bytes hold exactly as many records as the header says? Uncompressed records
  are held to the lengths they state; of compressed ones Kafka believes no length and reads field
  behind field;
* *times*: on a CreateTime topic each record's time must lie within the topic's limits of the
  broker's clock; a record of time -1 has none. A batch flagged LogAppendTime has one time for all
  its records, the header's; on a LogAppendTime topic nobody may set that flag. Each record that
  fails becomes one *fault*;
* *places*: compressed records must be numbered 0, 1, 2, ... (uncompressed ones need not: measured).

A good batch whose header does not tell the truth (largest time, LogAppendTime flag) is rewritten,
with a new CRC; records are never touched. On a LogAppendTime topic the time is set when the batch
gets its place in the log (`appended_at`).

**Cost.** A look at a record costs up to a microsecond in Python, so large uncompressed
batches are not looked into as long as their header gives no reason (`RecordRules.trusts`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ottla.log.errors import RecordsError
from ottla.log.inflate import inflate
from ottla.log.record_batch import BatchDefect, resealed
from ottla.log.types import (
    BATCH_HEADER_BYTES,
    CODEC_MASK,
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    Millis,
    RecordBatch,
)

UNLIMITED: Millis = 2**63 - 1
MAX_INFLATED_BYTES = 64 * 1024 * 1024
"""A batch that inflates to more is refused as if it did not inflate; Kafka has no such bound."""
NO_CLOCK: Millis = -1
"""Where a batch is judged without a broker's clock, no time is too early or too late."""

INT_SHIFT, LONG_SHIFT = 28, 63
"""Where the last byte of a number of 32 and of 64 bits may stand: five bytes, and ten."""
_UNUSUAL = CODEC_MASK | LOG_APPEND_TIME_BIT
_LEAST_RECORD_BYTES = 7
_ONLY_A_VALUE = b"\0\0\0\1"
"""Attributes, time delta, number and the length of a key that is null."""


class Fault(NamedTuple):
    """What is wrong with one record: its number in the batch, and Kafka's words for it."""

    number: int
    text: str


class Flaw(NamedTuple):
    """Why a batch is refused for its records."""

    defect: BatchDefect
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordRules:
    """What a topic asks of its records: three of its configs, and a setting of the cluster."""

    append_time: bool = False
    """message.timestamp.type is LogAppendTime."""
    before_max_ms: Millis = UNLIMITED
    """message.timestamp.before.max.ms"""
    after_max_ms: Millis = 3_600_000
    """message.timestamp.after.max.ms"""
    looked_into: int = 0
    """Uncompressed batches of at most so many records are always looked into."""

    def trusts(self, batch: RecordBatch, now: Millis) -> bool:
        """Whether the header is enough, or the one record is of the plainest kind."""
        if batch.attributes & _UNUSUAL or self.append_time or self.before_max_ms != UNLIMITED:
            return False
        if batch.max_timestamp > now + self.after_max_ms:
            return False
        data, count = batch.data, batch.record_count
        if count > self.looked_into:
            return count * _LEAST_RECORD_BYTES <= len(data) - BATCH_HEADER_BYTES
        return (
            count == 1
            and data.startswith(_lone_record(len(data)), BATCH_HEADER_BYTES)
            and data[-1] == 0
            and batch.max_timestamp == batch.base_timestamp
        )

    def takes(self, base: Millis, deltas: list[int], now: Millis) -> bool:
        """Whether all of these times are surely good; if not, each has to be looked at."""
        return self.append_time or (
            now - self.before_max_ms <= base + min(deltas)
            and base + max(deltas) <= now + self.after_max_ms
        )


DEFAULT_RULES = RecordRules()
"""What a topic without configs asks."""


def inspect(batch: RecordBatch, rules: RecordRules, now: Millis) -> RecordBatch | Flaw:
    """The batch as it is to be stored, or what is wrong with its records.

    `batch` is as its producer sent it and has passed `check_batch`; `now` is the broker's wall
    clock, ms since 1970. The batch itself comes back where its header tells the truth.
    """
    if rules.trusts(batch, now):
        return batch
    data, at = batch.data, BATCH_HEADER_BYTES
    compressed = batch.attributes & CODEC_MASK
    if compressed:
        try:
            data = bytes(inflate(compressed, memoryview(data)[at:], MAX_INFLATED_BYTES))
        except RecordsError:
            return Flaw(BatchDefect.NOT_INFLATABLE)
        at = 0
    try:
        deltas, numbered = _time_deltas(data, at, batch.record_count, exact=not compressed)
    except RecordsError:
        return Flaw(BatchDefect.BROKEN_RECORDS)
    flagged = batch.attributes & LOG_APPEND_TIME_BIT != 0
    if flagged or not rules.takes(batch.base_timestamp, deltas, now):
        faults = tuple(_faults(batch, data[at:], rules, now))
        if faults:
            return Flaw(BatchDefect.BAD_TIMES, faults)
    if compressed and not numbered:
        return Flaw(BatchDefect.WRONG_PLACES)
    largest = batch.max_timestamp if flagged else _long(batch.base_timestamp + max(deltas))
    largest = max(largest, NO_TIMESTAMP)
    if rules.append_time or (largest == batch.max_timestamp and not flagged):
        return batch
    return resealed(batch, batch.attributes & ~LOG_APPEND_TIME_BIT, largest)


def appended_at(batch: RecordBatch, now: Millis) -> RecordBatch:
    """The batch as a LogAppendTime topic stores it: every record has the broker's time `now`."""
    return resealed(batch, batch.attributes | LOG_APPEND_TIME_BIT, now)


# ---- structure


class _Record(NamedTuple):
    """One record's numbers; -1 stands for the size of what is null."""

    time_delta: int
    number: int
    key_size: int
    value_size: int


def _time_deltas(data: bytes, at: int, count: int, *, exact: bool) -> tuple[list[int], bool]:
    """The time of each of the `count` records from `at` to the end, as the distance from the base
    timestamp; and whether they are numbered from 0. `exact`: they are as long as they say.

    Nearly every record has no headers, lengths of one or two bytes, and else numbers of one byte:
    such a one is read here, without a call, and any other by `_record`.
    """
    deltas: list[int] = []
    numbered = True
    for place in range(count):
        try:
            length = data[at]
            if length < 0x80:
                head = at + 1
            else:
                length = data[at + 1] << 7 | length & 0x7F
                head = at + 2
            time, key = data[head + 1], data[head + 3]
            value_at = head + 4 if key & 1 else head + 4 + (key >> 1)
            size = data[value_at]
            if size >= 0x80:
                value_at += 1
                size = data[value_at] << 7 | size & 0x7F
            end = value_at + (size >> 1) + 2
            if (
                end == head + (length >> 1)
                and data[end - 1] == 0
                and data[head + 2] == place << 1 < 0x80
                and (length | size) & 1 == 0
                and (length | size) < 0x4000
                and time < 0x80
                and key < 0x80
            ):
                deltas.append(time >> 1 ^ -(time & 1))
                at = end
                continue
        except IndexError:
            pass  # it is none of these, if it is a record at all
        record, at = _record(data, at, exact=exact)
        deltas.append(record.time_delta)
        numbered = numbered and record.number == place
    if at != len(data):
        raise RecordsError(f"{len(data) - at} bytes behind the last record")
    return deltas, numbered


@lru_cache(4096)
def _lone_record(size: int) -> bytes | tuple[()]:
    """How the only record of a batch of `size` bytes begins if it has nothing but a value, and the
    batch's base timestamp; behind the value stands the number of headers, one 0. No such record has
    some of the sizes: nothing begins with an empty tuple."""
    length = _length_of(size - BATCH_HEADER_BYTES)
    rest = size - BATCH_HEADER_BYTES - len(length) - len(_ONLY_A_VALUE) - 1
    value = _length_of(rest)
    return length + _ONLY_A_VALUE + value if length and value else ()


def _length_of(size: int) -> bytes:
    """The length, as a number in front, of what together with it takes `size` bytes."""
    for width in range(1, 6):
        rest = (size - width) << 1
        digits = [rest >> shift & 0x7F | 0x80 for shift in range(0, 7 * width, 7)]
        digits[-1] &= 0x7F
        if 0 <= rest >> 7 * (width - 1) < 0x80 and (width == 1 or rest >> 7 * (width - 1)):
            return bytes(digits)
    return b""


def _record(data: bytes, at: int, *, exact: bool) -> tuple[_Record, int]:
    """One record, whatever it looks like, and what lies behind it."""
    length, at = _varint(data, at)
    end = at + length
    time_delta, at = _varint(data, at + 1, LONG_SHIFT)
    number, at = _varint(data, at)
    key_size, at = _field(data, at)
    value_size, at = _field(data, at)
    headers, at = _varint(data, at)
    if not 0 <= headers <= len(data):
        raise RecordsError(f"{headers} headers")
    for _ in range(headers):
        name_size, at = _field(data, at)
        if name_size < 0:
            raise RecordsError("a header without a name")
        _, at = _field(data, at)
    if exact and at != end:
        raise RecordsError(f"a record of {length} bytes ends {at - end} behind")
    return _Record(time_delta, number, key_size, value_size), at


def _varint(data: bytes, at: int, most: int = INT_SHIFT) -> tuple[int, int]:
    """A zigzag number, and what lies behind it; its last byte is shifted by `most` at most."""
    number = shift = 0
    while True:
        if at >= len(data):
            raise RecordsError("records end inside a number")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
        if shift > most:
            raise RecordsError("a number of too many bytes")


def _field(data: bytes, at: int) -> tuple[int, int]:
    """Size of a field behind its length, and what lies behind it; any negative length is null."""
    size, at = _varint(data, at)
    if size < 0:
        return -1, at
    if at + size > len(data):
        raise RecordsError(f"a field of {size} of {len(data) - at} bytes")
    return size, at + size


# ---- times


def _long(number: int) -> int:
    """As Java's 64 bits wrap."""
    return (number + 2**63) % 2**64 - 2**63


def _faults(batch: RecordBatch, data: bytes, rules: RecordRules, now: Millis) -> Iterator[Fault]:
    """What is wrong with the times of the records in `data`, whose structure is sound."""
    flagged = batch.attributes & LOG_APPEND_TIME_BIT
    kind = "PartialDefaultRecord" if batch.codec else "DefaultRecord"
    at = 0
    for place in range(batch.record_count):
        record, at = _record(data, at, exact=False)
        time = _long(batch.base_timestamp + record.time_delta)
        if flagged:
            time = batch.max_timestamp
        offset = batch.base_offset + record.number
        if not rules.append_time and time != NO_TIMESTAMP:
            if now != NO_CLOCK and _out_of_range(time, rules, now):
                earliest, latest = _long(now - rules.before_max_ms), _long(now + rules.after_max_ms)
                yield Fault(
                    place,
                    f"Timestamp {time} of message with offset {offset} is out of range. "
                    f"The timestamp should be within [{earliest}, {latest}]",
                )
        elif flagged:
            key, value = (max(each, -1 if batch.codec else 0) for each in record[2:])
            sizes = f"key={key} bytes, value={value} bytes"
            yield Fault(
                place,
                f"Invalid timestamp type in message {kind}(offset={offset}, timestamp={time}, "
                f"{sizes}). Producer should not set timestamp type to LogAppendTime.",
            )


def _out_of_range(time: Millis, rules: RecordRules, now: Millis) -> bool:
    age = _long(now - time)
    return age > rules.before_max_ms or _long(-age) > rules.after_max_ms
