"""At the end: the producer tables of all replicas, in all their lives.

A table *rests on a snapshot* from the row on that installs one. It also does all through a life
that did not apply entry 1, because its disk began with a snapshot. A table that rests on none is a
replay of the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ottla.sim.invariants.decisions import MODEL_NODE
from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.mutants import CheckerMutant


class _Told(NamedTuple):
    """A state that a replica had after applying up to an index."""

    row: Row
    log_index: int
    rests: bool


def replays(index: Index) -> Iterator[Anomaly]:
    """sim-I25: one state for each place in the log, and each life applies one entry after the
    other."""
    yield from _skips(index)
    known: dict[tuple[int, int], Row] = {}
    for told in _told(index):
        if told.rests:
            continue
        row: Row = told.row
        first: Row = known.setdefault((row.partition, told.log_index), row)
        if first.state_hash != row.state_hash:
            text = f"producers of partition {row.partition} after entry {told.log_index}: state "
            text += f"{row.state_hash} {_where(row)}, {first.state_hash} {_where(first)}"
            yield Anomaly("sim-I25", row.eid, text)


def _where(row: Row) -> str:
    return f"on node {row.node}" if row.node != MODEL_NODE else "in the reference model"


def _skips(index: Index) -> Iterator[Anomaly]:
    one_life = CheckerMutant.IGNORED_INCARNATION in index.mutants
    applied: dict[tuple[int, int, int], int] = {}
    rows = sorted([*index.rows["apply"], *_installed(index)], key=lambda row: int(row.eid))
    for row in rows:
        life = (row.partition, row.node, 0 if one_life else row.inc)
        before = applied.get(life)
        if row.kind == "apply" and before is not None and row.log_index != before + 1:
            text = f"node {row.node} applies entry {row.log_index} of partition {row.partition} "
            yield Anomaly("sim-I25", row.eid, f"{text}after {before}")
        applied[life] = row.log_index


def snapshots(index: Index) -> Iterator[Anomaly]:
    """sim-I27."""
    replayed: dict[tuple[int, int], int] = {}
    for told in _told(index):
        if not told.rests:
            replayed.setdefault((told.row.partition, told.log_index), told.row.state_hash)
    restored: dict[tuple[int, int], int] = {}
    for told in _told(index):
        row, key = told.row, (told.row.partition, told.log_index)
        if not told.rests:
            continue
        first = replayed.get(key)
        if first is None:
            first = restored.setdefault(key, row.state_hash)
        if first != row.state_hash:
            text = f"producers of partition {row.partition} after entry {told.log_index}: state "
            text += f"{row.state_hash} on node {row.node}, which began with a snapshot, {first} "
            yield Anomaly("sim-I27", row.eid, f"{text}elsewhere")


def _installed(index: Index) -> list[Row]:
    return [row for row in index.rows["snapshot"] if row.code == "installed"]


def _told(index: Index) -> Iterator[_Told]:
    since: dict[tuple[int, int, int], int] = {}
    for row in reversed(_installed(index)):
        since[row.partition, row.node, row.inc] = row.eid
    began = {}
    for row in reversed(index.rows["apply"]):
        began[row.partition, row.node, row.inc] = row.log_index
    for row in index.rows["state"]:
        life = (row.partition, row.node, row.inc)
        installed = life in since and since[life] < row.eid
        yield _Told(row, row.log_index, installed or began.get(life, 1) != 1)
    for row in index.rows["snapshot"]:
        if row.state_hash is not None and row.aux is not None:
            yield _Told(row, row.aux, rests=True)
