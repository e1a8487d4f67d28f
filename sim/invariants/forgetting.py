"""At the end: was a producer forgotten too early, or before another one?

A leader proposes to forget a producer if it has applied no batch of that producer for the expiry
time, by its own clock. The judge allows a tenth less than the expiry time. It does not judge the
time in these cases:

* the leader's table was full in this term. A new leader may find its table full before it has
  applied its log (seed 500477);
* the leader's clock was changed;
* the leader knows the producer from a snapshot, or from an earlier life.

If its table is full, it forgets the producer that is idle for longest: the one whose last applied
batch is the first in the log. Only producers count that it knew, and none with a request that it
had not answered yet.

Source: producer.id.expiration.ms; docs/decisions/0011.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.refusals import FULL

TENTHS = 9
"""How many tenths of the expiry time must have passed."""


def wrongly_forgotten(index: Index) -> Iterator[Anomaly]:
    """sim-I51."""
    expiry = max((row.value or 0 for row in index.rows["phase"] if row.code == "load"), default=0)
    if expiry and index.rows["expire"]:
        yield from _early(index, expiry)
        yield from _before_others(index)


def _early(index: Index, expiry: int) -> Iterator[Anomaly]:
    changed = {row.node for row in index.rows["fault"] if row.code.startswith("its clock")}
    full = _by(
        (row for row in index.rows["decide"] if row.code == FULL), "partition", "node", "term"
    )
    written = _by(index.rows["append"], "partition", "node", "log_index")
    applied = _by(index.rows["apply"], "partition", "node", "inc", "pid")
    for row in index.rows["expire"]:
        entry = _last(written.get((row.partition, row.node, row.log_index), ()), row.eid)
        if entry is None or entry.aux != 1 or row.node in changed:
            continue  # another node decided it, or one whose clock was changed
        seen = _last(applied.get((row.partition, row.node, entry.inc, row.pid), ()), entry.eid)
        made_room = _last(full.get((row.partition, row.node, entry.term), ()), entry.eid)
        if seen is None or made_room is not None:
            continue
        if 10 * (entry.t_us - seen.t_us) < TENTHS * expiry:
            text = f"node {row.node} forgets producer {row.pid} of partition {row.partition} "
            text += f"{(entry.t_us - seen.t_us) // 1_000} ms after its last batch"
            yield Anomaly("sim-I51", row.eid, text)


def _before_others(index: Index) -> Iterator[Anomaly]:
    full = {
        (row.partition, row.node, row.term, row.log_index): row.eid
        for row in index.rows["decide"]
        if row.code == FULL
    }
    written = _by(index.rows["append"], "partition", "node", "log_index")
    last = _Known(index)
    for row in index.rows["expire"] if full else ():
        entry = _last(written.get((row.partition, row.node, row.log_index), ()), row.eid)
        if entry is None or entry.aux != 1:
            continue  # another node decided it
        if (row.partition, row.node, entry.term, row.aux) not in full:
            continue
        own = last.applied(row.partition, row.pid, row.aux)
        for pid in last.producers(row.partition) if own else ():
            other = last.applied(row.partition, pid, row.aux)
            if not 0 < other < own or last.forgotten(row.partition, pid, other, row.log_index):
                continue
            if not last.is_open(row.node, row.partition, pid, entry.eid):
                text = f"node {row.node} forgets producer {row.pid} of partition {row.partition}, "
                text += f"whose last batch is entry {own}; that of producer {pid} is entry {other}"
                yield Anomaly("sim-I51", row.eid, text)


class _Known:
    """What leaders know of producers, from the rows of all nodes."""

    def __init__(self, index: Index):
        self._applied: dict[tuple[int, int], list[int]] = {}
        self._forgotten: dict[tuple[int, int], list[int]] = {}
        self._asked: dict[tuple[int, int, int], list[Row]] = {}
        self._producers: dict[int, dict[int, None]] = {}
        for row in index.rows["apply"]:
            if row.pid is not None and row.pid >= 0:
                self._applied.setdefault((row.partition, row.pid), []).append(row.log_index)
                self._producers.setdefault(row.partition, {})[row.pid] = None
        for row in index.rows["expire"]:
            self._forgotten.setdefault((row.partition, row.pid), []).append(row.log_index)
        for row in sorted((*index.rows["decide"], *index.rows["answer"]), key=attrgetter("eid")):
            self._asked.setdefault((row.node, row.partition, row.pid), []).append(row)
        for rows in (*self._applied.values(), *self._forgotten.values()):
            rows.sort()

    def producers(self, partition: int) -> Iterable[int]:
        """All producers that have written there."""
        return self._producers.get(partition, ())

    def applied(self, partition: int, pid: int, upto: int) -> int:
        """The index of the last batch of a producer in the log up to an index; 0: there is none."""
        rows = self._applied.get((partition, pid), [])
        place = bisect_right(rows, upto)
        return rows[place - 1] if place else 0

    def forgotten(self, partition: int, pid: int, after: int, upto: int) -> bool:
        """Whether the log forgets the producer behind one index and up to the other."""
        rows = self._forgotten.get((partition, pid), [])
        place = bisect_right(rows, after)
        return place < len(rows) and rows[place] <= upto

    def is_open(self, node: int, partition: int, pid: int, before: int) -> bool:
        """Whether the node had not answered a request of the producer before a row."""
        opened: dict[tuple[int, ...], bool] = {}
        for row in self._asked.get((node, partition, pid), ()):
            if row.eid < before:
                opened[row.inc, row.epoch, row.seq, row.seq_last] = row.kind == "decide"
        return any(opened.values())


def _by(rows: Iterable[Row], *columns: str) -> dict[tuple[int, ...], list[Row]]:
    key = attrgetter(*columns)
    found: dict[tuple[int, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def _last(rows: Sequence[Row], before: int) -> Row | None:
    return next((row for row in reversed(rows) if row.eid < before), None)
