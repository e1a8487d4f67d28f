"""What a partition knows of one producer: what is committed, and what this leader has begun.

Two objects, on purpose. `Producer` is a function of the log prefix that has been applied, the same
on every replica. `Flights` belongs to one leadership: it is laid over the `Producer`, decides the
tail and the epoch while it exists, and is thrown away whole when the term ends. Nothing is ever
copied from it into the `Producer`; that changes by applied entries alone.
"""

from __future__ import annotations

from collections import deque
from typing import Any, TypeAlias

from ottla.idempotency.identity import NO_EPOCH, fences
from ottla.idempotency.rules import Fact
from ottla.idempotency.sequence import is_successor
from ottla.log.types import BatchIdentity, Millis, Offset, ProducerEpoch, Sequence, Unpacked

LogIndex: TypeAlias = int
"""Position of an entry in the Raft log; counts entries, never records."""
Term: TypeAlias = int
"""Counts elections; Kafka's leader epoch."""
Micros: TypeAlias = int
"""A point in time of the driver's monotonic clock."""

_KNOWN = int(Fact.KNOWN)
_KNOWN_WITH_TAIL = int(Fact.KNOWN | Fact.TAIL)
_OLDER = int(Fact.OLDER)
_NEWER = int(Fact.NEWER)
_FINISHED = int(Fact.FINISHED)
_IN_FLIGHT = int(Fact.IN_FLIGHT)
_SUCCESSOR = int(Fact.SUCCESSOR)

Finished: TypeAlias = tuple[Sequence, Sequence, Offset, Millis]
"""A committed batch: first sequence, last sequence, base offset, max timestamp."""


Owner: TypeAlias = Any  # a request of the code above, handed back as it came and never read here


class Producer:
    """One producer as the applied log prefix has it: epoch, and the window of its last batches."""

    __slots__ = ("epoch", "finished", "firsts", "last_index", "seen", "tail")

    def __init__(self, epoch: ProducerEpoch, window: int) -> None:
        self.epoch = epoch
        self.finished: deque[Finished] = deque(maxlen=window)
        """Newest last; all of `epoch`. KIP-98 keeps the last 5."""
        self.firsts: deque[Sequence] = deque(maxlen=window)
        """Their first sequences: rules a duplicate out at a glance."""
        self.tail: Sequence = -1
        """Last sequence of the newest finished batch; means nothing while there is none."""
        self.last_index: LogIndex = 0
        """Where its newest entry lies: the order in which the idle are evicted."""
        self.seen: Micros = 0
        """When this replica applied that entry. Never leaves the process."""

    @property
    def last_sequence(self) -> Sequence:
        """Of the newest finished batch; -1 while there is none."""
        return self.tail if self.finished else -1

    def restart(self, epoch: ProducerEpoch) -> None:
        """Another epoch starts another window: nothing of the old one is a duplicate any more."""
        self.epoch = epoch
        self.finished.clear()
        self.firsts.clear()

    def finish(self, finished: Finished) -> None:
        """Take a committed batch of the current epoch into the window."""
        self.finished.append(finished)
        self.firsts.append(finished[0])
        self.tail = finished[1]

    def cut(self, index: LogIndex, end: Offset) -> bool:
        """Only what lies below offset `end`, at or before log index `index`, is left of the window;
        whether anything is."""
        kept = [each for each in self.finished if each[2] < end]
        self.restart(self.epoch)
        for finished in kept:
            self.finish(finished)
        self.last_index = index
        return len(kept) > 0

    def find(self, first: Sequence, last: Sequence) -> Finished | None:
        """The finished batch of exactly this range, if the window still has it."""
        if first in self.firsts:
            for finished in self.finished:
                if finished[0] == first and finished[1] == last:
                    return finished
        return None

    def facts(self, epoch: ProducerEpoch, first: Sequence, last: Sequence) -> int:
        """What is observed about a request of a producer without requests in flight."""
        if self.epoch == NO_EPOCH:
            return _unordered(epoch, _FINISHED if self.find(first, last) else 0)
        if not self.finished:
            return _KNOWN | _compared(epoch, self.epoch)
        facts = _KNOWN_WITH_TAIL
        if epoch != self.epoch:
            facts |= _compared(epoch, self.epoch)
        if is_successor(first, self.tail):
            facts |= _SUCCESSOR
        if first in self.firsts and self.find(first, last):
            facts |= _FINISHED
        return facts


class InFlight:
    """A batch this leader has begun and whose commit it has not seen yet."""

    __slots__ = ("identity", "index", "owner", "term", "waiters")

    def __init__(self, identity: BatchIdentity, term: Term) -> None:
        self.identity = identity
        self.owner: Owner = None
        """Whatever who began it wants to find again in `Park`; never read here."""
        self.term = term
        """The term it was decided in."""
        self.index: LogIndex = 0
        """Its place in the log, 0 until it is enqueued."""
        self.waiters: list[Owner] = []
        """Parked copies, woken with its offset or its error."""

    def describe(self) -> dict[str, Unpacked]:
        """Everything, as plain values."""
        who = self.identity
        return {
            "epoch": who.epoch,
            "first": who.first_sequence,
            "last": who.last_sequence,
            "term": self.term,
            "index": self.index,
            "parked": len(self.waiters),
        }


class Flights:
    """The requests of one producer in flight, oldest first, and what they make of its state.

    Never empty while it stands in the table.
    """

    __slots__ = ("epoch", "requests", "tail")

    def __init__(self) -> None:
        self.requests: dict[tuple[int, int, int, int], InFlight] = {}
        """By identity, in the order begun."""
        self.epoch: ProducerEpoch = -1
        """Epoch of the newest request: fences older ones in this leadership already."""
        self.tail: Sequence = -1
        """Last sequence of the newest request: what the next one must follow."""

    def remove(self, in_flight: InFlight) -> None:
        """Take one out, whatever became of it; the tail is the newest that is left."""
        requests = self.requests
        del requests[in_flight.identity]
        if requests and in_flight.identity[3] == self.tail:
            newest = next(reversed(requests))
            self.epoch = newest[1]
            self.tail = newest[3]

    def facts(self, identity: BatchIdentity, term: Term, producer: Producer | None) -> int:
        """What is observed about a request while these are in flight over `producer`."""
        producer_id, epoch, first, last = identity
        current = self.epoch
        facts = 0
        twin = self.requests.get((producer_id, current, first, last))
        if twin is not None and twin.term == term:
            facts |= _IN_FLIGHT
        if producer is not None and producer.epoch == current and producer.find(first, last):
            facts |= _FINISHED
        if current == NO_EPOCH:
            return _unordered(epoch, facts)
        if epoch != current:
            facts |= _compared(epoch, current)
        if is_successor(first, self.tail):
            facts |= _SUCCESSOR
        return facts | _KNOWN_WITH_TAIL


def _unordered(epoch: ProducerEpoch, seen: int) -> int:
    """What is observed about a request while the current epoch is `NO_EPOCH`; `seen`: whether it
    is a batch that is known. Nothing follows anything, so only a batch itself is a tail; and to
    who names an epoch the producer is as good as unknown."""
    if epoch != NO_EPOCH:
        return 0
    return seen | _KNOWN_WITH_TAIL if seen else _KNOWN


def _compared(epoch: ProducerEpoch, current: ProducerEpoch) -> int:
    if epoch == current:
        return 0
    return _NEWER if fences(epoch, current) else _OLDER
