"""What a broker remembers of a producer: its last five batches (promise-S3).

A duplicate of an older batch looks like a gap, so it is refused as one, rightly. That happens only
if a client has more than five batches in flight. Kafka's own clients do not allow that with
idempotence (K-SEQUENCE), but the swarm draws it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.sim.invariants.findings import Row
from ottla.sim.invariants.index import Index, idempotent

WINDOW = 5
"""In batches."""


class Window:
    """When batches of the canonical log left the window."""

    def __init__(self, index: Index):
        self._left: dict[tuple[int, ...], int] = {}
        """The row that appended the last of the batches that pushed a batch out, by partition,
        producer, epoch and first sequence; the earliest if a batch is stored twice."""
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
        """Whether five later batches had been appended before that row."""
        since = self._left.get((*_whose(batch), batch.seq))
        return since is not None and since < before


def first_appended(index: Index) -> dict[tuple[int, int], int]:
    """The row that first appended an entry, by partition and chain."""
    appended: dict[tuple[int, int], int] = {}
    for row in index.rows["append"]:
        appended.setdefault((row.partition, row.chain), row.eid)
    return appended


def _deleted(index: Index) -> Iterator[tuple[Row, int]]:
    """Batches that were committed and deleted since, in order, each with the row that first
    appended it. Replicas that applied them remember them, although no log holds them at the end."""
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
