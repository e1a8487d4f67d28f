"""The loss table (mission-A1): what was acknowledged and is gone, by acks, and what took it.

A record lost with acks=1 stood above the high watermark of a leader that lost its place: the row in
which that leader's log was cut below it is the explanation. With acks=0 nobody told the client an
offset; the node's own answer, which it never sent, has it. A batch without any answer never reached
a log.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ottla.sim.invariants.findings import Row
from ottla.sim.invariants.index import Index

UNEXPLAINED = "unexplained"
NEVER_ARRIVED = "never reached a log"


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
    """The table, by acks: 0, 1, and -1 for all."""
    history = _Cuts(index)
    acknowledged: Counter[int] = Counter()
    reasons: dict[int, Counter[str]] = {}
    for row in index.rows["ok"]:
        given = index.invoked.get(row.op)
        if given is None:
            continue
        acknowledged[row.acks] += 1
        missing = (row.partition, given.value) not in index.places
        if missing and not index.deleted(row.partition, row.off):
            reasons.setdefault(row.acks, Counter())[history.reason(row)] += 1
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
        for row in sorted(
            [*index.rows["truncate"], *index.rows["crash"]], key=lambda row: int(row.eid)
        ):
            if row.off is not None:
                self._cuts.setdefault((row.partition, row.node), []).append(row)
        self._answers: dict[tuple[int, int], Row] = {
            (row.client, row.op): row for row in index.rows["answer"]
        }
        self._batches: dict[int, tuple[int, int]] = {}
        """Client and first op of the batch that an op was sent in, and how many before it."""
        self._ranks: dict[int, int] = {}
        firsts = {(row.client, row.op): row for row in index.rows["send"]}
        open_batch: dict[tuple[int, int], tuple[int, int]] = {}
        for row in index.rows["inv"]:
            queue = (row.client, row.partition)
            if (row.client, row.op) in firsts or queue not in open_batch:
                open_batch[queue] = (row.op, 0)
            first, rank = open_batch[queue]
            self._batches[row.op], self._ranks[row.op] = (row.client, first), rank
            open_batch[queue] = (first, rank + 1)

    def reason(self, ok: Row) -> str:
        """What took a record that was acknowledged."""
        node, off = ok.node, ok.off
        answer = self._answers.get(self._batches[ok.op])
        since = ok.eid if answer is None else answer.eid
        if off is None or off < 0:
            if answer is None:
                return NEVER_ARRIVED
            if answer.off is None or answer.off < 0:
                return f"refused: {answer.code}"
            node, off = answer.node, answer.off + self._ranks[ok.op]
        for cut in self._cuts.get((ok.partition, node), ()):
            if cut.off <= off and cut.eid > since:
                return f"{cut.kind} on node {cut.node} (row {cut.eid})"
        return UNEXPLAINED
