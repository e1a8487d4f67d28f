"""`WipingTable`: a producer table with one state for all epochs of a producer (RP-ONE-STATE).

**Judging.** A batch of a newer epoch wipes what this replica knows of its producer, before it is
judged and even if it is refused then (redpanda-S3). After that, epochs are not compared: a batch of
an older epoch is judged as if it were of the current one (redpanda-S2). `decide` judges as if the
state were wiped already; `begin` wipes it, or, after a refusal, `meet`.

**This replica's own view.** A wipe is local: followers keep the batches until the log has one of
the newer epoch. So a replica has, besides the applied state, which is the same on every replica, a
view of its own (`_own`) of each producer of which it knows something else. An unknown producer has
one from its first request on, even if that was refused: then it is known, and has no batch
(redpanda-S4). An applied batch changes both. When they are equal, the view is dropped.

A view survives the end of a leadership, but not a restart. For one more than `max_producers`, the
view is dropped that is longest without a request in flight. If each of them has one, there is one
view more.

**Room.** A wiped batch may have its place in the log. It will be applied, so its producer takes
room, even if nothing of it is in flight any more (`_wiped`).

A leader counts the producers that it knows. After a restart, or after a snapshot from another
replica, it may know fewer than others do (RP-RAFT-SNAPSHOT); then these exceed `max_producers`,
because no decision to forget is in the log. When one of them leads, its first newcomer makes
enough room (`surplus`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from ottla.idempotency.decisions import Accept, Decision, Duplicate, Park, Reject
from ottla.idempotency.identity import well_formed
from ottla.idempotency.producer import Flights, InFlight, LogIndex, Micros, Producer, Term
from ottla.idempotency.rulebooks import Rulebook
from ottla.idempotency.rules import Fact, Row, Verdict
from ottla.idempotency.sequence import is_successor
from ottla.idempotency.snapshot import Decoding
from ottla.idempotency.table import NOBODY, ProducerTable, Waiters
from ottla.log.types import BatchIdentity, Millis, Offset, ProducerId, Sequence, Unpacked

_ANY_EPOCH = 0
"""Epochs are not checked."""
Range: TypeAlias = tuple[ProducerId, Sequence, Sequence]
"""A batch of whichever epoch: producer, first and last sequence."""


class WipingTable(ProducerTable):
    """See the module's docstring."""

    __slots__ = ("_idle_views", "_own", "_ranges", "_wiped")

    def __init__(self, rulebook: Rulebook, max_producers: int) -> None:
        super().__init__(rulebook, max_producers)
        self._own: dict[ProducerId, Producer] = {}
        self._idle_views: dict[ProducerId, None] = {}
        """Who of `_own` has no request in flight, longest so first."""
        self._ranges: dict[Range, InFlight] = {}
        """All requests in flight."""
        self._wiped: dict[ProducerId, set[InFlight]] = {}
        """Requests that were in flight until a newer epoch came, of producers that are not applied
        and thus in `_new`."""

    # ---- deciding

    def decide(self, identity: BatchIdentity, term: Term) -> Decision:
        """As `ProducerTable.decide`."""
        outcome = self._outcomes[self.facts(identity, term)]
        if type(outcome) is Accept or type(outcome) is Reject:
            return outcome
        assert type(outcome) is Row, f"no row for {identity}"
        producer_id, _, first, last = identity
        if outcome.decision is Verdict.PARK:
            begun = self._begun(identity, term)
            assert begun is not None, f"{identity} is in flight nowhere"
            return Park(begun, outcome)
        view = self._view(producer_id)
        found = None if view is None else view.find(first, last)
        assert found is not None, f"{identity} is a duplicate of nothing"
        return Duplicate(found[2], found[3], outcome)

    def facts(self, identity: BatchIdentity, term: Term) -> int:
        """As `ProducerTable.facts`; OLDER, NEWER and FORGOTTEN are never among them."""
        producer_id, epoch, first, last = identity
        sound = well_formed(producer_id, _ANY_EPOCH, first, last)
        facts = int(Fact.WELL_FORMED) if sound else 0
        if not first:
            facts |= Fact.ZERO
        if last < first:
            facts |= Fact.BACKWARDS
        view = self._view(producer_id)
        if self._no_room() and self._is_stranger(producer_id):
            return int(facts | Fact.FULL)
        if view is None:
            return int(facts)
        facts |= Fact.KNOWN
        if epoch > view.epoch:
            return int(facts)
        flights = self._flights.get(producer_id)
        if view.find(first, last) is not None:
            facts |= Fact.FINISHED
        if flights is not None and self._begun(identity, term) is not None:
            facts |= Fact.IN_FLIGHT
        tail = flights.tail if flights is not None else view.last_sequence
        if tail < 0:
            return int(facts)
        facts |= Fact.TAIL
        return int(facts | Fact.SUCCESSOR if is_successor(first, tail) else facts)

    def meet(self, identity: BatchIdentity) -> None:
        """A request was judged, whatever came of it: from now on its producer is known, and if its
        epoch is newer, what was known before is wiped."""
        producer_id, epoch, _, _ = identity
        view = self._view(producer_id)
        if view is not None and epoch <= view.epoch:
            return
        self._wipe(producer_id)
        self._drop_view(producer_id)
        if len(self._own) >= self.max_producers and self._idle_views:
            self._drop_view(next(iter(self._idle_views)))
        self._own[producer_id] = Producer(epoch, self._window)
        self._idle_views[producer_id] = None

    def _wipe(self, producer_id: ProducerId) -> None:
        """Forget that requests are in flight; they may be in the log all the same."""
        flights = self._flights.pop(producer_id, None)
        if flights is None:
            return
        requests = flights.requests.values()
        for each in requests:
            self._ranges.pop(_range(each.identity), None)
        if producer_id in self._new:
            self._wiped.setdefault(producer_id, set()).update(requests)
        self._line.forget()

    def _drop_view(self, producer_id: ProducerId) -> None:
        self._own.pop(producer_id, None)
        self._idle_views.pop(producer_id, None)

    def _begun(self, identity: BatchIdentity, term: Term) -> InFlight | None:
        """The request in flight of exactly this range, of whichever epoch."""
        found = self._ranges.get(_range(identity))
        return found if found is not None and found.term == term else None

    def _view(self, producer_id: ProducerId) -> Producer | None:
        """What this replica knows of a producer; None: it is unknown."""
        own = self._own.get(producer_id)
        if own is not None:
            return own
        return None if producer_id in self._expiring else self._applied.get(producer_id)

    def _is_stranger(self, producer_id: ProducerId) -> bool:
        """Whether nothing of the producer is applied, in flight or wiped: it takes no room yet."""
        if producer_id in self._new:
            return False
        return producer_id not in self._applied or producer_id in self._expiring

    def surplus(self) -> int:
        """How many producers have to be forgotten before there is room for one more."""
        return len(self._applied) - len(self._expiring) + len(self._new) - self.max_producers + 1

    def _ids(self) -> set[ProducerId]:
        return super()._ids() | self._own.keys()

    def _describe(self, producer_id: ProducerId) -> dict[str, Unpacked]:
        told = super()._describe(producer_id)
        own = self._own.get(producer_id)
        if own is not None:
            told["own_view"] = {"epoch": own.epoch, "finished": [list(f) for f in own.finished]}
        return told

    # ---- speculation

    def begin(self, identity: BatchIdentity, term: Term) -> InFlight:
        """As `ProducerTable.begin`; it also does what `meet` does."""
        self.meet(identity)
        in_flight = super().begin(identity, term)
        self._ranges[_range(identity)] = in_flight
        self._idle_views.pop(identity.producer_id, None)
        return in_flight

    def abandon(self, in_flight: InFlight) -> Waiters:
        """As `ProducerTable.abandon`; what a newer epoch has wiped takes no room any more."""
        producer_id = in_flight.identity.producer_id
        wiped = self._wiped.get(producer_id)
        if wiped is not None:
            wiped.discard(in_flight)
            if not wiped:
                del self._wiped[producer_id]
        waiters = super().abandon(in_flight)
        if producer_id in self._wiped:
            self._new.add(producer_id)
        elif producer_id not in self._flights:
            self._new.discard(producer_id)
        return waiters

    def _remove(self, flights: Flights, in_flight: InFlight) -> None:
        super()._remove(flights, in_flight)
        self._ended(in_flight)

    def _ended(self, in_flight: InFlight) -> None:
        """The request is no longer in flight."""
        producer_id, place = in_flight.identity.producer_id, _range(in_flight.identity)
        if self._ranges.get(place) is in_flight:
            del self._ranges[place]
        if producer_id in self._own and producer_id not in self._flights:
            self._idle_views[producer_id] = None

    def new_term(self, term: Term) -> list[InFlight]:
        """As `ProducerTable.new_term`."""
        self._ranges.clear()
        self._wiped.clear()
        self._idle_views = dict.fromkeys(self._own)
        return super().new_term(term)

    def _recount(self) -> None:
        super()._recount()
        known = self._applied.keys() - self._expiring if self._wiped else ()
        self._new.update(each for each in self._wiped if each not in known)

    def expire(self, producer_ids: Iterable[ProducerId]) -> None:
        """As `ProducerTable.expire`; what this replica alone knows of them is gone."""
        gone = list(producer_ids)
        for producer_id in gone:
            self._drop_view(producer_id)
        super().expire(gone)

    # ---- applying

    def apply(
        self,
        identity: BatchIdentity,
        base_offset: Offset,
        max_timestamp: Millis,
        *,
        index: LogIndex,
        term: Term,
        now: Micros = 0,
    ) -> Waiters:
        """As `ProducerTable.apply`; an older epoch extends the state of the current one."""
        if index <= self.applied_index:
            return NOBODY
        self.applied_index = index
        producer_id, epoch, first, last = identity
        finished = first, last, base_offset, max_timestamp
        producer = self._applied.get(producer_id)
        if producer is None:
            producer = self._applied[producer_id] = Producer(epoch, self._window)
            self._new.discard(producer_id)
            self._wiped.pop(producer_id, None)
        else:
            self._applied.move_to_end(producer_id)
        own = self._own.get(producer_id)
        for each in (producer, own):
            if each is not None:
                if epoch > each.epoch:
                    each.restart(epoch)
                each.finish(finished)
        producer.last_index, producer.seen = index, now
        if own is not None and own.epoch == producer.epoch and own.finished == producer.finished:
            self._drop_view(producer_id)
        self._take_out(identity)
        return NOBODY

    def _take_out(self, identity: BatchIdentity) -> None:
        """Remove the oldest request in flight of the producer if it has this range, be it of
        another epoch (redpanda-S11)."""
        flights = self._flights.get(identity.producer_id)
        if flights is None:
            return
        oldest = next(iter(flights.requests.values()))
        if oldest.identity[2:] != identity[2:]:
            return
        del flights.requests[oldest.identity]
        if not flights.requests:
            del self._flights[identity.producer_id]
        self._ended(oldest)

    def apply_expire(self, producer_ids: Iterable[Unpacked], *, index: LogIndex) -> int:
        """As `ProducerTable.apply_expire`."""
        gone = list(producer_ids)
        if index > self.applied_index:
            for producer_id in gone:
                if producer_id not in self._expiring:  # else it was met again since the decision
                    self._drop_view(producer_id)
        return super().apply_expire(gone, index=index)

    def rewind(self, index: LogIndex, end: Offset) -> None:
        """As `ProducerTable.rewind`."""
        self._own.clear()
        self._idle_views.clear()
        super().rewind(index, end)

    def adopt(self, decoding: Decoding) -> None:
        """As `ProducerTable.adopt`."""
        self._own.clear()
        self._idle_views.clear()
        super().adopt(decoding)


def _range(identity: BatchIdentity) -> Range:
    producer_id, _, first, last = identity
    return producer_id, first, last
