"""Looking inside a batch: the records, for the few rules that need them.

**Theory.** A broker treats records as bytes; only ListOffsets by time, proofs and tests look inside
(facts/kafka.md 8b). What they look at was sent by a client and checked by nothing but a CRC, so
everything here is written against malice: whatever is wrong with the bytes, `RecordsError` comes
out and nothing else. Decompression is in `ottla.log.inflate`, what a producer's records must be
like in `ottla.log.inspection`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ottla.log.errors import RecordsError
from ottla.log.inflate import inflate
from ottla.log.inspection import INT_SHIFT, LONG_SHIFT
from ottla.log.record_batch import read_batch
from ottla.log.types import (
    BATCH_HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    Millis,
    Offset,
    RecordBatch,
)

MAX_RECORDS_BYTES = 64 * 1024 * 1024
"""Largest decompressed size that is looked at, unless the caller says otherwise."""


class Record(NamedTuple):
    """One record with its place in the log; `timestamp` in ms since 1970."""

    offset: Offset
    timestamp: Millis
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def _number(data: bytes, at: int, most: int = INT_SHIFT) -> tuple[int, int]:
    """A zigzag number, and what lies behind it; its last byte is shifted by `most` at most.

    Raises `IndexError` where the data ends inside it. Small ones are read where they stand: a call
    costs more than they do.
    """
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
        if shift > most:
            raise RecordsError("a number of too many bytes")


def _field(data: bytes, at: int) -> tuple[bytes | None, int]:
    """A field behind its length, and what lies behind it; Kafka takes any negative length for
    null."""
    length = data[at]
    if length < 0x80:
        length = (length >> 1) ^ -(length & 1)
        at += 1
    else:
        length, at = _number(data, at)
    if length < 0:
        return None, at
    end = at + length
    if end > len(data):
        raise RecordsError(f"a field of {length} of {len(data) - at} bytes")
    return data[at:end], end


def _headers(data: bytes, at: int, count: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    """So many record headers, and what lies behind them."""
    found = []
    for _ in range(count):
        size, begin = _number(data, at)
        at = begin + size
        if size < 0 or at > len(data):
            raise RecordsError(f"a field of {size} of {len(data) - begin} bytes")
        name = data[begin:at].decode(errors="replace")
        value, at = _field(data, at)
        found.append((name, value))
    return tuple(found), at


def _record(data: bytes, start: int, batch: RecordBatch) -> tuple[Record, int]:
    """The record that starts there, and where the next one does. Raises `IndexError` too, where
    the data ends inside a number."""
    length, at = _number(data, start)
    end = at + length
    time = data[at + 1]
    if time < 0x80:
        time = (time >> 1) ^ -(time & 1)
        at += 2
    else:
        time, at = _number(data, at + 1, LONG_SHIFT)
    delta, at = _number(data, at)
    key, at = _field(data, at)
    value, at = _field(data, at)
    count = data[at]
    headers: tuple[tuple[str, bytes | None], ...] = ()
    if count:
        count, at = _number(data, at)
        if not 0 <= count <= len(data):
            raise RecordsError(f"{count} headers")
        headers, at = _headers(data, at, count)
    else:
        at += 1
    if at != end:
        raise RecordsError(f"a record of {length} bytes ends {at - end} behind")
    if batch.attributes & LOG_APPEND_TIME_BIT:
        timestamp = batch.max_timestamp
    else:
        timestamp = batch.base_timestamp + time
    return Record(batch.base_offset + delta, timestamp, key, value, headers), at


def records_of(batch: RecordBatch, max_bytes: int = MAX_RECORDS_BYTES) -> Iterator[Record]:
    """The records of `batch` with the offsets its stamp gives them.

    Raises `RecordsError` for anything malformed, and when the records take more than `max_bytes`.
    Source: Kafka protocol guide, "Record".
    """
    payload = memoryview(batch.data)[BATCH_HEADER_BYTES:]
    data, at = bytes(inflate(batch.codec, payload, max_bytes)), 0
    for _ in range(batch.record_count):
        try:
            record, at = _record(data, at, batch)
        except IndexError:
            raise RecordsError("records end inside a number") from None
        yield record
    if at != len(data):
        raise RecordsError(f"{len(data) - at} bytes behind the last record")


def iter_records(data: bytes, max_bytes: int = MAX_RECORDS_BYTES) -> Iterator[Record]:
    """The records of the one batch in `data`. Raises `RecordsError`."""
    batch = read_batch(data)
    if not isinstance(batch, RecordBatch):
        raise RecordsError(batch.value)
    return records_of(batch, max_bytes)


def first_record_at_or_after(
    batch: RecordBatch,
    timestamp: Millis,
    max_bytes: int = MAX_RECORDS_BYTES,
    *,
    start: Offset = 0,
) -> tuple[Offset, Millis] | None:
    """Offset and time of the first record whose time is `timestamp` or later; None without one.

    Records below `start`, the log start offset, count as deleted. Answers ListOffsets by time
    (facts/kafka.md 8b). Raises `RecordsError`.
    """
    for record in records_of(batch, max_bytes):
        if record.timestamp >= timestamp and record.offset >= start:
            return record.offset, record.timestamp
    return None


def record_of_max_timestamp(
    batch: RecordBatch, max_bytes: int = MAX_RECORDS_BYTES, *, start: Offset = 0
) -> tuple[Offset, Millis]:
    """Offset and time of the first record with the largest time: ListOffsets -3 (8b).

    By the records, not by the header's max_timestamp, which a client may have got wrong. Records
    below `start`, the log start offset, count as deleted. Raises `RecordsError`, also for a batch
    without any other.
    """
    best: tuple[Offset, Millis] | None = None
    for record in records_of(batch, max_bytes):
        if record.offset >= start and (best is None or record.timestamp > best[1]):
            best = record.offset, record.timestamp
    if best is None:
        raise RecordsError(f"a batch without records from {start} on")
    return best
