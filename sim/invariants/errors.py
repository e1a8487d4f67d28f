"""At the end: are the errors that readers get true?

An error says something about the node that returns it: what its log lacks, that another node leads,
in which term it is. That must have been true at some time between question and answer. If the rows
do not show it, the error is counted as not judged.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import TypeAlias

from ottla.sim.history.history import CONTROLLER_PARTITION
from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.nodes import Nodes, before, eid_of, in_order, nodes_of, told

LOST = ("DISCONNECTED", "TIMED_OUT")
"""The codes for no answer at all."""
_CUTS = ("truncate", "crash", "start")
Rule: TypeAlias = Callable[["_Errors", Row], str | None]
"""Says what is wrong with an error; "": nothing; None: the rows do not show it."""


def untrue(index: Index) -> Iterator[Anomaly]:
    """sim-I39."""
    errors = _Errors(index)
    for row in index.rows["error"]:
        if row.aux is None or row.aux > row.eid or row.node is None or row.code in LOST:
            continue
        wrong = _RULES.get(row.code, _Errors.never_told)(errors, row)
        yield from told(index, "sim-I39", row, row.code, wrong)
    yield from _no_leaders(index)


def _no_leaders(index: Index) -> Iterator[Anomaly]:
    """Metadata names only nodes that have led that term by then."""
    led: dict[tuple[int, int, int], int] = {}
    for row in index.rows["leader"]:
        led.setdefault((row.partition, row.node, row.term), row.eid)
    for row in index.rows["learn"]:
        if row.code == "leader":
            since = led.get((row.partition, row.cand, row.term))
            if since is None or since > row.eid:
                text = f"node {row.node} names node {row.cand} as leader of partition "
                text += f"{row.partition} in term {row.term}, which it never led"
                yield Anomaly("sim-I39", row.eid, text)


class _Errors:
    """The rules, and what they need."""

    def __init__(self, index: Index):
        self._rows = index.rows
        self._index = index
        loads = [row.eid for row in index.rows["phase"] if row.code == "load"]
        self._loads = loads[0] if loads else -1

    @property
    def nodes(self) -> Nodes:
        """Made only if there are errors."""
        return nodes_of(self._index)

    def out_of_range(self, row: Row) -> str | None:
        """A node that says so has proved that it leads, so it has what was committed when it was
        asked; and no offset in its own log is out of range."""
        partition, off = row.partition, row.off
        if off is None:
            return "no offset was asked for"
        if off < before(self.nodes.started, partition, row.eid):
            return ""
        committed = before(self.nodes.committed, partition, row.aux)
        if off <= committed:
            return f"offset {off} was asked for, and {committed} records were committed by then"
        if self._has(row):
            return f"offset {off} was asked for, and its own log reached that far"
        return "" if off > before(self.nodes.committed, partition, row.eid) else None

    def _has(self, row: Row) -> bool:
        """Whether all before the offset was on its disk when it was asked, and stayed there."""
        at = row.partition, row.node
        cuts = [each for kind in _CUTS for each in self._rows[kind]]
        cuts += [each for each in self._rows["snapshot"] if each.code == "installed"]
        last = max(
            (each.eid for each in cuts if (each.partition, each.node) == at and each.eid < row.eid),
            default=-1,
        )
        return any(
            each.off is not None and each.off >= row.off
            for each in self._rows["durable"]
            if (each.partition, each.node) == at and last < each.eid < row.aux
        )

    def not_leader(self, row: Row) -> str | None:
        """A leader that knows that earlier entries are committed never says so, unless it has to
        prove that it leads, to a client that asks for offsets beyond its log."""
        if self.nodes.leads(row) is None:
            return ""
        known = before(self.nodes.commits, (row.partition, row.node), row.aux)
        if row.value is not None or (row.off is not None and row.off > known):
            return None
        return "it led all the time" if self.nodes.serving(row) else None

    def fenced(self, row: Row) -> str | None:
        """The request must name an epoch older than the node's."""
        if row.term is None:
            return "no leader epoch was named"
        newer = any(each.term > row.term for each in self._terms(row, row.eid))
        return "" if newer else f"epoch {row.term} was named, and it never was in a newer one"

    def too_new(self, row: Row) -> str | None:
        """The request must name an epoch newer than the node's."""
        if row.term is None:
            return "no leader epoch was named"
        known = [each for each in self._terms(row, row.aux) if each.kind != "leader"]
        if not known or known[-1].term < row.term:
            return ""
        return f"epoch {row.term} was named, and it was in {known[-1].term} already"

    def _terms(self, row: Row, until: int) -> list[Row]:
        rows = in_order(self._rows[kind] for kind in ("term", "start", "leader"))
        at = row.partition, row.node
        return [
            each
            for each in rows
            if (each.partition, each.node) == at and each.eid < until and each.term is not None
        ]

    def unknown(self, row: Row) -> str | None:
        """The topic existed before the load began. A node knows it once it has applied the
        controller's log up to then."""
        if self._loads < 0:
            return None
        made = max(
            (
                each.log_index
                for each in self._rows["commit"]
                if each.partition == CONTROLLER_PARTITION and each.eid < self._loads
            ),
            default=None,
        )
        if made is None:
            return None
        rows = in_order(self._rows[kind] for kind in ("apply", "crash", "start"))
        mine = [
            each
            for each in rows
            if each.partition == CONTROLLER_PARTITION and each.node == row.node
            and (each.kind != "apply" or each.log_index >= made)
        ]  # fmt: skip
        place = bisect_left(mine, row.aux, key=eid_of)
        ended = any(each.kind != "apply" and each.eid < row.eid for each in mine[place:])
        if place and mine[place - 1].kind == "apply" and not ended:
            return "it knew the topic"
        return ""

    def never_told(self, _: Row) -> str | None:
        """Readers never get this error."""
        return "no such question is answered so"

    def broken_store(self, _: Row) -> str | None:
        """Rows do not say whether a disk failed."""
        return None


_RULES: dict[str, Rule] = {
    "OFFSET_OUT_OF_RANGE": _Errors.out_of_range,
    "NOT_LEADER_OR_FOLLOWER": _Errors.not_leader,
    "LEADER_NOT_AVAILABLE": _Errors.not_leader,
    "FENCED_LEADER_EPOCH": _Errors.fenced,
    "UNKNOWN_LEADER_EPOCH": _Errors.too_new,
    "UNKNOWN_TOPIC_OR_PARTITION": _Errors.unknown,
    "KAFKA_STORAGE_ERROR": _Errors.broken_store,
}
