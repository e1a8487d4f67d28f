"""At the end: what was refused or shown because of the replicas in sync, and what could not be
judged.

How many replicas are in sync cannot be seen from outside. A model of what a leader was told gives a
minimum and a maximum (`sim/world/in_sync_model.py`). An answer is wrong if neither number allows
it. If only one of them does, it cannot be judged.

A batch that is refused before it is appended (error 19) is not in the log; one that is refused
after that (error 20) is. And no reader is shown a high watermark above what some node knows
committed by then, or below it although enough replicas are in sync.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import Index

BEFORE, AFTER = "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
ID = "sim-I43"
_SHOWN, _HELD = "FETCH", "HELD"
_Batch: TypeAlias = tuple[int, int, int, int, int]
"""Partition, producer id, epoch, first and last sequence."""


def in_sync(index: Index) -> Iterator[Anomaly]:
    """sim-I43."""
    for row, text in (
        *_miscounted(index),
        *_appended(index),
        *_not_appended(index),
        *_uncommitted(index),
    ):
        yield Anomaly(ID, row.eid, text)
    unjudged = counted(index.rows["insync"]).unjudged
    if unjudged:
        index.unjudged[ID, "answer that needs replicas in sync"] += unjudged


class Counted(NamedTuple):
    """How many answers need replicas in sync."""

    answers: int
    unjudged: int
    """How many of them may be right or wrong."""


def counted(rows: Iterable[Row]) -> Counted:
    """The counts from the rows of a history."""
    found = [row for row in rows if row.kind == "insync" and row.code != _SHOWN]
    return Counted(len(found), sum(row.aux < row.quorum <= row.acks for row in found))


def _miscounted(index: Index) -> Iterator[tuple[Row, str]]:
    for row in index.rows["insync"]:
        where = f"of partition {row.partition} on node {row.node}"
        if row.code == _SHOWN:
            if row.hw > row.off:
                yield row, f"a reader {where} is shown {row.hw}; all from {row.off} on is held"
        elif row.code == _HELD:
            if row.aux >= row.quorum:
                text = f"a reader {where} is shown {row.hw}, committed is {row.off}"
                yield row, f"{text}: {row.quorum} must be in sync, {row.aux} are"
        elif row.code in {BEFORE, AFTER}:
            if row.aux >= row.quorum:
                yield row, f"{row.code} {where}: {row.quorum} must be in sync, {row.aux} are"
        elif row.code == "NONE" and row.acks < row.quorum:
            yield row, f"success {where}: {row.quorum} must be in sync, {row.acks} can be"
        if row.value is not None and row.value > row.acks:
            yield row, f"{row.code} {where}: it counts {row.value} in sync, {row.acks} can be"


def _appended(index: Index) -> Iterator[tuple[Row, str]]:
    """Batches in a leader's log that were refused before the append each time their client sent
    them. (A stray copy has a row only for its answer; it was acknowledged before.)"""
    refused = [row for row in index.rows["answer"] if row.code == BEFORE and _has_sequence(row)]
    left: Counter[_Batch] = Counter()
    senders: set[tuple[int, _Batch]] = set()
    for row in index.rows["send"] if refused else ():
        left[_batch(row)] += 1
        senders.add((row.client, _batch(row)))
    for row in refused:
        if (row.client, _batch(row)) in senders:
            left[_batch(row)] -= 1
    for row in index.rows["append"] if refused else ():
        if row.aux == 1 and left.get(_batch(row), 1) <= 0:
            text = f"batch {row.seq}..{row.seq_last} of producer {row.pid}, epoch {row.epoch}"
            yield row, f"{text}, is appended at {row.off}; each time it was sent it was refused"


def _not_appended(index: Index) -> Iterator[tuple[Row, str]]:
    """Batches that were refused after their append, and are not in the log."""
    late = [row for row in index.rows["answer"] if row.code == AFTER and _has_sequence(row)]
    there = {(row.off, *_batch(row)) for row in index.rows["apply"]} if late else set()
    for row in late:
        if (row.off, *_batch(row)) not in there:
            text = f"batch {row.seq}..{row.seq_last} of producer {row.pid}, epoch {row.epoch}"
            yield row, f"{AFTER} for {text}: no such batch is committed at {row.off}"


def _uncommitted(index: Index) -> Iterator[tuple[Row, str]]:
    """High watermarks shown to readers that no node knows committed."""
    committed: dict[int, int] = {}
    rows = [*index.rows["fetch"], *(row for row in index.rows["commit"] if row.hw is not None)]
    for row in sorted(rows, key=lambda row: int(row.eid)):
        known = committed.get(row.partition, 0)
        if row.kind == "commit":
            committed[row.partition] = max(known, row.hw)
        elif row.hw > known:
            yield row, f"node {row.node} shows {row.hw}, committed is {known}"


def _has_sequence(row: Row) -> bool:
    return row.pid is not None and row.pid >= 0 and row.seq is not None and row.seq >= 0


def _batch(row: Row) -> _Batch:
    return row.partition, row.pid, row.epoch, row.seq, row.seq_last
