"""Record batches as Arrow columns: one row per record, or one per batch.

**Theory.** A record's producer id, epoch and leader epoch are in the header of its batch, and its
sequence is the batch's first one plus its place (KIP-98). Consumers do not get any of these. So
rows are made from batches, before they are split into records.

Which rows belong to a range must not depend on how offsets are cut into ranges, or a record would
be read twice. So a record belongs where its offset is, a batch where its *last* offset is. (With
its first offset, a batch whose front was deleted would be lost.)

Columns grow as Python lists and become Arrow when there are enough rows or bytes, so memory does
not depend on the length of a range.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from ottla.log.record_batch import identity
from ottla.log.records import records_of
from ottla.log.types import (
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    Millis,
    Offset,
    RecordBatch,
)
from ottla.sim.studies.topics.asked import BATCHES
from ottla.sim.studies.topics.offsets import Placed, Range

FLUSH_ROWS = 20_000
FLUSH_BYTES = 16 * 1024 * 1024
"""About how many bytes an Arrow batch has."""
SEQUENCE_MASK = 2**31 - 1
LATEST = (2**63 - 1) // 1000
"""The last millisecond that fits a column of microseconds; a producer may write any."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

_TIME = pa.timestamp("us", tz="UTC")
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

RECORD_COLUMNS: dict[str, tuple[str, pa.DataType]] = {
    "key": ("BINARY", pa.binary()),
    "value": ("BINARY", pa.binary()),
    "topic": ("STRING", pa.string()),
    "partition": ("INT", pa.int32()),
    "offset": ("BIGINT", pa.int64()),
    "timestamp": ("TIMESTAMP", _TIME),
    "timestampType": ("INT", pa.int32()),
    "headers": ("ARRAY<STRUCT<key: STRING, value: BINARY>>", _HEADERS),
    "producer_id": ("BIGINT", pa.int64()),
    "producer_epoch": ("INT", pa.int32()),
    "sequence": ("INT", pa.int32()),
    "leader_epoch": ("INT", pa.int32()),
}
"""One row per record: column → its type for Spark and for Arrow. The first eight are those of
Spark's own Kafka source; without a producer id the next three are NULL. A timestamp is NULL if it
is below 0 (-1 means none) or after `LATEST`."""

BATCH_COLUMNS: dict[str, tuple[str, pa.DataType]] = {
    "topic": ("STRING", pa.string()),
    "partition": ("INT", pa.int32()),
    "base_offset": ("BIGINT", pa.int64()),
    "last_offset": ("BIGINT", pa.int64()),
    "records": ("INT", pa.int32()),
    "bytes": ("INT", pa.int32()),
    "codec": ("STRING", pa.string()),
    "base_timestamp": ("TIMESTAMP", _TIME),
    "max_timestamp": ("TIMESTAMP", _TIME),
    "timestampType": ("INT", pa.int32()),
    "transactional": ("BOOLEAN", pa.bool_()),
    "control": ("BOOLEAN", pa.bool_()),
    "producer_id": ("BIGINT", pa.int64()),
    "producer_epoch": ("INT", pa.int32()),
    "base_sequence": ("INT", pa.int32()),
    "last_sequence": ("INT", pa.int32()),
    "leader_epoch": ("INT", pa.int32()),
}
"""One row per batch, only from its header: nothing is decompressed. Control batches are rows too.
Without a producer id, or in a control batch, there are no sequences."""


def columns(rows: str, *, headers: bool) -> dict[str, tuple[str, pa.DataType]]:
    """The columns of a layout, by name: their types for Spark and for Arrow."""
    if rows == BATCHES:
        return BATCH_COLUMNS
    left_out = () if headers else ("headers",)
    return {name: types for name, types in RECORD_COLUMNS.items() if name not in left_out}


def ddl(rows: str, *, headers: bool) -> str:
    """The schema of a layout as Spark's DDL."""
    return ", ".join(
        f"{name} {of_spark}" for name, (of_spark, _) in columns(rows, headers=headers).items()
    )


def tables(
    batches: Iterable[Placed], wanted: Range, rows: str, *, headers: bool
) -> Iterator[pa.RecordBatch]:
    """The rows of a range, in offset order. `batches` are those that overlap it, in order.

    Raises `RecordsError` if a batch cannot be decoded.
    """
    if rows == BATCHES:
        yield from _batch_rows(batches, wanted)
    else:
        yield from _record_rows(batches, wanted, headers=headers)


def _arrow(values: dict[str, list[Any]], wanted: Range, rows: int, layout: Any) -> pa.RecordBatch:
    """Arrow columns of so many rows; columns with one value for all rows are made here."""
    same = {"topic": wanted.topic, "partition": wanted.partition}
    arrays = [
        pa.repeat(pa.scalar(same[name], of_arrow), rows)
        if name in same
        else _array(values[name], of_arrow)
        for name, (_, of_arrow) in layout.items()
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(layout))


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if kind is _TIME:
        return pa.array(values, pa.int64()).cast(pa.timestamp("ms", tz="UTC")).cast(_TIME)
    return pa.array(values, kind)


def _time(millis: Millis) -> Millis | None:
    """NULL for -1, which means that a record has no time, and for a time that does not fit the
    column."""
    return millis if 0 <= millis <= LATEST else None


def _batch_rows(batches: Iterable[Placed], wanted: Range) -> Iterator[pa.RecordBatch]:
    values: dict[str, list[Any]] = {name: [] for name in BATCH_COLUMNS}
    names = [name for name in BATCH_COLUMNS if name not in {"topic", "partition"}]
    count = 0
    for _, batch in batches:
        if not wanted.start <= batch.last_offset < wanted.end:
            continue
        for name, value in zip(names, _batch_row(batch), strict=True):
            values[name].append(value)
        count += 1
        if count >= FLUSH_ROWS:
            yield _arrow(values, wanted, count, BATCH_COLUMNS)
            values, count = {name: [] for name in BATCH_COLUMNS}, 0
    if count:
        yield _arrow(values, wanted, count, BATCH_COLUMNS)


def _batch_row(batch: RecordBatch) -> tuple[Any, ...]:
    """All values but topic and partition, in the order of `BATCH_COLUMNS`."""
    attributes = batch.attributes
    control = bool(attributes & CONTROL_BIT)
    who = identity(batch)
    first, last = (None, None) if who is None or control else who[2:]
    return (
        batch.base_offset,
        batch.last_offset,
        batch.record_count,
        len(batch),
        CODECS[batch.codec] if batch.codec < len(CODECS) else str(batch.codec),
        _time(batch.base_timestamp),
        _time(batch.max_timestamp),
        int(bool(attributes & LOG_APPEND_TIME_BIT)),
        bool(attributes & TRANSACTIONAL_BIT),
        control,
        None if who is None else who.producer_id,
        None if who is None else who.epoch,
        first,
        last,
        batch.leader_epoch,
    )


def _record_rows(
    batches: Iterable[Placed], wanted: Range, *, headers: bool
) -> Iterator[pa.RecordBatch]:
    layout = columns("", headers=headers)
    pending = _Records(headers)
    for at, batch in batches:
        if not batch.attributes & CONTROL_BIT:  # markers of transactions are no records
            pending.add(batch, max(at, wanted.start), wanted.end)
        if pending.rows >= FLUSH_ROWS or pending.bytes >= FLUSH_BYTES:
            yield _arrow(pending.values, wanted, pending.rows, layout)
            pending = _Records(headers)
    if pending.rows:
        yield _arrow(pending.values, wanted, pending.rows, layout)


class _Records:
    """Collects columns of records for Arrow."""

    def __init__(self, headers: bool) -> None:
        self.values: dict[str, list[Any]] = {name: [] for name in RECORD_COLUMNS}
        self.rows = 0
        self.bytes = 0
        self._headers = headers

    def add(self, batch: RecordBatch, start: Offset, end: Offset) -> None:
        """Add the records of a batch from `start` on and before `end`."""
        values, base = self.values, batch.base_offset
        records = records_of(batch)
        if base < start or batch.last_offset >= end:
            records = (each for each in records if start <= each.offset < end)
        before = len(values["offset"])
        offsets, times, keys, contents = (
            values[name] for name in ("offset", "timestamp", "key", "value")
        )
        for offset, time, key, value, headers in records:
            offsets.append(offset)
            times.append(time if 0 <= time <= LATEST else None)
            keys.append(key)
            contents.append(value)
            if self._headers:
                values["headers"].append(
                    [{"key": name, "value": content} for name, content in headers]
                )
        added = offsets[before:]
        self.rows += len(added)
        self.bytes += len(batch)
        self._of_all(batch, added)

    def _of_all(self, batch: RecordBatch, offsets: list[int]) -> None:
        """Add the values that all records of the batch share."""
        values, count = self.values, len(offsets)
        kind = int(bool(batch.attributes & LOG_APPEND_TIME_BIT))
        values["timestampType"] += [kind] * count
        values["leader_epoch"] += [batch.leader_epoch] * count
        who = identity(batch)
        if who is None:
            for name in ("producer_id", "producer_epoch", "sequence"):
                values[name] += [None] * count
            return
        values["producer_id"] += [who.producer_id] * count
        values["producer_epoch"] += [who.epoch] * count
        first = who.first_sequence - batch.base_offset
        values["sequence"] += [(first + offset) & SEQUENCE_MASK for offset in offsets]
