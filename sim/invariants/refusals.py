"""At the end: was a reported gap a gap?

A leader that was deposed without knowing it lacks what its successor has stored, and sees gaps
where there are none. So it reports a gap only after it has proved that it still leads (sim-S13).
What was committed when it first saw the gap is then in its log, or it does not lead.

Nor is there a gap before a batch that is stored itself, as long as the broker must remember it:
that is a duplicate, and its leader has it.

After a false gap a client begins a new epoch and stores again what is stored already (redpanda
#3039). This invariant detects the false answer, not only its consequences.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias, TypeVar

from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import SEQUENCES, Index, idempotent
from ottla.sim.invariants.resent import REFUSED
from ottla.sim.invariants.window import Window

GAP = "gap"
FULL = "table full"
_T = TypeVar("_T", "_Newest", "_Place")
_Whose: TypeAlias = dict[tuple[int, ...], list[_T]]
"""Steps in order of time, each further in the log than the last, by partition and producer id (and
batch)."""


class _Asked(NamedTuple):
    """A leader that reports a gap."""

    answer: Row
    since: int
    """Row in which it first saw that gap in that term."""


class _Newest(NamedTuple):
    """The batches of a producer that are furthest in the log, from a row on."""

    since: int
    log_index: int
    batches: list[Row]
    """One of each epoch and last sequence; two if replicas differ."""


class _Place(NamedTuple):
    """Where a batch, or the decision to forget its producer, is in the log; and the row from which
    on a replica had it."""

    since: int
    log_index: int


def untrue_gaps(index: Index) -> Iterator[Anomaly]:
    """sim-I36."""
    asked = list(_asked(index))
    if not asked:
        return
    applied, forgotten = _applied(index), _forgotten(index)
    stored, window = _stored(index), Window(index)
    for answer, since in asked:
        if window.has_left(answer, since):
            continue  # a producer that is not remembered looks like a gap
        whose = answer.partition, answer.pid
        newest, gone = _last(applied, whose, since), _last(forgotten, whose, since)
        kept_from = 0 if gone is None else gone.log_index
        place = _last(stored, _batch(answer), since)
        if place is not None and place.log_index >= kept_from:
            which = "it is stored itself, and was committed when it was asked"
        elif (
            newest is not None
            and newest.log_index >= kept_from
            and any(row.eid < since and _follows(answer, row) for row in newest.batches)
        ):
            which = "what lies before it was committed when it was asked"
        else:
            continue
        text = f"node {answer.node} tells of a gap before batch {answer.seq} of producer "
        text += f"{answer.pid}, epoch {answer.epoch}, partition {answer.partition}; {which}"
        yield Anomaly("sim-I36", answer.eid, text)


def _stored(index: Index) -> _Whose[_Place]:
    """Where each batch is, in the order in which batches were first applied."""
    found: _Whose[_Place] = {}
    for row in index.rows["apply"]:
        if row.pid is None:
            continue
        places = found.setdefault(_batch(row), [])
        if not places or row.log_index > places[-1].log_index:
            places.append(_Place(row.eid, row.log_index))
    return found


def _applied(index: Index) -> _Whose[_Newest]:
    found: _Whose[_Newest] = {}
    for row in index.rows["apply"]:
        if row.pid is None:
            continue
        running = found.setdefault((row.partition, row.pid), [])
        if not running or row.log_index > running[-1].log_index:
            running.append(_Newest(row.eid, row.log_index, [row]))
        elif row.log_index == running[-1].log_index:
            batches = running[-1].batches
            if all(_end(row) != _end(each) for each in batches):
                batches.append(row)
    return found


def _forgotten(index: Index) -> _Whose[_Place]:
    """A leader applies such a decision as soon as it is made, before it is in its log: if the table
    is full, in the turn of the batch that found it full."""
    written: dict[tuple[int, int, int], Row] = {}
    terms: dict[tuple[int, int, int], set[int]] = {}
    full: dict[tuple[int, int, int], int] = {}
    told = index.rows["expire"]
    for row in index.rows["append"] if told else ():
        written.setdefault((row.partition, row.log_index, row.term), row)
    for row in index.rows["decide"] if told else ():
        if row.code == FULL:
            full.setdefault((row.partition, row.node, row.log_index), row.eid)
    for row in index.rows["apply"] if told else ():
        terms.setdefault((row.partition, row.log_index, row.node), set()).add(row.term)
    known: list[tuple[int, int, int, int]] = []
    for row in told:
        place = row.partition, row.log_index
        eids = [row.eid]
        for term in terms.get((*place, row.node), ()):
            entry = written.get((*place, term))
            if entry is not None:
                eids += entry.eid, full.get((row.partition, entry.node, row.aux), entry.eid)
        known.append((min(eids), row.log_index, row.partition, row.pid))
    found: _Whose[_Place] = {}
    for since, log_index, partition, pid in sorted(known):
        running = found.setdefault((partition, pid), [])
        if not running or log_index > running[-1].log_index:
            running.append(_Place(since, log_index))
    return found


def _last(running: _Whose[_T], whose: tuple[int, ...], before: int) -> _T | None:
    """The last step of a producer before a row."""
    steps = running.get(whose, [])
    place = bisect_left(steps, before, key=_since)
    return steps[place - 1] if place else None


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
            place = bisect_left(seen, answer.eid, key=_eid)
            if place:
                term = seen[place - 1].term
                yield _Asked(answer, first[(*_key(answer), term)])


def _key(row: Row) -> tuple[int, ...]:
    return row.node, row.inc, *_batch(row)


def _batch(row: Row) -> tuple[int, ...]:
    return row.partition, row.pid, row.epoch, row.seq, row.seq_last


def _eid(row: Row) -> int:
    return int(row.eid)


def _since(step: _Newest | _Place) -> int:
    return step.since


def _end(row: Row) -> tuple[int, int]:
    return row.epoch, row.seq_last


def _follows(answer: Row, row: Row) -> bool:
    return bool(row.epoch == answer.epoch and (row.seq_last + 1) % SEQUENCES == answer.seq)
