"""At the end: the offsets that readers asked for, compared with the log at that time.

Readers ask where a partition begins, where it ends, or for its first record of a time. The node
that answers leads the partition, and has proved that by committing an entry of its own. So the
answer follows from what this node had applied at some time between question and answer, and from
the committed log. If too few replicas are in sync, a leader shows less than it knows committed. How
much less is not in the rows, so that is counted as not judged. So is what lies below the log start
at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.nodes import Nodes, nodes_of, told

Rule: TypeAlias = Callable[["_Offsets", Row, list[Row]], str | None]
"""Says what is wrong with an answer of a node with these leaderships; "": nothing; None: the rows
do not show it."""


def offsets(index: Index) -> Iterator[Anomaly]:
    """sim-I40."""
    offsets = _Offsets(index)
    for row in index.rows["learn"]:
        rule = _RULES.get(row.code)
        if rule is not None and row.aux is not None:
            served = nodes_of(index).served(row)
            wrong = rule(offsets, row, served) if served else "it did not lead"
            yield from told(index, "sim-I40", row, f"{row.code} {row.off}", wrong)


def shown(nodes: Nodes, row: Row, off: int) -> str | None:
    """What is wrong with a high watermark that a leader returned."""
    least, most = nodes.known(row)
    if off > most:
        return f"it knew only offsets below {most} committed"
    if not nodes.ends_there(row.partition, off):
        return f"no batch ends at {off}"
    if off < least:
        return None if nodes.may_hold else f"it knew offsets below {least} committed"
    return ""


class _Offsets:
    """The rules, and what they need."""

    def __init__(self, index: Index):
        self._index = index
        self._nodes = nodes_of(index)

    def earliest(self, row: Row, served: list[Row]) -> str | None:
        """The log start, and the epoch of the record there."""
        begins = self._nodes.begins(row)
        if row.off not in begins:
            return f"its log began at {begins}"
        terms = [self._epoch_at(row, each) for each in served]
        if None in terms:
            return None
        return "" if row.term in terms else f"epoch {row.term} is told, the record has {terms}"

    def _epoch_at(self, row: Row, lead: Row) -> int | None:
        epochs = self._nodes.epochs(row.partition, lead.term)
        if not epochs:
            return None
        return max((each.term for each in epochs if each.start <= row.off), default=lead.term)

    def latest(self, row: Row, served: list[Row]) -> str | None:
        """The high watermark, in the leader's own epoch."""
        if row.term not in [each.term for each in served]:
            return f"epoch {row.term} is told, and it did not lead then"
        return shown(self._nodes, row, row.off)

    def by_time(self, row: Row, _: list[Row]) -> str | None:
        """The first record that is not older, and its time and epoch."""
        index, (least, most) = self._index, self._nodes.known(row)
        if row.off >= most:
            return f"it knew only offsets below {most} committed"
        end = row.off if row.off >= 0 else least
        begin = max(self._nodes.begins(row))
        for record in index.canon.get(row.partition, []):
            if begin <= record.off < end and self._time(record) >= row.value:
                text = f"the record at {record.off} has time {self._time(record)}"
                return None if row.off < 0 and self._nodes.may_hold else text
        return "" if row.off < 0 else self._found(row)

    def _found(self, row: Row) -> str | None:
        record = self._index.at(row.partition, row.off)
        if record is None:
            return None
        time, text = self._time(record), f"time {row.hw} and epoch {row.term} are told"
        if (time, record.term) == (row.hw, row.term) and time >= row.value:
            return ""
        return f"{text}, the record has {time} and {record.term}"

    def _time(self, record: Row) -> int:
        handed = self._index.op_of.get(record.value)
        return -1 if handed is None or handed.aux is None else int(handed.aux)


_RULES: dict[str, Rule] = {
    "earliest": _Offsets.earliest,
    "latest": _Offsets.latest,
    "time": _Offsets.by_time,
}
