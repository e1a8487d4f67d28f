"""At the end: where replicas said that their logs begin, compared with the decisions to delete
records.

A replica's log start follows from those decisions, up to where it had applied the log. A replica
that begins with a snapshot may know of later decisions, too. Then its log starts there, as far as
the log reaches.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.settled import FINAL, settled


class _Move(NamedTuple):
    """Where the log starts after the entry at an index is applied."""

    log_index: int
    off: int


def log_starts(index: Index) -> Iterator[Anomaly]:
    """sim-I46."""
    if not index.rows["logstart"]:
        return
    decided = _decided(index)
    for row, text in (*_of_snapshots(index, decided), *_of_replicas(index, decided)):
        told = f"of partition {row.partition} on node {row.node} begins at {row.off}, {text}"
        what = "a snapshot" if row.kind == "snapshot" else "the log"
        yield Anomaly("sim-I46", row.eid, f"{what} {told}")


def _of_snapshots(index: Index, decided: dict[int, list[_Move]]) -> Iterator[tuple[Row, str]]:
    for row in index.rows["snapshot"]:
        starts = [move.off for move in decided.get(row.partition, [])]
        if row.off and row.off not in starts:
            yield row, f"the decisions set it to {starts}"


def _of_replicas(index: Index, decided: dict[int, list[_Move]]) -> Iterator[tuple[Row, str]]:
    written: dict[tuple[int, int], list[Row]] = {}
    for row in index.rows["snapshot"]:
        written.setdefault((row.partition, row.node), []).append(row)
    held = {(row.partition, row.node, row.off): row for row in index.rows["final"]}
    last: dict[tuple[int, int, int], int] = {}
    agreed: dict[int, Row] = {}
    is_settled = settled(index)
    for row in index.rows["logstart"]:
        place = row.partition, row.node
        before = last.get((*place, row.inc), 0)
        last[(*place, row.inc)] = max(row.off, before)
        wanted = _start_at(decided.get(row.partition, []), row.log_index)
        if is_settled(row):
            agreed.setdefault(row.partition, row)
        first: Row = agreed.get(row.partition, row) if is_settled(row) else row
        if row.off < before:
            yield row, f"after {before}"
        if row.off < wanted or (row.off > wanted and not _known(written.get(place, []), row)):
            yield row, f"where entry {row.log_index} is applied and it was moved to {wanted}"
        if row.off > row.hw:
            yield row, f"above its high watermark {row.hw}"
        if row.code == FINAL and row.hw > row.off and (*place, row.off) not in held:
            yield row, f"and the record there is gone below its high watermark {row.hw}"
        if first.off != row.off:
            yield row, f"and in the end {first.off} on node {first.node}"


def _known(snapshots: list[Row], row: Row) -> bool:
    return any(each.eid < row.eid and min(each.off, row.hw) == row.off for each in snapshots)


def _decided(index: Index) -> dict[int, list[_Move]]:
    """The decisions that moved the log start of each partition, in the order of the log."""
    moves: dict[int, dict[int, int]] = {}
    for row in index.rows["apply"]:
        if row.aux is not None:
            moves.setdefault(row.partition, {})[row.log_index] = row.aux
    decided: dict[int, list[_Move]] = {}
    for partition, found in moves.items():
        start = 0
        for place in sorted(found):
            start = max(start, found[place])
            decided.setdefault(partition, []).append(_Move(place, start))
    return decided


def _start_at(moves: list[_Move], applied: int) -> int:
    place = bisect_right(moves, applied, key=lambda move: move.log_index)
    return moves[place - 1].off if place else 0
