"""The loss table (mission-A1): what was acknowledged and is gone, by acks, and what took it.

A record lost with acks=1 stood above the high watermark of a leader that lost its place: the first
row since it was written in which that leader's log was cut below it is the explanation. With acks=0
nobody told the client an offset; the node's own answer, which it never sent, has it. A batch
without any answer never reached a log.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass

from ottla.sim.invariants.findings import Row
from ottla.sim.invariants.index import Index

UNEXPLAINED = "unexplained"
NEVER_ARRIVED = "never reached a log"
UNDECIDED = "in a log, not committed when the run ended"


@dataclass(frozen=True, slots=True)
class Losses:
    """One row of the table."""

    acks: int
    acknowledged: int
    lost: int
    explained: tuple[tuple[str, int], ...]
    """How many were lost to what: a row that cut a log, a refusal that nobody heard."""

    @property
    def unexplained(self) -> int:
        """How many have no explanation."""
        return dict(self.explained).get(UNEXPLAINED, 0)


def losses(index: Index) -> tuple[Losses, ...]:
    """The table, by acks: 0, 1, and -1 for all. Nothing is lost that nobody looked for: in a run
    that ended before."""
    history = _Cuts(index)
    acknowledged: Counter[int] = Counter()
    reasons: dict[int, Counter[str]] = {}
    for row in index.rows["ok"]:
        given = index.invoked.get(row.op)
        if given is None:
            continue
        acknowledged[row.acks] += 1
        missing = (row.partition, given.value) not in index.places
        if missing and not index.cut_short and not index.erased(row):
            reasons.setdefault(row.acks, Counter())[history.reason(row, given.value)] += 1
    return tuple(
        Losses(
            acks,
            acknowledged[acks],
            reasons.get(acks, Counter()).total(),
            tuple(sorted(reasons.get(acks, Counter()).items())),
        )
        for acks in sorted(acknowledged, key=lambda acks: acks if acks >= 0 else SETTINGS)
    )


SETTINGS = 2
"""acks=all stands behind acks=1."""


class _Cuts:
    """Where logs were cut, and where records of clients had been put."""

    def __init__(self, index: Index):
        self._cuts: dict[tuple[int, int], list[Row]] = {}
        self._writes: dict[tuple[int, int], list[Row]] = {}
        for into, kinds in ((self._cuts, ("truncate", "crash")), (self._writes, ("append",))):
            rows = [row for kind in kinds for row in index.rows[kind] if row.off is not None]
            for row in sorted(rows, key=_eid):
                into.setdefault((row.partition, row.node), []).append(row)
        self._held = {(row.partition, row.value): row for row in index.rows["final"]}
        self._answers: dict[tuple[int, int], Row] = {}
        self._told: dict[tuple[int, int, int], list[Row]] = {}
        for row in index.rows["answer"]:
            self._answers[row.client, row.op] = row
            self._told.setdefault((row.client, row.partition, row.node), []).append(row)
        self._batches: dict[int, tuple[tuple[int, int], int]] = {}
        """The batch that an op was sent in (client and first op), and how many are before it."""
        firsts = {(row.client, row.op): row for row in index.rows["send"]}
        filling: dict[tuple[int, int], tuple[int, int]] = {}
        for row in index.rows["inv"]:
            queue = (row.client, row.partition)
            first, place = filling.get(queue, (row.op, 0))
            if (row.client, row.op) in firsts:
                first, place = row.op, 0
            self._batches[row.op] = ((row.client, first), place)
            filling[queue] = (first, place + 1)

    def reason(self, ok: Row, value: int) -> str:
        """What took a record that was acknowledged."""
        if (ok.partition, value) in self._held:
            return UNDECIDED
        if ok.off is not None and ok.off >= 0:
            return self._cut(ok.partition, ok.node, ok.off, self._answered(ok))
        batch, place = self._batches[ok.op]
        answer = self._answers.get(batch)
        if answer is None:
            return NEVER_ARRIVED
        if answer.off is None or answer.off < 0:
            return f"refused: {answer.code}"
        return self._cut(ok.partition, answer.node, answer.off + place, answer.eid)

    def _answered(self, ok: Row) -> int:
        """When the node said so; the client heard it later, or its own row has to do."""
        answers = self._told.get((ok.client, ok.partition, ok.node), [])
        for place in reversed(range(bisect_left(answers, ok.eid, key=_eid))):
            if answers[place].off is not None and 0 <= answers[place].off <= ok.off:
                return _eid(answers[place])
        return _eid(ok)

    def _cut(self, partition: int, node: int, off: int, told: int) -> str:
        """The first cut below `off` since it was written, which was before row `told`."""
        since = self._written(partition, node, off, told)
        for cut in self._cuts.get((partition, node), ()):
            if cut.off <= off and cut.eid > since:
                return f"{cut.kind} on node {cut.node} (row {cut.eid})"
        return UNEXPLAINED

    def _written(self, partition: int, node: int, off: int, told: int) -> int:
        writes = self._writes.get((partition, node), [])
        place = bisect_left(writes, told, key=_eid)
        while place and writes[place - 1].off > off:
            place -= 1
        return _eid(writes[place - 1]) if place else told


def _eid(row: Row) -> int:
    return int(row.eid)
