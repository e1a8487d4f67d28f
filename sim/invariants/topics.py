"""At the end: topics are created and deleted as clients were told, and all nodes agree about them.

One client asks for topics, one request at a time, so a model of them is a table: a topic is new,
*created*, *deleted*, or *unknown* after a request without a definite outcome. A success must agree
with the table, or something was done twice. A refusal is made without a proof of leadership
(`broker/controller/controller.py`). A refusal that disagrees is wrong, unless two nodes led the
controller's group while the request was open; then it is counted as not judged.

At the end what nodes know is compared with the table, and with each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ottla.sim.history.history import CONTROLLER_PARTITION
from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import Index

ID = "sim-I48"
CREATE, DELETE, CREATED, DELETED = "create", "delete", "created", "deleted"
EXISTS, ABSENT = "TOPIC_ALREADY_EXISTS", "UNKNOWN_TOPIC_OR_PARTITION"
NEW, UNKNOWN = "new", "unknown"
_WRONG = {
    CREATED: {CREATED: "it was created before, and not deleted since"},
    DELETED: {NEW: "it was never created", DELETED: "it was deleted before"},
    EXISTS: {NEW: "it was never created", DELETED: "it was deleted"},
    ABSENT: {CREATED: "it was created, and not deleted since"},
}
"""By code and state in the table: why a client must not be told that."""
_LEFT = {
    "unled": "nobody leads partition {row.partition} of topic {row.op}",
    "unserved": "node {row.node} has no replica of topic {row.op}, which is placed on it",
    "leftover": "node {row.node} keeps group {row.log_index}, which is no topic's",
}
"""What must not be true at the end."""
_QUESTIONS = (CREATE, DELETE)
_REFUSALS = (EXISTS, ABSENT)
_INDEFINITE = ("REQUEST_TIMED_OUT",)
_NO_END = 1 << 62


class _Led(NamedTuple):
    """A leadership of the controller's group, by its rows."""

    term: int
    begin: int
    end: int


def wrong_topics(index: Index) -> Iterator[Anomaly]:
    """sim-I48."""
    states: dict[int, str] = {}
    partitions: dict[int, int] = {}
    before: Row = None
    led: list[_Led] | None = None
    for row in index.rows["topic"]:
        if row.client is None:
            continue
        partitions[row.op] = row.aux
        asked, before = before, row
        if row.code in _QUESTIONS:
            continue
        state = states.get(row.op, NEW)
        why = _WRONG.get(row.code, {}).get(state)
        if why is not None and row.code in _REFUSALS:
            led = _leaderships(index) if led is None else led
            if asked is not None and _two_led(led, asked.eid, row.eid):
                index.unjudged[ID, row.code] += 1
                why = None
        elif row.code.isupper() and row.code not in {*_REFUSALS, *_INDEFINITE}:
            why = "nothing is wrong with the request"
        if why is not None:
            text = f"node {row.node} answers {row.code} about topic {row.op}: {why}"
            yield Anomaly(ID, row.eid, text)
        if row.code not in _REFUSALS:
            states[row.op] = row.code if row.code in {CREATED, DELETED} else UNKNOWN
    if before is not None and before.code in _QUESTIONS:
        states[before.op] = UNKNOWN
    yield from _ends(index, states, partitions)


def _leaderships(index: Index) -> list[_Led]:
    found: list[_Led] = []
    ends: dict[int, list[int]] = {}
    for row in (*index.rows["stepdown"], *index.rows["crash"]):
        if row.partition == CONTROLLER_PARTITION:
            ends.setdefault(row.node, []).append(row.eid)
    for row in index.rows["leader"]:
        if row.partition == CONTROLLER_PARTITION:
            later = [eid for eid in ends.get(row.node, ()) if eid > row.eid]
            found.append(_Led(row.term, row.eid, min(later, default=_NO_END)))
    return found


def _two_led(led: list[_Led], since: int, until: int) -> bool:
    """Whether a node led between these rows although a later term had its leader."""
    return any(
        older.term < newer.term and older.begin < until and older.end > max(since, newer.begin)
        for older in led
        for newer in led
        if newer.begin < until
    )


def _ends(index: Index, states: dict[int, str], partitions: dict[int, int]) -> Iterator[Anomaly]:
    """What nodes know at the end."""
    listed: dict[int, Row] = {}
    known: dict[int, dict[int, Row]] = {}
    for row in index.rows["topic"]:
        if row.client is not None:
            continue
        if row.code == "listed":
            listed[row.node] = row
        elif row.code in {"known", "unserved"}:
            known.setdefault(row.op, {})[row.node] = row
        if row.code in _LEFT:
            yield Anomaly(ID, row.eid, _LEFT[row.code].format(row=row))
    for op in sorted({*known, *(op for op, state in states.items() if state == CREATED)}):
        nodes, state = known.get(op, {}), states.get(op, NEW)
        for node in sorted(listed.keys() - nodes.keys()):
            yield Anomaly(ID, listed[node].eid, f"node {node} does not know topic {op}: {state}")
        for node, row in nodes.items():
            if state in {NEW, DELETED} or row.aux != partitions[op]:
                text = f"node {node} knows topic {op} with {row.aux} partitions: {state}"
                yield Anomaly(ID, row.eid, text)
