"""What a partition knows of one producer: what is committed, and what this leader has begun.

These are two separate objects. `Producer` is a function of the log prefix that has been applied,
and is the same on every replica. `Flights` belongs to one leadership. While it exists, it decides
the tail and the epoch instead of the `Producer`; when the term ends, it is dropped as a whole.
Nothing is ever copied from `Flights` into `Producer`: only applied entries change a `Producer`.
"""

from __future__ import annotations

from collections import deque
from typing import Any, TypeAlias

from ottla.idempotency.identity import NO_EPOCH, fences
from ottla.idempotency.rules import Fact
from ottla.idempotency.sequence import MAX_SEQUENCE, is_successor
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


Owner: TypeAlias = Any  # a request of the calling code, handed back unchanged and never read here


class Producer:
    """One producer as the applied log prefix has it: epoch, and the window of its last batches."""

    __slots__ = ("epoch", "finished", "firsts", "last_index", "seen", "tail")

    def __init__(self, epoch: ProducerEpoch, window: int) -> None:
        self.epoch = epoch
        self.finished: deque[Finished] = deque(maxlen=window)
        """The last finished batches, newest last; all of `epoch`. KIP-98 keeps the last 5."""
        self.firsts: deque[Sequence] = deque(maxlen=window)
        """The first sequences of `finished`: a fast test that a batch is not a duplicate."""
        self.tail: Sequence = -1
        """Last sequence of the newest finished batch; means nothing while there is none."""
        self.last_index: LogIndex = 0
        """Log index of its newest entry; idle producers are evicted in the order of this index."""
        self.seen: Micros = 0
        """When this replica applied that entry. Never sent and never stored."""

    @property
    def last_sequence(self) -> Sequence:
        """The last sequence of the newest finished batch; -1 while there is none."""
        return self.tail if self.finished else -1

    @property
    def max_timestamp(self) -> Millis:
        """The largest record time of the newest finished batch; -1 while there is none."""
        return self.finished[-1][3] if self.finished else -1

    def restart(self, epoch: ProducerEpoch) -> None:
        """Begin `epoch` with an empty window: batches of the old epoch are no duplicates any
        more."""
        self.epoch = epoch
        self.finished.clear()
        self.firsts.clear()

    def finish(self, finished: Finished) -> None:
        """Take a committed batch of the current epoch into the window."""
        self.finished.append(finished)
        self.firsts.append(finished[0])
        self.tail = finished[1]

    def cut(self, index: LogIndex, end: Offset) -> bool:
        """Keep only batches with a base offset below `end`; `last_index` becomes `index`. Returns
        whether any batch is left."""
        kept = [each for each in self.finished if each[2] < end]
        self.restart(self.epoch)
        for finished in kept:
            self.finish(finished)
        self.last_index = index
        return len(kept) > 0

    def keep_from(self, offset: Offset) -> bool:
        """Keep only batches that end at `offset` or later. Returns whether any batch is left."""
        kept = [each for each in self.finished if _end(each) >= offset]
        self.restart(self.epoch)
        for finished in kept:
            self.finish(finished)
        return len(kept) > 0

    def find(self, first: Sequence, last: Sequence) -> Finished | None:
        """The finished batch of exactly this range, if the window still has it."""
        if first in self.firsts:
            for finished in self.finished:
                if finished[0] == first and finished[1] == last:
                    return finished
        return None

    def facts(self, epoch: ProducerEpoch, first: Sequence, last: Sequence) -> int:
        """Bits of `Fact` for a request of a producer that has no request in flight."""
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
    """A batch that this leader has begun and has not seen committed yet."""

    __slots__ = ("identity", "index", "owner", "term", "waiters")

    def __init__(self, identity: BatchIdentity, term: Term) -> None:
        self.identity = identity
        self.owner: Owner = None
        """The caller of `begin` may keep an object here, to find it again in `Park`; not read
        here."""
        self.term = term
        """The term in which the batch was accepted."""
        self.index: LogIndex = 0
        """The log index of its entry; 0 until it is enqueued."""
        self.waiters: list[Owner] = []
        """Parked requests with the same batch: they are answered with its offset or its error."""

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
    """The requests of one producer in flight, oldest first, and its epoch and tail after them.

    The table removes a `Flights` when its last request is removed.
    """

    __slots__ = ("epoch", "requests", "tail")

    def __init__(self) -> None:
        self.requests: dict[tuple[int, int, int, int], InFlight] = {}
        """By identity, in the order in which they were begun."""
        self.epoch: ProducerEpoch = -1
        """Epoch of the newest request. It fences older epochs before the request is applied."""
        self.tail: Sequence = -1
        """Last sequence of the newest request: the next request must follow it."""

    def remove(self, in_flight: InFlight) -> None:
        """Remove a request that is applied or abandoned. The newest that is left becomes the
        tail."""
        requests = self.requests
        del requests[in_flight.identity]
        if requests and in_flight.identity[3] == self.tail:
            newest = next(reversed(requests))
            self.epoch = newest[1]
            self.tail = newest[3]

    def facts(self, identity: BatchIdentity, term: Term, producer: Producer | None) -> int:
        """Bits of `Fact` for a request while these are in flight. `producer`: its applied state."""
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


def _end(finished: Finished) -> Offset:
    """The offset of the batch's last record."""
    first, last, base_offset, _ = finished
    return base_offset + (last - first & MAX_SEQUENCE)


def _unordered(epoch: ProducerEpoch, seen: int) -> int:
    """Bits of `Fact` for a request while the current epoch is `NO_EPOCH`. `seen`: `FINISHED` or
    `IN_FLIGHT` if the batch itself is known, else 0.

    Without an epoch no batch follows another, so a tail is observed only for a batch that is known.
    If the request names an epoch, the producer counts as unknown.
    """
    if epoch != NO_EPOCH:
        return 0
    return seen | _KNOWN_WITH_TAIL if seen else _KNOWN


def _compared(epoch: ProducerEpoch, current: ProducerEpoch) -> int:
    if epoch == current:
        return 0
    return _NEWER if fences(epoch, current) else _OLDER
