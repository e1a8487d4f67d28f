"""What nodes had and knew over time, to judge what they told readers.

An answer must have been true at some time between the row of its question and its own row. So a
value that only grows is looked up at both: *since* and *until*, rows that are not included.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from heapq import merge
from typing import NamedTuple, TypeAlias, TypeVar

from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import Index

Place: TypeAlias = tuple[int, int]
"""Partition and node."""
_K = TypeVar("_K", int, tuple[int, int], tuple[int, int, int])
_LEADING = ("leader", "stepdown", "crash", "start")


class Epoch(NamedTuple):
    """A leader epoch of the committed log."""

    term: int
    start: int
    """The offset of its first record, or of the first record after its beginning."""


class Steps:
    """A value that grows: the highest of all rows before a given one."""

    __slots__ = ("_eids", "_values")

    def __init__(self) -> None:
        self._eids: list[int] = []
        self._values: list[int] = []

    def add(self, eid: int, value: int) -> None:
        """Add the value of a row; rows come in order."""
        if not self._values or value > self._values[-1]:
            self._eids.append(eid)
            self._values.append(value)

    def before(self, eid: int) -> int:
        """The highest value of all rows before that one; 0 if there is none."""
        place = bisect_left(self._eids, eid)
        return self._values[place - 1] if place else 0


class Nodes:
    """See the module's docstring. Made from an index when it is first needed."""

    def __init__(self, index: Index):
        self._rows = index.rows
        self._leading: dict[Place, list[Row]] | None = None
        self.committed: dict[int, Steps] = {}
        """The first offset that no node knows committed, by partition."""
        self.commits: dict[Place, Steps] = {}
        """The same as known by one node."""
        self.serves: dict[tuple[int, int, int], int] = {}
        """By partition, node and term, the row in which a leader knew its first entry committed."""
        self.started: dict[int, Steps] = {}
        """Log start, as far as any node has moved it, by partition."""
        self._moves: dict[Place, list[tuple[int, int]]] = {}
        """The rows in which a node said where its log begins, and the offset."""
        self._ends: dict[tuple[int, int, int], Steps] = {}
        """By partition, node and term, the log end of a leader."""
        self._batches: set[tuple[int, int | None]] = set()
        """The partition and the end offset of every batch that was applied."""
        self._epochs: dict[int, list[Epoch]] | None = None
        self.may_hold = any((row.quorum or 1) > 1 for row in self._rows["phase"])
        """Whether a leader may show less than it knows committed because too few replicas are in
        sync."""
        self._commits()
        self._starts()

    def _commits(self) -> None:
        begins = {(row.partition, row.node, row.term): row for row in self._rows["leader"]}
        for row in self._rows["commit"]:
            place = row.partition, row.node
            if row.hw is not None:
                _steps(self.committed, row.partition).add(row.eid, row.hw)
                _steps(self.commits, place).add(row.eid, row.hw)
            began = begins.get((*place, row.term))
            if row.aux != 1 or began is None or began.eid > row.eid:
                continue
            if row.log_index >= began.log_index:
                self.serves.setdefault((*place, row.term), row.eid)

    def _starts(self) -> None:
        moves = [(row.eid, row, row.off) for row in self._rows["snapshot"] if row.off is not None]
        moves += [(row.eid, row, row.aux) for row in self._rows["apply"] if row.aux is not None]
        for eid, row, off in sorted(moves, key=lambda move: move[0]):
            _steps(self.started, row.partition).add(eid, off)
            self._moves.setdefault((row.partition, row.node), []).append((eid, off))

    def _leaderships(self, row: Row) -> list[Row]:
        """The rows in which the node began or ceased to lead."""
        if self._leading is None:
            self._leading = {}
            for each in in_order(self._rows[kind] for kind in _LEADING):
                self._leading.setdefault((each.partition, each.node), []).append(each)
        return self._leading.get((row.partition, row.node), [])

    def served(self, row: Row) -> list[Row]:
        """The rows that began those leaderships of the node that were open for readers at some time
        between question and answer."""
        rows, found = self._leaderships(row), []
        for place, each in enumerate(rows):
            until = rows[place + 1].eid if place + 1 < len(rows) else row.eid
            opened = self.serves.get((each.partition, each.node, each.term), row.eid)
            if each.kind == "leader" and opened < row.eid and until >= row.aux:
                found.append(each)
        return found

    def leads(self, row: Row) -> Row | None:
        """The row that began the leadership that the node had during the whole time from the
        question to the answer, `row`; None: there was none."""
        rows = self._leaderships(row)
        place = bisect_left(rows, row.aux, key=eid_of)
        if not place or rows[place - 1].kind != "leader":
            return None
        ended = place < len(rows) and rows[place].eid < row.eid
        return None if ended else rows[place - 1]

    def serving(self, row: Row) -> bool:
        """Whether that leader was open for readers during all of that time."""
        began = self.leads(row)
        if began is None:
            return False
        since = self.serves.get((row.partition, row.node, began.term))
        return since is not None and since < row.aux

    def known(self, row: Row) -> tuple[int, int]:
        """The least and the most that the node knew committed between question and answer."""
        place = row.partition, row.node
        return before(self.commits, place, row.aux), before(self.commits, place, row.eid)

    def begins(self, row: Row) -> list[int]:
        """Where the node's log began between question and answer: all values, in order."""
        moves = self._moves.get((row.partition, row.node), [])
        place = bisect_left(moves, (row.aux, -1))
        until = bisect_left(moves, (row.eid, -1))
        first = max((off for _, off in moves[:place]), default=0)
        return [first, *(off for _, off in moves[place:until])]

    def ends_there(self, partition: int, off: int) -> bool:
        """Whether an applied batch ends there, or the log begins there."""
        if not self._batches:
            self._batches = {(row.partition, row.hw) for row in self._rows["apply"]}
        return off == 0 or (partition, off) in self._batches

    def log_end(self, row: Row, lead: Row) -> tuple[int, int]:
        """The log end of that leader at the question, and at the answer."""
        if not self._ends:
            for each in self._rows["append"]:
                if each.hw is not None and each.aux == 1:
                    key = each.partition, each.node, each.term
                    _steps(self._ends, key).add(each.eid, each.hw)
        key = lead.partition, lead.node, lead.term
        return before(self._ends, key, row.aux), before(self._ends, key, row.eid)

    def epochs(self, partition: int, leader: int) -> list[Epoch]:
        """The epochs in the log of the leader of that epoch: those that have records, and its own.
        Empty if nothing of it was applied."""
        if self._epochs is None:
            self._epochs = self._of_committed()
        found = [each for each in self._epochs.get(partition, []) if each.term <= leader]
        if not found or found[-1].term != leader:
            return []
        after = [each.start for each in found[1:]]
        kept = [each for each, start in zip(found, after, strict=False) if each.start != start]
        return [*kept, found[-1]]

    def _of_committed(self) -> dict[int, list[Epoch]]:
        first: dict[Place, Row] = {}
        for row in self._rows["apply"]:
            key = row.partition, row.term
            if row.hw is not None and (key not in first or row.log_index < first[key].log_index):
                first[key] = row
        found: dict[int, list[Epoch]] = {}
        for (partition, term), row in sorted(first.items()):
            start = row.hw if row.off is None else row.off
            found.setdefault(partition, []).append(Epoch(term, start))
        return found


def nodes_of(index: Index) -> Nodes:
    """What nodes had and knew; made once for all checkers of the run."""
    found = index.derived.get(Nodes)
    if not isinstance(found, Nodes):
        found = index.derived[Nodes] = Nodes(index)
    return found


def told(index: Index, invariant: str, row: Row, what: str, wrong: str | None) -> Iterator[Anomaly]:
    """An anomaly if something is `wrong` with what a client was told; None: unknown, which is
    counted."""
    if wrong is None:
        index.unjudged[invariant, row.code or row.kind] += 1
    elif wrong:
        text = f"node {row.node} tells client {row.client} {what} of partition {row.partition}"
        yield Anomaly(invariant, row.eid, f"{text}: {wrong}")


def before(steps: dict[_K, Steps], key: _K, eid: int) -> int:
    """The value before a row; 0 if there was none."""
    found = steps.get(key)
    return 0 if found is None else found.before(eid)


def in_order(kinds: Iterable[list[Row]]) -> Iterable[Row]:
    """The rows of several kinds, in order."""
    return merge(*kinds, key=eid_of)


def eid_of(row: Row) -> int:
    """The number of a row among all rows."""
    return int(row.eid)


def _steps(steps: dict[_K, Steps], key: _K) -> Steps:
    return steps.setdefault(key, Steps())
