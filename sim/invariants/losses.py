"""The loss table (promise-A1): what was acknowledged and is lost, by acks, and what took it.

A record lost with acks=1 was above the high watermark of a leader that lost its leadership. It is
explained by the first row since its append that cut that leader's log below it. With acks=0 the
client is told no offset, but the node's own row has it, for an answer that it never sent. A batch
without any answer never reached a log.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
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
    """How many were lost, by cause: a row that cut a log, or a refusal that its client never
    got."""

    @property
    def unexplained(self) -> int:
        """How many have no explanation."""
        return dict(self.explained).get(UNEXPLAINED, 0)


def losses(index: Index) -> tuple[Losses, ...]:
    """The table, by acks: 0, 1, and -1 for all. If the run ended before its logs were read, nothing
    counts as lost."""
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
"""Where acks=all is sorted: after acks=1."""


class ByOffset:
    """Rows in their order or in reverse, to find the first one after a given row with an offset of
    at most so much: a tree of halves with their lowest offsets."""

    def __init__(self, rows: Iterable[Row], step: int):
        self._step = step
        self._rows = sorted(rows, key=self._place)
        self._lowest: list[list[int]] = [[row.off for row in self._rows]]
        while len(halves := self._lowest[-1]) > 1:
            self._lowest.append([min(halves[at : at + 2]) for at in range(0, len(halves), 2)])

    def first(self, behind: int, off: int) -> Row | None:
        """The first one after row `behind`."""
        place, level = bisect_right(self._rows, self._step * behind, key=self._place), 0
        while place < len(self._lowest[level]):
            if self._lowest[level][place] > off:
                place += 1
                while place % 2 == 0 and level + 1 < len(self._lowest):
                    place, level = place // 2, level + 1
            elif level:
                place, level = 2 * place, level - 1
            else:
                return self._rows[place]
        return None

    def _place(self, row: Row) -> int:
        return self._step * int(row.eid)


_FORWARDS, _BACKWARDS = 1, -1
_NONE = ByOffset((), _FORWARDS)


class _Cuts:
    """Where logs were cut, and where records of clients were written."""

    def __init__(self, index: Index):
        kinds = index.rows
        cuts = [*kinds["truncate"], *kinds["crash"]]
        self._cuts = _by(cuts, ("partition", "node"), _FORWARDS)
        self._writes = _by(kinds["append"], ("partition", "node"), _BACKWARDS)
        self._told = _by(kinds["answer"], ("client", "partition", "node"), _BACKWARDS)
        self._held = {(row.partition, row.value): row for row in kinds["final"]}
        self._answers = {(row.client, row.op): row for row in kinds["answer"]}
        self._batches: dict[int, tuple[tuple[int, int], int]] = {}
        """The batch in which an op was sent (client and first op), and how many ops precede it in
        the batch."""
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
        """What took an acknowledged record."""
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
        """The row in which the node answered; the client's own row, which is later, if there is
        none."""
        answers = self._told.get((ok.client, ok.partition, ok.node), _NONE)
        return _eid(answers.first(ok.eid, ok.off) or ok)

    def _cut(self, partition: int, node: int, off: int, told: int) -> str:
        """The first cut below `off` after the record was written, which was before row `told`."""
        written = self._writes.get((partition, node), _NONE).first(told, off)
        since = told if written is None else _eid(written)
        cut = self._cuts.get((partition, node), _NONE).first(since, off)
        return UNEXPLAINED if cut is None else f"{cut.kind} on node {cut.node} (row {cut.eid})"


def _by(
    rows: Iterable[Row], columns: tuple[str, ...], step: int
) -> dict[tuple[int | None, ...], ByOffset]:
    """Rows that name an offset, by their values of these columns."""
    found: dict[tuple[int | None, ...], list[Row]] = {}
    for row in rows:
        if row.off is not None and (row.kind != "answer" or row.off >= 0):
            found.setdefault(tuple(getattr(row, name) for name in columns), []).append(row)
    return {key: ByOffset(each, step) for key, each in found.items()}


def _eid(row: Row) -> int:
    return int(row.eid)
