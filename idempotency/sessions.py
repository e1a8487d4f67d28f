"""`SessionTable`: a producer table that keeps a separate state for each epoch of a producer.

A *session* is a producer id with an epoch (RP-SESSIONS). So no epoch fences another: an old
instance of a producer can go on after a newer one has written. A batch is known by its last
sequence alone. A batch that ends at the same sequence as a stored one is a duplicate of it, and its
base offset is counted back from that sequence.

Inside the table a session is one number, used where `ProducerTable` uses the producer id. In
snapshots and in the log a session is always the pair (producer id, epoch).

With `Rulebook.begun_counts` a batch that was begun is never taken back. When it fails or its
leadership ends, it keeps its place in the sequence, without an offset, until it is applied after
all or `window` newer batches have pushed it out. That was the bug before redpanda #5157: the retry
of such a batch is refused, and its successor is accepted.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.idempotency.appended import AppendedTable, OrderedTable
from ottla.idempotency.decisions import Accept, Decision, Duplicate, Park, Reject
from ottla.idempotency.identity import NO_EPOCH, well_formed
from ottla.idempotency.producer import Finished, Flights, InFlight, LogIndex, Micros, Producer, Term
from ottla.idempotency.rulebooks import Rulebook
from ottla.idempotency.rules import NOTHING, Fact, Row, Verdict
from ottla.idempotency.sequence import is_successor
from ottla.idempotency.snapshot import AppliedState, Decoding
from ottla.idempotency.table import NOBODY, ProducerTable, Waiters
from ottla.idempotency.wiping import WipingTable
from ottla.log.types import BatchIdentity, Millis, Offset, ProducerEpoch, ProducerId, Unpacked

EPOCH_BITS = 16


def session_of(producer_id: ProducerId, epoch: ProducerEpoch) -> int:
    """The number of a session.

    >>> pair_of(session_of(7, 3)), pair_of(session_of(2**63 - 1, -1))
    ((7, 3), (9223372036854775807, -1))
    """
    return producer_id << EPOCH_BITS | (epoch - NO_EPOCH)


def pair_of(session: int) -> tuple[ProducerId, ProducerEpoch]:
    """Producer id and epoch of a session."""
    return session >> EPOCH_BITS, (session & ((1 << EPOCH_BITS) - 1)) + NO_EPOCH


def make_table(rulebook: Rulebook, max_producers: int) -> ProducerTable:
    """An empty table of the class that the rulebook needs, for at most `max_producers`."""
    if rulebook.appended_counts:
        make_appended = OrderedTable if rulebook.epoch_minus_one_ordered else AppendedTable
        return make_appended(rulebook, max_producers)
    if rulebook.newer_epoch_wipes:
        return WipingTable(rulebook, max_producers)
    make = SessionTable if rulebook.epochs_apart else ProducerTable
    return make(rulebook, max_producers)


class SessionTable(ProducerTable):
    """See the module's docstring."""

    __slots__ = ()

    # ---- deciding

    def decide(self, identity: BatchIdentity, term: Term) -> Decision:
        """As `ProducerTable.decide`."""
        outcome = self._outcomes[self.facts(identity, term)]
        if type(outcome) is Accept or type(outcome) is Reject:
            return outcome
        assert type(outcome) is Row, f"no row for {identity}"
        session = session_of(identity.producer_id, identity.epoch)
        if outcome.decision is Verdict.PARK:
            begun = _begun(self._flights[session], identity.last_sequence)
            assert begun is not None, f"{identity} is in flight nowhere"
            return Park(begun, outcome)
        found = _stored(self._applied[session], identity.last_sequence)
        assert found is not None, f"{identity} is a duplicate of nothing"
        first, _, base_offset, max_timestamp = found
        return Duplicate(base_offset + identity.first_sequence - first, max_timestamp, outcome)

    def facts(self, identity: BatchIdentity, term: Term) -> int:
        """As `ProducerTable.facts`, but OLDER and NEWER are never among them."""
        producer_id, epoch, first, last = identity
        facts = Fact.WELL_FORMED if well_formed(producer_id, epoch, first, last) else NOTHING
        if not first:
            facts |= Fact.ZERO
        session = session_of(producer_id, epoch)
        flights = self._flights.get(session)
        producer = None if session in self._expiring else self._applied.get(session)
        if flights is None and producer is None:
            if self._may_resume(session, identity):
                facts |= Fact.FORGOTTEN
            return int(facts | Fact.FULL if self._no_room() else facts)
        facts |= Fact.KNOWN
        if producer is not None and _stored(producer, last):
            facts |= Fact.FINISHED
        if flights is not None:
            facts |= self._flying(flights, last, term)
        tail = _tail(flights, producer)
        if tail is None:
            return int(facts)
        facts |= Fact.TAIL
        return int(facts | Fact.SUCCESSOR if is_successor(first, tail) else facts)

    def _flying(self, flights: Flights, last: int, term: Term) -> Fact:
        begun = _begun(flights, last)
        if begun is not None and (begun.term == term or self.rulebook.begun_counts):
            return Fact.IN_FLIGHT
        return NOTHING

    # ---- speculation

    def begin(self, identity: BatchIdentity, term: Term) -> InFlight:
        """As `ProducerTable.begin`."""
        begun = super().begin(_inside(identity), term)
        requests = self._flights[begun.identity.producer_id].requests
        if self.rulebook.begun_counts and len(requests) > self.rulebook.window:
            oldest = next(iter(requests.values()))
            if oldest.term < term:
                del requests[oldest.identity]
        return begun

    def abandon(self, in_flight: InFlight) -> Waiters:
        """As `ProducerTable.abandon`; with `begun_counts` it does nothing."""
        return NOBODY if self.rulebook.begun_counts else super().abandon(in_flight)

    def new_term(self, term: Term) -> list[InFlight]:
        """As `ProducerTable.new_term`; with `begun_counts` all requests stay in flight."""
        if not self.rulebook.begun_counts:
            return super().new_term(term)
        self._expiring.clear()
        self._recount()
        return []

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
        """As `ProducerTable.apply`."""
        who = _inside(identity)
        if not self.rulebook.begun_counts or index <= self.applied_index:
            return super().apply(who, base_offset, max_timestamp, index=index, term=term, now=now)
        begun = self._take_out(who)
        super().apply(who, base_offset, max_timestamp, index=index, term=term, now=now)
        flights = self._flights.get(who.producer_id)
        if flights is not None and begun is None:
            flights.tail = who.last_sequence  # another leader began this batch
        return NOBODY

    def _take_out(self, who: BatchIdentity) -> InFlight | None:
        """Remove the request in flight with the last sequence of `who`, and return it. It may be of
        an earlier leadership, so the tail stays that of the newest request."""
        flights = self._flights.get(who.producer_id)
        begun = None if flights is None else _begun(flights, who.last_sequence)
        if flights is not None and begun is not None:
            del flights.requests[begun.identity]
            if not flights.requests:
                del self._flights[who.producer_id]
                self._new.discard(who.producer_id)
        return begun

    def apply_expire(self, producer_ids: Iterable[Unpacked], *, index: LogIndex) -> int:
        """As `ProducerTable.apply_expire`; the log names sessions as pairs."""
        return super().apply_expire([session_of(*each) for each in producer_ids], index=index)

    def told(self, producer_ids: Iterable[ProducerId]) -> list[Unpacked]:
        """As `ProducerTable.told`; each is a pair [producer id, epoch]."""
        return [list(pair_of(each)) for each in producer_ids]

    def rewind(self, index: LogIndex, end: Offset) -> None:
        """As `ProducerTable.rewind`."""
        self._forget_begun()
        super().rewind(index, end)

    # ---- the applied state as a value

    def decoding(self, data: bytes, now: Micros = 0, kept_from: Offset = 0) -> Decoding:
        """As `ProducerTable.decoding`."""
        return Decoding(data, self._window, session_of, now=now, kept_from=kept_from)

    def adopt(self, decoding: Decoding) -> None:
        """As `ProducerTable.adopt`."""
        self._forget_begun()
        super().adopt(decoding)

    def _forget_begun(self) -> None:
        """Drop all requests in flight: a replica whose log was replaced is no leader."""
        if self.rulebook.begun_counts:
            self._flights.clear()

    def _key(self, identity: BatchIdentity) -> int:
        return session_of(identity.producer_id, identity.epoch)

    def id_of(self, key: int) -> ProducerId:
        """As `ProducerTable.id_of`: without the epoch."""
        return pair_of(key)[0]

    def _state(self) -> AppliedState:
        return super()._state()._replace(pair_of=pair_of)

    def named(self, producer_id: ProducerId) -> int | str:
        """Producer id and epoch, with a slash between them."""
        return "{}/{}".format(*pair_of(producer_id))


def _inside(identity: BatchIdentity) -> BatchIdentity:
    """The identity with the session number in the place of the producer id."""
    session = session_of(identity.producer_id, identity.epoch)
    return identity._replace(producer_id=session)


def _begun(flights: Flights, last: int) -> InFlight | None:
    requests = flights.requests.values()
    return next((each for each in requests if each.identity.last_sequence == last), None)


def _stored(producer: Producer, last: int) -> Finished | None:
    return next((each for each in producer.finished if each[1] == last), None)


def _tail(flights: Flights | None, producer: Producer | None) -> int | None:
    """The last sequence of the newest batch, in flight or finished."""
    if flights is not None:
        return flights.tail
    return producer.tail if producer is not None and producer.finished else None
