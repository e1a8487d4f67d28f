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


class _Reader:
    """Varints and fields of one decompressed run of records."""

    __slots__ = ("data", "position")

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.position = 0

    def varint(self, most: int = INT_SHIFT) -> int:
        """A zigzag number; its last byte is shifted by `most` at most."""
        number = shift = 0
        while True:
            if self.position >= len(self.data):
                raise RecordsError("records end inside a number")
            byte = self.data[self.position]
            self.position += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > most:
                raise RecordsError("a number of too many bytes")
        return (number >> 1) ^ -(number & 1)

    def take(self, length: int) -> bytes:
        """The next `length` bytes."""
        end = self.position + length
        if length < 0 or end > len(self.data):
            raise RecordsError(f"a field of {length} of {len(self.data) - self.position} bytes")
        start, self.position = self.position, end
        return bytes(self.data[start:end])

    def nullable(self) -> bytes | None:
        """A field behind its length; Kafka takes any negative one for null."""
        length = self.varint()
        return None if length < 0 else self.take(length)

    def header(self) -> tuple[str, bytes | None]:
        """One record header."""
        name = self.take(self.varint())
        return name.decode(errors="replace"), self.nullable()


def records_of(batch: RecordBatch, max_bytes: int = MAX_RECORDS_BYTES) -> Iterator[Record]:
    """The records of `batch` with the offsets its stamp gives them.

    Raises `RecordsError` for anything malformed, and when the records take more than `max_bytes`.
    Source: Kafka protocol guide, "Record".
    """
    payload = memoryview(batch.data)[BATCH_HEADER_BYTES:]
    reader = _Reader(inflate(batch.codec, payload, max_bytes))
    log_append_time = batch.attributes & LOG_APPEND_TIME_BIT
    for _ in range(batch.record_count):
        length = reader.varint()
        end = reader.position + length
        reader.take(1)
        timestamp = batch.base_timestamp + reader.varint(LONG_SHIFT)
        offset = batch.base_offset + reader.varint()
        key, value = reader.nullable(), reader.nullable()
        count = reader.varint()
        if not 0 <= count <= len(reader.data):
            raise RecordsError(f"{count} headers")
        headers = tuple([reader.header() for _ in range(count)])
        if reader.position != end:
            raise RecordsError(f"a record of {length} bytes ends {reader.position - end} behind")
        if log_append_time:
            timestamp = batch.max_timestamp
        yield Record(offset, timestamp, key, value, headers)
    if reader.position != len(reader.data):
        raise RecordsError(f"{len(reader.data) - reader.position} bytes behind the last record")


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
