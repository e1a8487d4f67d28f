"""What a broker remembers of a producer: its last five batches (promise-S3).

A duplicate of an older one cannot be told from a gap, so it is refused as one, and rightly so. It
comes to that only when a client has more than five batches in flight, which Kafka's own clients do
not allow with idempotence (K-SEQUENCE), and the swarm draws.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.sim.invariants.findings import Row
from ottla.sim.invariants.index import Index, idempotent

WINDOW = 5
"""Batches."""


class Window:
    """When batches of the canonical log fell out of it."""

    def __init__(self, index: Index):
        self._left: dict[tuple[int, ...], int] = {}
        """The row in which the last of those was appended that pushed a batch out, by partition,
        producer, epoch and first sequence; the earliest where a batch is stored twice."""
        appended = first_appended(index)
        behind: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for row, since in _deleted(index):
            behind.setdefault(_whose(row), []).append((row.seq, since))
        batch = None
        for row in index.producers():
            if (row.partition, row.chain) != batch:
                batch = row.partition, row.chain
                since = appended.get(batch, -1)
                behind.setdefault(_whose(row), []).append((row.seq, since))
        for whose, batches in behind.items():
            for (seq, _), (_, since) in zip(batches, batches[WINDOW:], strict=False):
                self._left[*whose, seq] = min(since, self._left.get((*whose, seq), since))

    def has_left(self, batch: Row, before: int) -> bool:
        """Whether five batches lay behind this one already in that row."""
        since = self._left.get((*_whose(batch), batch.seq))
        return since is not None and since < before


def first_appended(index: Index) -> dict[tuple[int, int], int]:
    """The row in which an entry was first appended, by partition and chain."""
    appended: dict[tuple[int, int], int] = {}
    for row in index.rows["append"]:
        appended.setdefault((row.partition, row.chain), row.eid)
    return appended


def _deleted(index: Index) -> Iterator[tuple[Row, int]]:
    """Batches that were committed and deleted since, in their order, each with the row in which it
    was first appended: who applied them remembers them, though no log holds them in the end."""
    starts = {partition: rows[0].off for partition, rows in index.canon.items() if rows}
    gone: dict[tuple[int, int], Row] = {}
    for row in index.rows["apply"]:
        if idempotent(row) and row.off < starts.get(row.partition, row.off + 1):
            gone.setdefault((row.partition, row.off), row)
    if not gone:
        return
    appended: dict[tuple[int, int, int], int] = {}
    for row in index.rows["append"]:
        appended.setdefault((row.partition, row.term, row.log_index), row.eid)
    for _, row in sorted(gone.items()):
        yield row, appended.get((row.partition, row.term, row.log_index), -1)


def _whose(row: Row) -> tuple[int, int, int]:
    return row.partition, row.pid, row.epoch
