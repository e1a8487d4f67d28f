"""At the end: whose fault is it if a record is in the log twice?

Idempotence covers one epoch of one producer id. A client that begins a new one and sends records
with an unknown outcome again may store them twice, and no broker can prevent it. The client may do
that after a timeout or a restart, or when the log has forgotten the producer (KIP-360). It is a
fault if the client began anew because a broker refused what was stored already, as a leader does
that was deposed without knowing it (sim-S13, redpanda #3039).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from enum import Enum
from itertools import islice, pairwise
from operator import attrgetter
from typing import NamedTuple

from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import SEQUENCES, Index, idempotent
from ottla.sim.invariants.window import WINDOW, Window, first_appended

REFUSED = "OUT_OF_ORDER_SEQUENCE_NUMBER"
DRAINING = "librdkafka"
"""The client model that begins a new epoch after a gap."""


class Cause(Enum):
    """Why a copy is there."""

    NO_PROMISE = "sent without a producer id, or with epoch -1"
    STORED_TWICE = "one epoch of one producer: the broker stored it twice"
    EXPIRED = "the log had forgotten the producer"
    TIMEOUT = "a new epoch after a timeout"
    WINDOW = "refused when its batch was older than the window"
    REFUSAL = "a new epoch, because what was stored had been refused"
    GAP = "a new epoch, because a later batch was refused for want of one before it"
    DRAINED = "a new epoch, as librdkafka begins, because a later batch was refused for want of one"
    NEW_PRODUCER = "a new producer id"
    NEW_EPOCH = "a new epoch"

    @property
    def fault(self) -> bool:
        """Whether the copy is a fault of the broker or of the client."""
        return self in {Cause.STORED_TWICE, Cause.REFUSAL, Cause.GAP}


class Duplicate(NamedTuple):
    """A copy of a record after another one, in the canonical log."""

    partition: int
    value: int
    off: int
    before: int
    """Offset of the copy before it."""
    cause: Cause
    eid: int


def copies(index: Index) -> Iterator[Duplicate]:
    """Every copy of a record, with its cause."""
    known = _Clients(index)
    for (partition, value), places in sorted(index.places.items()):
        for before, off in pairwise(places):
            old, new = index.at(partition, before), index.at(partition, off)
            if old is not None and new is not None:
                yield Duplicate(partition, value, off, before, known.cause(old, new), new.eid)


def resent(index: Index) -> Iterator[Anomaly]:
    """sim-I34; copies within one epoch are sim-I02's."""
    for copy in copies(index):
        if copy.cause in {Cause.REFUSAL, Cause.GAP}:
            text = f"value {copy.value} is at offsets {copy.before} and {copy.off} of partition "
            yield Anomaly("sim-I34", copy.eid, f"{text}{copy.partition}: {copy.cause.value}")


class _Clients:
    """What clients did and were told, as far as it explains copies."""

    def __init__(self, index: Index):
        self._index = index
        self._began: dict[tuple[int, int, int], int] = {}
        """First row in which a client sent with a producer id and epoch."""
        opened: dict[tuple[int, int, int], int] = {}
        for row in reversed(index.rows["send"]):
            self._began[row.client, row.pid, row.epoch] = row.eid
            opened[row.partition, row.pid, row.epoch] = row.seq
        expired: dict[tuple[int, int], list[Row]] = {}
        for row in index.rows["expire"]:
            if row.off is not None:
                expired.setdefault((row.partition, row.pid), []).append(row)
        self._refused: dict[tuple[int, int, int], int] = {}
        """First row in which a client with a producer id and epoch was refused wrongly."""
        self._gaps: dict[tuple[int, int, int], int] = {}
        """First row in which it was refused at all."""
        self._outdated: dict[tuple[int, int, int], int] = {}
        """First row in which it was refused a batch that the brokers could not remember."""
        self._unknown: dict[tuple[int, int, int], int] = {}
        """First row in which it was refused what was stored before the log forgot it."""
        refusals = [row for row in index.rows["error"] if row.code == REFUSED]
        stored = _stored(index) if refusals else {}
        window = Window(index) if refusals else None
        places = {_record(row): row.off for row in index.producers()} if refusals else {}
        for row in reversed(refusals):
            self._gaps[row.client, row.pid, row.epoch] = row.eid
            if window is not None and window.has_left(row, row.eid):
                self._outdated[row.client, row.pid, row.epoch] = row.eid
            elif any(
                each.off > places.get(_record(row), each.off) and each.eid < row.eid
                for each in expired.get((row.partition, row.pid), ())
            ):
                self._unknown[row.client, row.pid, row.epoch] = row.eid
            elif _opens(row, opened) or _wrong(row, stored):
                self._refused[row.client, row.pid, row.epoch] = row.eid
        self._given_up: dict[int, list[int]] = {}
        for row in index.rows["info"]:
            self._given_up.setdefault(row.client, []).append(row.eid)
        self._records: dict[tuple[int, int, int], list[Row]] = {}
        """Records of the canonical logs, by partition, producer and epoch; computed when first
        needed."""
        self._forgotten = {
            whose: sorted(row.off for row in rows) for whose, rows in expired.items()
        }
        """Offsets at which the log forgets a producer, in order, by partition and producer id."""

    def cause(self, old: Row, new: Row) -> Cause:
        """Why `new` is in the log after `old`, which holds the same value."""
        if not (idempotent(old) and idempotent(new)):
            return Cause.NO_PROMISE
        if (old.pid, old.epoch) == (new.pid, new.epoch):
            forgotten = self._index.spell(old) != self._index.spell(new)
            return Cause.EXPIRED if forgotten else Cause.STORED_TWICE
        gone = self._forgotten.get((old.partition, old.pid), [])
        if bisect_right(gone, old.off) < bisect_right(gone, new.off):
            return Cause.EXPIRED
        given = self._index.op_of.get(new.value)
        anew = None if given is None else self._anew(given, old, new)
        if anew is not None:
            return anew
        return Cause.NEW_PRODUCER if old.pid != new.pid else Cause.NEW_EPOCH

    def _anew(self, given: Row, old: Row, new: Row) -> Cause | None:
        """Why the client of the record began a new epoch after `old`, as far as is known."""
        whose = given.client, old.pid, old.epoch
        began = self._began.get(whose)
        anew = self._began.get((given.client, new.pid, new.epoch))
        if began is None or anew is None:
            return None
        if self._gave_up(given.client, began, anew):
            return Cause.TIMEOUT
        if self._refused.get(whose, anew) < anew:
            return Cause.WINDOW if self._outside(old) else Cause.REFUSAL
        if self._outdated.get(whose, anew) < anew:
            return Cause.WINDOW
        if self._unknown.get(whose, anew) < anew:
            return Cause.EXPIRED
        if self._gaps.get(whose, anew) < anew:
            if given.code == DRAINING:
                return Cause.DRAINED
            return Cause.WINDOW if self._outside(old) else Cause.GAP
        return None

    def _gave_up(self, client: int, after: int, before: int) -> bool:
        rows = self._given_up.get(client, [])
        place = bisect_right(rows, after)
        return place < len(rows) and rows[place] < before

    def _outside(self, old: Row) -> bool:
        """Whether enough later batches of that producer and epoch follow it; each batch has a
        chain."""
        if not self._records:
            for row in self._index.producers():
                self._records.setdefault((row.partition, row.pid, row.epoch), []).append(row)
        rows = self._records[old.partition, old.pid, old.epoch]
        later = {old.chain: None}
        for row in islice(rows, bisect_right(rows, old.off, key=attrgetter("off")), None):
            later[row.chain] = None
            if len(later) > WINDOW:
                return True
        return False


def _stored(index: Index) -> dict[tuple[int, int, int, int], int]:
    """The row in which each record of the canonical logs was first appended (-1: unknown), by
    partition, producer, epoch and sequence; the earliest if one is stored twice."""
    appended = first_appended(index)
    stored: dict[tuple[int, int, int, int], int] = {}
    for row in index.producers():
        which = _record(row)
        eid = appended.get((row.partition, row.chain), -1)
        stored[which] = min(eid, stored.get(which, eid))
    return stored


def _record(row: Row) -> tuple[int, int, int, int]:
    """The key of a record."""
    return row.partition, row.pid, row.epoch, row.seq


def _opens(error: Row, opened: dict[tuple[int, int, int], int]) -> bool:
    """Whether a batch is the first of its epoch, so that no gap can precede it; not after a wrap of
    sequences. `opened`: the first sequence sent, by partition, producer and epoch."""
    whose = error.partition, error.pid, error.epoch
    return bool(error.seq == 0 == opened.get(whose, 0))


def _wrong(error: Row, stored: dict[tuple[int, int, int, int], int]) -> bool:
    """Whether a refused batch was stored, or was the next one: then there was no gap."""
    places = (stored.get((error.partition, error.pid, error.epoch, each)) for each in _near(error))
    return any(eid is not None and eid < error.eid for eid in places)


def _near(error: Row) -> tuple[int, int]:
    """Its first sequence, and the one before it."""
    return error.seq, (error.seq - 1) % SEQUENCES
