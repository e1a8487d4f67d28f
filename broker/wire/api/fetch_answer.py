"""The answer to Fetch, packed by hand for versions 4 to 12, so that records are not copied.

    throttle_time, error, session_id (v7+),
    topics[ name, partitions[ partition, error, high_watermark, last_stable_offset,
                              log_start_offset (v5+), aborted[], preferred_read_replica (v11+),
                              records ] ]

Version 12 is flexible: compact arrays, strings and records, tagged fields (KIP-482), of which the
diverging epoch is one (tag 0 of a partition: epoch, end offset). The answer is a list of pieces;
records are views of the batches as the log keeps them, with their stamps.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from struct import Struct
from typing import NamedTuple

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.api.encoding import Steps
from ottla.broker.wire.api.packing import INT, count, string, varint
from ottla.log.types import NO_OFFSET, EpochStart, Offset, RecordBatch

FLEXIBLE_FROM = 12
NO_SESSION = 0
BATCHES_A_UNIT = 10
"""Batches that cost a unit of the turn to give (`ottla.broker.event_loop.slices`)."""

_TOP_V4 = Struct(">i")
_TOP_V7 = Struct(">ihi")
_V4 = Struct(">ihqq")
_V5 = Struct(">ihqqq")
_DIVERGING = Struct(">BBBiqB")
"""One tagged field: tag 0, its 13 bytes, epoch, end offset, no tags inside."""

Piece = bytes | memoryview


class PartitionRead(NamedTuple):
    """What is answered for one partition."""

    partition: int
    error: ErrorCode
    high_watermark: Offset = NO_OFFSET
    log_start_offset: Offset = NO_OFFSET
    batches: Sequence[RecordBatch] = ()
    aborted_is_null: bool = True
    """Kafka answers null, but for partitions it does not know (facts/kafka.md 8b), and to who reads
    what is committed."""
    cut: tuple[RecordBatch, int] | None = None
    """The batch behind `batches`, and how many bytes of its beginning are given."""
    diverging: EpochStart | None = None
    """Where the asker's log and this one part (version 12 on)."""


def pack(
    version: int,
    topics: Sequence[tuple[str, Collection[PartitionRead]]],
    error: ErrorCode = ErrorCode.NONE,
) -> list[Piece]:
    """The answer in pieces. The last stable offset is the high watermark: no transactions."""
    pieces: list[Piece] = []
    for _ in pack_in_steps(version, topics, pieces, error):
        pass
    return pieces


def pack_in_steps(
    version: int,
    topics: Sequence[tuple[str, Collection[PartitionRead]]],
    pieces: list[Piece],
    error: ErrorCode = ErrorCode.NONE,
) -> Steps:
    """The same appended to `pieces`, in steps."""
    flexible = version >= FLEXIBLE_FROM
    tags = b"\0" if flexible else b""
    head = _TOP_V7.pack(0, error, NO_SESSION) if version >= 7 else _TOP_V4.pack(0)
    pieces.append(head + count(len(topics), flexible))
    for name, partitions in topics:
        pieces.append(string(name, flexible) + count(len(partitions), flexible))
        for read in partitions:
            yield from _partition(version, read, pieces)
            end = read.diverging if flexible else None
            pieces.append(tags if end is None else _DIVERGING.pack(1, 0, 13, *end, 0))
            yield 1
        pieces.append(tags)
        yield 1
    pieces.append(tags)


def _partition(version: int, read: PartitionRead, pieces: list[Piece]) -> Steps:
    flexible = version >= FLEXIBLE_FROM
    high = read.high_watermark
    if version >= 5:
        head = _V5.pack(read.partition, read.error, high, high, read.log_start_offset)
    else:
        head = _V4.pack(read.partition, read.error, high, high)
    head += count(-1 if read.aborted_is_null else 0, flexible)
    if version >= 11:
        head += INT.pack(-1)
    size = sum(map(len, read.batches)) + (read.cut[1] if read.cut else 0)
    pieces.append(head + (varint(size + 1) if flexible else INT.pack(size)))
    for number, batch in enumerate(read.batches, 1):
        pieces.extend(batch.parts())
        if number % BATCHES_A_UNIT == 0:
            yield 1
    if read.cut is not None:
        batch, cut_at = read.cut
        pieces.extend(batch.beginning(cut_at))
