"""Packs the answer to Fetch, versions 4 to 12, without the codec, so that records are not copied.

    throttle_time, error, session_id (v7+),
    topics[ name, partitions[ partition, error, high_watermark, last_stable_offset,
                              log_start_offset (v5+), aborted[], preferred_read_replica (v11+),
                              records ] ]

Version 12 is flexible: it has compact arrays, strings and records, and tagged fields (KIP-482). The
diverging epoch is a tagged field (tag 0 of a partition: epoch, end offset). The answer is a list of
pieces. Records are views of the batches in the log, with their stamps. Small batches are joined as
they are packed: thirty answers of 20,000 batches each were a million pieces, and what sends them
took turns of 100 ms.
"""

from __future__ import annotations

from struct import Struct

from ottla.broker.wire.answers import FetchAnswer, PartitionFetched
from ottla.broker.wire.api.call import Steps
from ottla.broker.wire.translation.packing import INT, Piece, add_few, count, string, varint

FLEXIBLE_FROM = 12
NO_SESSION = 0
BATCHES_A_UNIT = 10
"""Packing this many batches costs one unit (`ottla.broker.event_loop.slices`)."""

MEASURED_A_UNIT = 100
"""Asking this many batches for their size costs one unit."""

_TOP_V4 = Struct(">i")
_TOP_V7 = Struct(">ihi")
_V4 = Struct(">ihqq")
_V5 = Struct(">ihqqq")
_DIVERGING = Struct(">BBBiqB")
"""One tagged field: tag 0, its 13 bytes, epoch, end offset, no tags inside."""


def pack_in_steps(version: int, answer: FetchAnswer, pieces: list[Piece]) -> Steps:
    """Append the answer to `pieces`, in steps. There are no transactions, so the last stable offset
    is the high watermark."""
    topics, error = answer
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


def _partition(version: int, read: PartitionFetched, pieces: list[Piece]) -> Steps:
    flexible = version >= FLEXIBLE_FROM
    high = read.high_watermark
    if version >= 5:
        head = _V5.pack(read.partition, read.error, high, high, read.log_start_offset)
    else:
        head = _V4.pack(read.partition, read.error, high, high)
    head += count(-1 if read.aborted_is_null else 0, flexible)
    if version >= 11:
        head += INT.pack(-1)
    size = read.cut[1] if read.cut else 0
    for start in range(0, len(read.batches), MEASURED_A_UNIT):
        if start:
            yield 1
        size += sum(map(len, read.batches[start : start + MEASURED_A_UNIT]))
    pieces.append(head + (varint(size + 1) if flexible else INT.pack(size)))
    parts: list[Piece] = []
    for number, batch in enumerate(read.batches, 1):
        parts.extend(batch.parts())
        if number % BATCHES_A_UNIT == 0:
            add_few(parts, pieces)
            parts.clear()
            yield 1
    add_few(parts, pieces)
    if read.cut is not None:
        batch, cut_at = read.cut
        pieces.extend(batch.beginning(cut_at))
