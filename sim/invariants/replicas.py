"""At the end: what the disks of all replicas hold, compared with each other.

Rows of nodes say what was written; what is read back at the end may differ. The other checks read
only one log of each partition, the canonical one. So they would miss a rotten disk, or a recovery
that keeps half a batch, on a follower whose log nobody reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import Index


def differing_copies(index: Index) -> Iterator[Anomaly]:
    """sim-I37."""
    yield from _different(index)
    yield from _missing(index)


def _different(index: Index) -> Iterator[Anomaly]:
    held: dict[tuple[int, int], Row] = {}
    for row in index.rows["final"]:
        if row.aux != 1:
            continue
        first = held.setdefault((row.partition, row.off), row)
        if first is not row and _record(first) != _record(row):
            text = f"offset {row.off} of partition {row.partition} is committed: {_told(row)}, "
            yield Anomaly("sim-I37", row.eid, text + _told(first))


def _missing(index: Index) -> Iterator[Anomaly]:
    """A log may begin late or end early, but has no holes."""
    logs: dict[tuple[int, int], list[Row]] = {}
    for row in index.rows["final"]:
        if row.aux == 1:
            logs.setdefault((row.partition, row.node), []).append(row)
    for (partition, node), log in logs.items():
        for before, row in pairwise(sorted(log, key=_off)):
            if row.off > before.off + 1:
                text = f"node {node} holds offsets {before.off} and {row.off} of partition "
                text += f"{partition}, both committed, and nothing between them"
                yield Anomaly("sim-I37", row.eid, text)


def _off(row: Row) -> int:
    return int(row.off)


def _record(row: Row) -> tuple[int | None, ...]:
    return row.value, row.pid, row.epoch, row.seq


def _told(row: Row) -> str:
    sender = "" if row.pid is None else f" of producer {row.pid}, epoch {row.epoch}, seq {row.seq}"
    return f"node {row.node} holds value {row.value}{sender}"
