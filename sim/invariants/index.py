"""One pass over a finished history, for all that is judged at its end.

The *canonical log* of a partition is the committed part of the log that reaches furthest; of equal
ones, the one that begins first; of equal ones, that of the lowest node. Records below the *log
start*, which snapshots and deletions show, may be gone: they are not promised any more.

Records are identified by their value, which is unique however often and under whatever producer id
they are sent. Rows about an `op` are joined with the log by it.

A producer has its promises until the log forgets it (docs/decisions/0012). Its records lie in
*spells*, between two decisions to forget it. Such a decision ends no spell if a batch of the
producer was in flight, because then the producer must not be forgotten (sim-S20).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ottla.sim.history.history import KINDS, Event
from ottla.sim.invariants.findings import ACKS_ALL, Row
from ottla.sim.invariants.mutants import NO_CHECKER_MUTANTS, CheckerMutant, CheckerMutants

SEQUENCES = 1 << 31
"""Sequences run from 0 to 2147483647, then start at 0 again (K-SEQUENCE)."""


class Index:
    """The rows of one run by kind, its canonical logs, and what clients were told."""

    def __init__(self, events: Sequence[Event], mutants: CheckerMutants = NO_CHECKER_MUTANTS):
        self.mutants = mutants
        self.unjudged: Counter[tuple[str, str]] = Counter()
        """How many answers no rule could judge, by invariant and kind of answer."""
        self.derived: dict[type, object] = {}
        """What other modules have computed from these rows for all checkers, by its class."""
        self.rows: dict[str, list[Row]] = {kind: [] for kind in KINDS}
        for event in events:
            self.rows[event.kind].append(event)
        self.invoked: dict[int, Row] = {row.op: row for row in self.rows["inv"]}
        """By `op`, the row that handed the record to a producer."""
        self.op_of: dict[int, Row] = {row.value: row for row in self.rows["inv"]}
        """The same rows by value."""
        self.start: dict[int, int] = {}
        """Log start offset by partition, if it ever moved."""
        told = [(row.partition, row.off) for row in self.rows["snapshot"]]
        told += [(row.partition, row.aux) for row in self.rows["apply"] if row.aux is not None]
        for partition, off in told:
            if off is not None and off > self.start.get(partition, 0):
                self.start[partition] = off
        self.canon: dict[int, list[Row]] = self._canonical()
        """The records of the canonical log in the order of their offsets, by partition."""
        self.places: dict[tuple[int, int], list[int]] = {}
        """Offsets of a record in the canonical log, by partition and value."""
        self._one_partition = CheckerMutant.DROPPED_KEY in mutants
        self._cells: dict[tuple[int, int], Row] = {}
        for partition, log in self.canon.items():
            for row in log:
                self.places.setdefault((partition, row.value), []).append(row.off)
                self._cells[self._cell(partition, row.off)] = row
        phases = {row.code for row in self.rows["phase"]}
        self.cut_short = bool(phases) and "done" not in phases
        """Whether the run ended before its logs were read. A history without phases counts as
        complete."""
        self._forgets = self._forgotten()
        self._applied: dict[tuple[int, int, int], list[Row]] | None = None
        self.acked: list[tuple[Row, Row]] = [
            (row, self.invoked[row.op])
            for row in self.rows["ok"]
            if row.acks == ACKS_ALL and row.op in self.invoked
        ]
        """Acknowledgements that promise something, each with the row that handed the record
        over."""

    def at(self, partition: int, off: int) -> Row | None:
        """The record of the canonical log at that offset."""
        return self._cells.get(self._cell(partition, off))

    def deleted(self, partition: int, off: int | None) -> bool:
        """Whether a record there may be gone; `off` -1 or None: its offset is unknown."""
        start = self.start.get(partition, 0)
        return start > 0 and (off is None or off < start)

    def erased(self, ok: Row) -> bool:
        """Whether an acknowledged record was below the log start. If its client was told no offset,
        the log is searched for the same producer, epoch and sequence; with acks 0 nothing is
        known."""
        if (ok.off is not None and ok.off >= 0) or ok.acks != ACKS_ALL:
            return self.deleted(ok.partition, ok.off)
        if ok.seq is None or ok.partition not in self.start:
            return False
        stored = self._batches().get((ok.partition, ok.pid, ok.epoch), ())
        return any(self.deleted(ok.partition, off) for off in _offsets(ok.seq, stored))

    def producers(self) -> Iterator[Row]:
        """The records of idempotent producers in all canonical logs, in the order of offsets."""
        for partition in sorted(self.canon):
            yield from (row for row in self.canon[partition] if idempotent(row))

    def spell(self, row: Row) -> int:
        """How often the log had forgotten the producer of a record before that record."""
        offs = self._forgets.get((row.partition, row.pid))
        return bisect_right(offs, row.off) if offs else 0

    def _forgotten(self) -> dict[tuple[int, int], list[int]]:
        """Offsets after which a producer is unknown, by partition and producer id."""
        told = sorted(
            (row.partition, row.pid, row.off, row.log_index, row.aux)
            for row in self.rows["expire"]
            if row.off is not None and row.aux is not None
        )
        places: dict[tuple[int, int], list[int]] = {each[:2]: [] for each in told}
        for row in self.rows["apply"] if told else ():
            if (row.partition, row.pid) in places:
                places[row.partition, row.pid].append(row.log_index)
        for applied in places.values():
            applied.sort()
        found: dict[tuple[int, int], list[int]] = {}
        for partition, pid, off, log_index, upto in dict.fromkeys(told):
            indexes = places[partition, pid]
            in_flight = bisect_left(indexes, log_index) > bisect_right(indexes, upto)
            if not in_flight:
                found.setdefault((partition, pid), []).append(off)
        return found

    def _batches(self) -> dict[tuple[int, int, int], list[Row]]:
        """Applied batches by partition, producer and epoch."""
        if self._applied is None:
            self._applied = {}
            for row in self.rows["apply"]:
                if row.seq is not None:
                    key = row.partition, row.pid, row.epoch
                    self._applied.setdefault(key, []).append(row)
        return self._applied

    def _cell(self, partition: int, off: int) -> tuple[int, int]:
        return (0 if self._one_partition else partition, off)

    def _canonical(self) -> dict[int, list[Row]]:
        logs: dict[int, dict[int, list[Row]]] = {}
        for row in self.rows["final"]:
            if row.aux == 1:
                logs.setdefault(row.partition, {}).setdefault(row.node, []).append(row)
        sign = 1 if CheckerMutant.SWAPPED_COMPARATOR in self.mutants else -1
        chosen = {}
        for partition, nodes in sorted(logs.items()):
            for log in nodes.values():
                log.sort(key=_off)
            best = min(nodes, key=lambda n: (sign * nodes[n][-1].off, nodes[n][0].off, n))
            chosen[partition] = nodes[best]
        return chosen


def idempotent(row: Row) -> bool:
    """Whether a record was sent with a producer id and an epoch (epoch -1 has no order)."""
    return row.pid is not None and row.pid >= 0 and row.epoch >= 0


def _offsets(seq: int, batches: Iterable[Row]) -> Iterator[int]:
    """Offsets at which batches hold that sequence."""
    for row in batches:
        place = (seq - row.seq) % SEQUENCES
        if place <= (row.seq_last - row.seq) % SEQUENCES:
            yield row.off + place


def _off(row: Row) -> int:
    return int(row.off)
