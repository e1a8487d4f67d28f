"""The broker's checks of the records inside a produced batch (K-CHECKS 18, K-TIMES).

**Theory.** There are three checks, in Kafka's order. Each covers all records before the next one
begins:

* *structure*: the bytes must hold exactly as many records as the header says. An uncompressed
  record must have the length that it states; of a compressed record Kafka ignores the length and
  reads field after field;
* *times*: on a CreateTime topic each record's time must be within the topic's limits around the
  broker's clock; the time -1 means *no time*. In a batch with the flag LogAppendTime all records
  have the header's time; on a LogAppendTime topic a client must not set that flag. Each record that
  fails is one *fault*;
* *places*: compressed records must be numbered 0, 1, 2, ... (uncompressed ones need not: measured).

If a batch is good but its header is wrong (largest time, LogAppendTime flag), its header and CRC
are rewritten; records are never changed. On a LogAppendTime topic the time is set when the batch
gets its place in the log (`appended_at`).

**In slices.** A walk over all records of a batch (`ottla.log.record_walk`) may take seconds. So
`looked_into` is a generator: it yields when its allowance is used up, and its result is the verdict
(docs/decisions/0017). The first walk checks the structure and finds the smallest and the largest
time. Only if these two do not prove all times good, a second walk checks each record. A batch of
one plain record, as most tests send it, needs no walk (`RecordRules.trusts`).

**Bounds** that Kafka does not have (docs/not-implemented.md), each a constant below: the inflated
size of a batch, the number of faults that are reported, and how many records are still checked in a
batch that is already refused for its places.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from ottla.log.errors import InflateError, RecordLengthError, RecordsError
from ottla.log.record_batch import BatchDefect, resealed
from ottla.log.record_layout import Layout
from ottla.log.record_walk import LEAST_RECORD_BYTES, RUN, Allowance, Times, Window, run
from ottla.log.types import (
    BATCH_HEADER_BYTES,
    CODEC_MASK,
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    Millis,
    RecordBatch,
)

UNLIMITED: Millis = 2**63 - 1
MOST_INFLATION = 64
"""A batch may inflate to this many times the topic's max.message.bytes: 64 MiB by default. No
client comes near it, because clients bound a batch before they compress it. A batch that inflates
to more is refused as if it could not be inflated. Kafka has no such bound."""
MOST_FAULTS = 1000
"""At most this many faulty records of a batch are reported; Kafka reports all."""
MOST_MISPLACED = 8192
"""A compressed batch with a wrongly numbered record is refused. This many records behind that one
are still checked, because Kafka would report a broken record first."""
NO_CLOCK: Millis = -1
"""For a caller without a broker's clock: then no time is too early or too late."""

_UNUSUAL = CODEC_MASK | LOG_APPEND_TIME_BIT
_FAULT = 8
"""Extra cost of checking a record's time, in plain records."""
_ONLY_A_VALUE = b"\0\0\0\1"
"""Attributes, time delta, number and the length of a null key."""


class Fault(NamedTuple):
    """What is wrong with one record: its number in the batch, and Kafka's message for it."""

    number: int
    text: str


class Flaw(NamedTuple):
    """Why a batch is refused because of its records."""

    defect: BatchDefect
    faults: tuple[Fault, ...] = ()


Looking: TypeAlias = Generator[None, None, RecordBatch | Flaw]
"""Yields when its allowance is used up; its result is the verdict."""


@dataclass(frozen=True, slots=True)
class RecordRules:
    """What a topic requires of its records: three of its configs, and a switch of the profile."""

    append_time: bool = False
    """message.timestamp.type is LogAppendTime."""
    flag_refused: bool = False
    """A batch with the flag LogAppendTime is refused whatever the type is; otherwise only where it
    is LogAppendTime. Elsewhere the flag is cleared."""
    before_max_ms: Millis = UNLIMITED
    """message.timestamp.before.max.ms"""
    after_max_ms: Millis = 3_600_000
    """message.timestamp.after.max.ms"""

    def trusts(self, batch: RecordBatch, now: Millis) -> bool:
        """Whether `batch` is a single record with only a value, uncompressed, whose time is that of
        the header and is good by these rules. Such a batch needs no further check."""
        data = batch.data
        return (
            batch.record_count == 1
            and not batch.attributes & _UNUSUAL
            and data.startswith(_lone_record(len(data)), BATCH_HEADER_BYTES)
            and data[-1] == 0
            and NO_TIMESTAMP <= batch.max_timestamp == batch.base_timestamp
            and batch.max_timestamp <= now + self.after_max_ms
            and not self.append_time
            and self.before_max_ms == UNLIMITED
        )

    def takes(self, batch: RecordBatch, first: Millis, last: Millis, now: Millis) -> bool:
        """Whether all records with times from `first` to `last` are certainly good. If False, each
        record has to be checked."""
        flagged = batch.attributes & LOG_APPEND_TIME_BIT
        if self.append_time:
            return not flagged
        if flagged and (self.flag_refused or batch.max_timestamp == NO_TIMESTAMP):
            return False
        return now - self.before_max_ms <= first and last <= now + self.after_max_ms


DEFAULT_RULES = RecordRules()
"""The rules of a topic without configs."""


def inspect(
    batch: RecordBatch, rules: RecordRules, now: Millis, max_bytes: int = 1 << 20
) -> RecordBatch | Flaw:
    """As `looked_into`, in one call, however long it takes."""
    looking = looked_into(batch, rules, now, max_bytes=max_bytes, allowance=Allowance())
    found = verdict(looking)
    assert found is not None, "an allowance without end is used up"
    return found


def verdict(looking: Looking) -> RecordBatch | Flaw | None:
    """Go on until the allowance is used up or the result is known. None: there is more to check."""
    try:
        next(looking)
    except StopIteration as end:
        found: RecordBatch | Flaw = end.value
        return found
    return None


def looked_at(batch: RecordBatch, rules: RecordRules, now: Millis) -> RecordBatch | None:
    """The result of `looked_into` for a good batch of few plain records, found faster. None for any
    other batch."""
    count, data = batch.record_count, batch.data
    if count > RUN or batch.attributes & _UNUSUAL:
        return None
    raw: dict[int, None] = {}
    place, end = run(data, BATCH_HEADER_BYTES, 0, count, raw)
    if place != count or end != len(data):
        return None
    deltas = [(each >> 1) ^ -(each & 1) for each in raw]
    largest = batch.base_timestamp + max(deltas)
    if not rules.takes(batch, batch.base_timestamp + min(deltas), largest, now):
        return None
    largest = max(largest, NO_TIMESTAMP)
    if rules.append_time or largest == batch.max_timestamp:
        return batch
    return resealed(batch, batch.attributes, largest)


def looked_into(
    batch: RecordBatch, rules: RecordRules, now: Millis, *, max_bytes: int, allowance: Allowance
) -> Looking:
    """Check the records of `batch`. The result is the batch to store, or what is wrong with it.

    `batch` is as its producer sent it and has passed `check_batch`. `now` is the broker's wall
    clock in ms since 1970; `max_bytes` is the topic's max.message.bytes. If the header is right,
    the result is `batch` itself, else a corrected copy.
    """
    times = Times()
    limit = MOST_INFLATION * max_bytes
    defect = yield from _structure(batch, times, Window(batch, limit, allowance), limit)
    if defect is not None:
        return Flaw(defect)
    flagged = batch.attributes & LOG_APPEND_TIME_BIT != 0
    if flagged:
        first = largest = batch.max_timestamp
    else:
        first = batch.base_timestamp + times.smallest
        largest = batch.base_timestamp + times.largest
    if not rules.takes(batch, first, largest, now):
        judged = _Judged(batch, rules, now)
        yield from judged.judge(Window(batch, limit, allowance))
        if judged.faults:
            return Flaw(BatchDefect.BAD_TIMES, tuple(judged.faults))
        largest = judged.largest
    if batch.codec and times.misplaced is not None:
        return Flaw(BatchDefect.WRONG_PLACES)
    largest = max(largest, NO_TIMESTAMP)
    if rules.append_time or (largest == batch.max_timestamp and not flagged):
        return batch
    return resealed(batch, batch.attributes & ~LOG_APPEND_TIME_BIT, largest)


def _structure(
    batch: RecordBatch, times: Times, window: Window, limit: int
) -> Generator[None, None, BatchDefect | None]:
    """Walk over all records and check their structure. Returns the defect, or None."""
    count = batch.record_count
    try:
        if window.exact or count * LEAST_RECORD_BYTES <= limit:
            yield from times.walk(window, count, MOST_MISPLACED)
        else:
            # So many records cannot fit into the limit. Kafka would first report bytes that cannot
            # be inflated, so inflate them without a walk.
            yield from window.to_the_end()
    except InflateError:
        return BatchDefect.NOT_INFLATABLE
    except RecordLengthError:
        return BatchDefect.ENDLESS_LENGTH if window.exact else BatchDefect.BROKEN_RECORDS
    except RecordsError:
        return BatchDefect.BROKEN_RECORDS
    if times.whole:
        return None
    return BatchDefect.BROKEN_RECORDS if times.misplaced is None else BatchDefect.WRONG_PLACES


def appended_at(batch: RecordBatch, now: Millis) -> RecordBatch:
    """The batch as a LogAppendTime topic stores it: every record has the broker's time `now`."""
    return resealed(batch, batch.attributes | LOG_APPEND_TIME_BIT, now)


# ---- the one plain record


@lru_cache(4096)
def _lone_record(size: int) -> bytes | tuple[()]:
    """The first bytes of the only record of a batch of `size` bytes, if that record has only a
    value and the base timestamp. (Behind the value is one byte 0, the number of headers.) An empty
    tuple if no such record has this size: `startswith` is False for it."""
    length = _length_of(size - BATCH_HEADER_BYTES)
    rest = size - BATCH_HEADER_BYTES - len(length) - len(_ONLY_A_VALUE) - 1
    value = _length_of(rest)
    return length + _ONLY_A_VALUE + value if length and value else ()


def _length_of(size: int) -> bytes:
    """The length field of a part that has `size` bytes including the field itself; empty if there
    is no such length."""
    for width in range(1, 6):
        rest = (size - width) << 1
        digits = [rest >> shift & 0x7F | 0x80 for shift in range(0, 7 * width, 7)]
        digits[-1] &= 0x7F
        if 0 <= rest >> 7 * (width - 1) < 0x80 and (width == 1 or rest >> 7 * (width - 1)):
            return bytes(digits)
    return b""


# ---- times


def _long(number: int) -> int:
    """The number wrapped to 64 bits, as Java does it."""
    return (number + 2**63) % 2**64 - 2**63


class _Judged:
    """Checks the time of each record of a batch whose structure is good."""

    def __init__(self, batch: RecordBatch, rules: RecordRules, now: Millis):
        self._batch = batch
        self._rules = rules
        self._now = now
        self._flagged = batch.attributes & LOG_APPEND_TIME_BIT
        self.faults: list[Fault] = []
        self.largest: Millis = -(2**63)
        """The largest time so far."""

    def judge(self, window: Window) -> Generator[None, None, None]:
        """Check every record, until `MOST_FAULTS` faults are found."""
        batch, allowance = self._batch, window.allowance
        for place in range(batch.record_count):
            allowance.left -= _FAULT
            record = yield from window.record_in_turn()
            time = _long(batch.base_timestamp + record.time_delta)
            if self._flagged:
                time = batch.max_timestamp
            self.largest = max(self.largest, time)
            text = self._fault(record, time)
            if text is not None:
                self.faults.append(Fault(place, text))
                if len(self.faults) == MOST_FAULTS:
                    return

    def _fault(self, record: Layout, time: Millis) -> str | None:
        """Kafka's message for what is wrong with this time; None if nothing is."""
        rules, now = self._rules, self._now
        offset = self._batch.base_offset + record.number
        if not rules.append_time and time != NO_TIMESTAMP:
            if now == NO_CLOCK or not self._out_of_range(time):
                return self._flag_fault(record, time) if rules.flag_refused else None
            earliest, latest = _long(now - rules.before_max_ms), _long(now + rules.after_max_ms)
            return (
                f"Timestamp {time} of message with offset {offset} is out of range. "
                f"The timestamp should be within [{earliest}, {latest}]"
            )
        return self._flag_fault(record, time)

    def _flag_fault(self, record: Layout, time: Millis) -> str | None:
        """Kafka's message for a batch with a flag that only the broker sets; None if it has not."""
        if not self._flagged:
            return None
        offset, codec = self._batch.base_offset + record.number, self._batch.codec
        kind = "PartialDefaultRecord" if codec else "DefaultRecord"
        least = -1 if codec else 0
        key, value = max(record.key_size, least), max(record.value_size, least)
        return (
            f"Invalid timestamp type in message {kind}(offset={offset}, timestamp={time}, "
            f"key={key} bytes, value={value} bytes). "
            "Producer should not set timestamp type to LogAppendTime."
        )

    def _out_of_range(self, time: Millis) -> bool:
        age = _long(self._now - time)
        return age > self._rules.before_max_ms or _long(-age) > self._rules.after_max_ms
