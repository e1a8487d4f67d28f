"""At the end: epochs that replicas knew, and leaders that nodes named, compared with what was
written.

**Theory.** A term's first entry has one index in all logs (sim-I19), and its epoch begins with the
first record from there on. So the applied entries say where each epoch must begin. At the end, when
all entries are applied, they also say which epochs exist. Before that, nothing is known of a term
without an applied entry.

A node names leaders that it has heard of. A node named as the leader of a term must have led it, or
clients are sent to a node that does not lead. A node that is up and connected hears of a new leader
soon.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.settled import settled

STALE_US = 2_000_000
"""This long after an election, and after it was healed itself, a node must have heard of it."""


class _Wrote(NamedTuple):
    """What is known of a term."""

    off: int | None
    """The offset of the first record from its first entry on; None: no entry was applied."""
    records: bool
    """Whether it wrote records itself."""


def epochs(index: Index) -> Iterator[Anomaly]:
    """sim-I47."""
    for row, text in (*_histories(index), *_untrue(index), *_stale(index)):
        yield Anomaly("sim-I47", row.eid, text)


def _histories(index: Index) -> Iterator[tuple[Row, str]]:
    if not index.rows["epoch"]:
        return
    wrote, is_settled = _wrote(index), settled(index)
    said: dict[tuple[int, int, int], Row] = {}
    for row in index.rows["epoch"]:
        found = wrote.get((row.partition, row.term))
        text = f"node {row.node} says that epoch {row.term} of partition {row.partition} begins at "
        if found is None and is_settled(row):
            yield row, f"{text}{row.off}, but nothing of it was committed"
        elif found is not None and found.off is not None and found.off != row.off:
            yield row, f"{text}{row.off}, but its first record is at {found.off}"
        if is_settled(row):
            said[row.partition, row.node, row.term] = row
    for row in filter(is_settled, index.rows["logstart"]):
        for (partition, term), found in sorted(wrote.items()):
            known = (partition, row.node, term) in said
            if partition == row.partition and found.records and not known:
                text = f"node {row.node} does not know epoch {term} of partition {partition}, which"
                yield row, f"{text} wrote records"


def _wrote(index: Index) -> dict[tuple[int, int], _Wrote]:
    first: dict[tuple[int, int], int] = {}
    records: dict[tuple[int, int], Row] = {}
    offs: dict[int, dict[int, int]] = {}
    for row in index.rows["apply"]:
        key = (row.partition, row.term)
        first[key] = min(row.log_index, first.get(key, row.log_index))
        if row.off is not None:
            records[key] = row
            found = offs.setdefault(row.partition, {})
            found[row.log_index] = min(row.off, found.get(row.log_index, row.off))
    places = {partition: _Places(found) for partition, found in offs.items()}
    nothing = _Places({})
    return {
        key: _Wrote(places.get(key[0], nothing).first_record(log_index), key in records)
        for key, log_index in first.items()
    }


class _Places:
    """Where the records of a partition are; `offs`: the first offset of an entry by its index."""

    def __init__(self, offs: dict[int, int]):
        self._indexes = sorted(offs)
        lowest = accumulate((offs[each] for each in reversed(self._indexes)), min)
        self._lowest = [*lowest][::-1]

    def first_record(self, log_index: int) -> int | None:
        """The offset of the first record from that entry on."""
        place = bisect_left(self._indexes, log_index)
        return self._lowest[place] if place < len(self._lowest) else None


def _untrue(index: Index) -> Iterator[tuple[Row, str]]:
    """Named leaders that never led."""
    led = {(row.partition, row.term, row.node): row for row in index.rows["leader"]}
    for kind in ("named", "answer"):
        for row in index.rows[kind]:
            if row.cand and (row.partition, row.term, row.cand) not in led:
                text = f"node {row.node} says that node {row.cand} leads term {row.term} of "
                yield row, f"{text}partition {row.partition}, but it never did"


def _stale(index: Index) -> Iterator[tuple[Row, str]]:
    """Named leaders that were replaced long ago."""
    newest: dict[int, Row] = {}
    for row in index.rows["leader"]:
        if row.partition not in newest or row.term > newest[row.partition].term:
            newest[row.partition] = row
    for row in filter(settled(index, STALE_US), index.rows["named"]):
        last = newest.get(row.partition)
        if last is None or last.t_us >= row.t_us - STALE_US:
            continue
        if (row.cand, row.term) != (last.node, last.term):
            text = f"node {row.node} still says that node {row.cand} leads term {row.term} of "
            text += f"partition {row.partition}; node {last.node} has long led term {last.term}"
            yield row, text
