"""Reads the records inside a stored batch, for the few users that need them.

**Theory.** A broker treats records as bytes; only ListOffsets by time, proofs and tests read them
(K-LIST-OFFSETS). The bytes come from a client, so they may be malicious: for any malformed input
this module raises `RecordsError` and no other error.

Proofs and tests read a batch in one call (`records_of`). A broker searches a batch in slices
(`ottla.log.record_walk`): a search is a generator that yields when its allowance is used up. The
checks of a produced batch are in `ottla.log.inspection`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple, TypeAlias

from ottla.log.errors import RecordsError
from ottla.log.inflate import inflate
from ottla.log.record_batch import read_batch
from ottla.log.record_layout import Layout, layout, varint
from ottla.log.record_walk import Allowance, Window
from ottla.log.types import (
    BATCH_HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    Millis,
    Offset,
    RecordBatch,
)

MAX_RECORDS_BYTES = 64 * 1024 * 1024
"""Default limit of the decompressed size."""
_ANY_NUMBER = 2**31

Found: TypeAlias = tuple[Offset, Millis] | None
"""Offset and time of the record that was found; None if there is none."""
Search: TypeAlias = Generator[None, None, Found]
"""Yields when its allowance is used up; its result is `Found`."""


class Record(NamedTuple):
    """One record with its place in the log; `timestamp` in ms since 1970."""

    offset: Offset
    timestamp: Millis
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def _part(data: bytes, at: int, size: int) -> bytes | None:
    """`size` bytes at `at`; None for a negative size, which means null in Kafka."""
    return data[at : at + size] if size >= 0 else None


def _headers(data: bytes, at: int) -> tuple[tuple[str, bytes | None], ...]:
    """The headers of a record; `at` is the position of their number. Their structure was
    checked."""
    found = []
    count, at = varint(data, at)
    for _ in range(count):
        size, at = varint(data, at)
        name = data[at : at + size].decode(errors="replace")
        size, at = varint(data, at + size)
        found.append((name, _part(data, at, size)))
        at += max(size, 0)
    return tuple(found)


def _time(batch: RecordBatch, record: Layout) -> Millis:
    if batch.attributes & LOG_APPEND_TIME_BIT:
        return batch.max_timestamp
    return batch.base_timestamp + record.time_delta


def records_of(batch: RecordBatch, max_bytes: int = MAX_RECORDS_BYTES) -> Iterator[Record]:
    """The records of `batch`, with offsets by its stamp.

    Raises `RecordsError` if they are malformed or take more than `max_bytes` decompressed. Source:
    Kafka protocol guide, "Record".
    """
    payload = memoryview(batch.data)[BATCH_HEADER_BYTES:]
    data, at = inflate(batch.codec, payload, max_bytes), 0
    for _ in range(batch.record_count):
        try:
            found = layout(data, at, exact=True, most_headers=_ANY_NUMBER)
        except IndexError:
            raise RecordsError("records end inside a record") from None
        at = found.end
        yield Record(
            batch.base_offset + found.number,
            _time(batch, found),
            _part(data, found.key_at, found.key_size),
            _part(data, found.value_at, found.value_size),
            _headers(data, found.headers_at),
        )
    if at != len(data):
        raise RecordsError(f"{len(data) - at} bytes behind the last record")


def iter_records(data: bytes, max_bytes: int = MAX_RECORDS_BYTES) -> Iterator[Record]:
    """The records of the one batch in `data`. Raises `RecordsError`."""
    batch = read_batch(data)
    if not isinstance(batch, RecordBatch):
        raise RecordsError(batch.value)
    return records_of(batch, max_bytes)


def first_record_at_or_after(
    batch: RecordBatch, timestamp: Millis, *, start: Offset = 0, allowance: Allowance
) -> Search:
    """Offset and time of the first record whose time is `timestamp` or later; None if there is
    none.

    `start`: the log start offset; records below it are skipped. For ListOffsets by time
    (K-LIST-OFFSETS). Raises `RecordsError`.
    """
    window = Window.to_read(batch, allowance)
    for _ in range(batch.record_count):
        record = yield from window.record_in_turn()
        time, offset = _time(batch, record), batch.base_offset + record.number
        if time >= timestamp and offset >= start:
            return offset, time
    return None


def record_of_max_timestamp(batch: RecordBatch, *, allowance: Allowance) -> Search:
    """Offset and time of the first record with the largest time, for ListOffsets -3 (8b).

    Records with a time below -1 are skipped; records below the log start offset are not (measured).
    Raises `RecordsError`.
    """
    best: Found = None
    window = Window.to_read(batch, allowance)
    for _ in range(batch.record_count):
        record = yield from window.record_in_turn()
        time, offset = _time(batch, record), batch.base_offset + record.number
        if time >= NO_TIMESTAMP and (best is None or time > best[1]):
            best = offset, time
            if time == batch.max_timestamp:
                return best
    return best
