"""At the end: was a gap one?

A leader that was deposed without knowing it misses what its successor has stored, and sees gaps
where there are none. So it tells nobody of a gap before it has proved that it still leads
(sim-S13). What was committed when it first saw the gap is in its log by then, or it does not lead.

Told of a gap that is none, a client begins a new epoch and stores again what is stored already
(redpanda #3039); this invariant notices the word, not only what comes of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import SEQUENCES, Index, idempotent
from ottla.sim.invariants.resent import REFUSED
from ottla.sim.invariants.window import Window

GAP = "gap"


class _Asked(NamedTuple):
    """A leader that tells of a gap."""

    answer: Row
    since: int
    """Row in which it first saw that gap in that term."""


def untrue_gaps(index: Index) -> Iterator[Anomaly]:
    """sim-I36."""
    asked = list(_asked(index))
    if not asked:
        return
    applied: dict[tuple[int, int], list[Row]] = {}
    for row in index.rows["apply"]:
        if row.pid is not None:
            applied.setdefault((row.partition, row.pid), []).append(row)
    forgotten = _forgotten(index)
    window = Window(index)
    for answer, since in asked:
        if window.has_left(answer, since):
            continue  # what nobody remembers looks like a gap
        whose = answer.partition, answer.pid
        newest = _newest(applied.get(whose, []), since)
        gone = max((at for at, eid in forgotten.get(whose, ()) if eid < since), default=0)
        if newest and gone > newest[0].log_index:
            continue
        if any(_follows(answer, row) for row in newest):
            text = f"node {answer.node} tells of a gap before batch {answer.seq} of producer "
            text += f"{answer.pid}, epoch {answer.epoch}, partition {answer.partition}; what lies "
            text += "before it was committed when it was asked"
            yield Anomaly("sim-I36", answer.eid, text)


def _forgotten(index: Index) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Decisions to forget a producer, by partition and producer id: log index, and the row in which
    somebody first had it in its log. A leader judges by it from there on, before it is applied."""
    written: dict[tuple[int, int, int], int] = {}
    terms: dict[tuple[int, int, int], set[int]] = {}
    told = index.rows["expire"]
    for row in index.rows["append"] if told else ():
        written.setdefault((row.partition, row.log_index, row.term), row.eid)
    for row in index.rows["apply"] if told else ():
        terms.setdefault((row.partition, row.log_index, row.node), set()).add(row.term)
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for row in told:
        place = row.partition, row.log_index
        first = [written.get((*place, term), row.eid) for term in terms.get((*place, row.node), ())]
        known = row.log_index, min([row.eid, *first])
        found.setdefault((row.partition, row.pid), []).append(known)
    return found


def _asked(index: Index) -> Iterator[_Asked]:
    first: dict[tuple[int, ...], int] = {}
    gaps: dict[tuple[int, ...], list[Row]] = {}
    for row in index.rows["decide"]:
        if row.code == GAP:
            first.setdefault((*_key(row), row.term), row.eid)
            gaps.setdefault(_key(row), []).append(row)
    for answer in index.rows["answer"]:
        if answer.code == REFUSED and idempotent(answer):
            seen = gaps.get(_key(answer), [])
            place = bisect_left([row.eid for row in seen], answer.eid)
            if place:
                term = seen[place - 1].term
                yield _Asked(answer, first[(*_key(answer), term)])


def _key(row: Row) -> tuple[int, ...]:
    return row.node, row.inc, row.partition, row.pid, row.epoch, row.seq


def _newest(rows: list[Row], before: int) -> list[Row]:
    """Those before a row that lie furthest in the log."""
    earlier = [row for row in rows if row.eid < before]
    last = max((row.log_index for row in earlier), default=0)
    return [row for row in earlier if row.log_index == last]


def _follows(answer: Row, row: Row) -> bool:
    return bool(row.epoch == answer.epoch and (row.seq_last + 1) % SEQUENCES == answer.seq)
