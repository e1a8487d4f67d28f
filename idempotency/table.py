"""The producers of one partition: what the log says of them, and what this leader has begun.

**Applied state** is a function of the log prefix: `apply` and `apply_expire` change it, in log
order, on every replica alike, validating nothing. An entry at or below `applied_index` is skipped,
so a snapshot may be ahead of the log that is replayed over it.

**Speculation** exists on a leader only: requests begun and not yet applied, and expiries put into
the log and not yet applied. Decisions are made against the applied state with the speculation laid
over it, that is against the state at the *end* of this leader's log. It ends with the leadership
(`new_term`) and leaves no trace. One request's way through:

    decide -> Accept -> begin -> enqueued -> apply      its waiters wake with the offset
                          |         `-> new_term        the next leader reads its fate from the log
                          `-> abandon                   no place in the log: as if never begun

**Bounds.** At most `max_producers` are known. A leader makes room by `expire`: it names the longest
idle without a request in flight, puts that decision into the log, and from then on judges requests
as if it had been applied, because in the log they come after it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import TypeAlias

from ottla.idempotency.decisions import Accept, Decision, Duplicate, Park, Reject
from ottla.idempotency.forgotten import Forgotten, goes_on
from ottla.idempotency.identity import well_formed
from ottla.idempotency.idle_line import IdleLine
from ottla.idempotency.producer import Flights, InFlight, LogIndex, Micros, Owner, Producer, Term
from ottla.idempotency.profiles import Profile
from ottla.idempotency.rules import Fact, Row, Verdict
from ottla.idempotency.snapshot import AppliedState, Decoding, Encoding, digest_of, encode, seen_of
from ottla.log.types import BatchIdentity, Millis, Offset, ProducerId, Unpacked

_WELL_FORMED = int(Fact.WELL_FORMED)
_FULL = int(Fact.FULL)
_ZERO = int(Fact.ZERO)
_KNOWN = int(Fact.KNOWN)
_FORGOTTEN = int(Fact.FORGOTTEN)

Waiters: TypeAlias = Sequence[Owner]
"""Parked requests to be woken, in the order in which they parked."""
NOBODY: Waiters = ()


class ProducerTable:
    """All producers of one partition replica. Sans-IO; one on every replica, leader or not."""

    __slots__ = (
        "_applied",
        "_expiring",
        "_flights",
        "_line",
        "_new",
        "_outcomes",
        "_window",
        "applied_index",
        "forgotten",
        "max_producers",
        "profile",
    )

    def __init__(self, profile: Profile, max_producers: int) -> None:
        self.profile = profile
        self.max_producers = max_producers
        self.applied_index: LogIndex = 0
        """The last log index that changed this table, on the way or in a snapshot."""
        self.forgotten = Forgotten()
        """Whom the applied log has forgotten, and where: part of the applied state."""
        self._outcomes = profile.outcomes
        self._window = profile.window
        # Ordered by last applied index: the front is idle longest.
        self._applied: OrderedDict[ProducerId, Producer] = OrderedDict()
        self._flights: dict[ProducerId, Flights] = {}
        self._expiring: set[ProducerId] = set()
        self._new: set[ProducerId] = set()  # in flight, and unknown at the end of the log
        self._line = IdleLine()

    # ---- deciding: looks only

    def decide(self, identity: BatchIdentity, term: Term) -> Decision:
        """What is to be done with this batch in this term. Changes nothing."""
        facts = self.facts(identity, term)
        outcome = self._outcomes[facts]
        if type(outcome) is Accept or type(outcome) is Reject:
            return outcome
        assert type(outcome) is Row, f"facts {facts} of {identity} have no row"
        if outcome.decision is Verdict.PARK:
            return Park(self._flights[identity.producer_id].requests[identity], outcome)
        found = self._applied[identity.producer_id].find(*identity[2:])
        assert found is not None, f"facts {facts}: {identity} is a duplicate of nothing"
        return Duplicate(found[2], found[3], outcome)

    def facts(self, identity: BatchIdentity, term: Term) -> int:
        """What is observed about a request: bits of `ottla.idempotency.rules.Fact`."""
        producer_id, epoch, first, last = identity
        facts = _WELL_FORMED if well_formed(producer_id, epoch, first, last) else 0
        if not first:
            facts |= _ZERO
        producer = self._applied.get(producer_id)
        if producer_id in self._expiring:
            producer = None
        flights = self._flights.get(producer_id)
        if flights is not None:
            facts |= flights.facts(identity, term, producer)
        elif producer is not None:
            facts |= producer.facts(epoch, first, last)
        elif self._no_room():
            facts |= _FULL
        if facts & _KNOWN:
            return facts
        return facts | _FORGOTTEN if self._may_resume(producer_id, identity) else facts

    def _may_resume(self, key: int, identity: BatchIdentity) -> bool:
        """Whether the log has forgotten this producer, or is about to, where the batch goes on."""
        if key in self._expiring:
            left = self._applied[key]
            return goes_on(identity[1], identity[2], left.epoch, left.last_sequence)
        return self.forgotten.may_resume(identity)

    def _no_room(self) -> bool:
        return len(self._applied) - len(self._expiring) + len(self._new) >= self.max_producers

    # ---- speculation: on a leader only

    def begin(self, identity: BatchIdentity, term: Term) -> InFlight:
        """After `Accept`: the tail moves now, so that the next request is judged against it."""
        in_flight = InFlight(identity, term)
        flights = self._flights.get(identity[0])
        if flights is None:
            flights = self._flights[identity[0]] = Flights()
            if identity[0] not in self._applied or identity[0] in self._expiring:
                self._new.add(identity[0])
        flights.requests[identity] = in_flight
        flights.epoch = identity[1]
        flights.tail = identity[3]
        return in_flight

    def enqueued(self, in_flight: InFlight, index: LogIndex) -> None:
        """It has its place in this leader's log: from here on the order is certain (promise-R1)."""
        applied = self.applied_index
        assert index > applied, f"enqueued at {index}, but {applied} is applied already"
        in_flight.index = index

    def park(self, in_flight: InFlight, waiter: object) -> None:
        """After `Park`: `waiter` is among those that `apply` or `abandon` of it returns."""
        in_flight.waiters.append(waiter)

    def abandon(self, in_flight: InFlight) -> Waiters:
        """It was refused its place in the log: gone as if never begun. Its waiters, who share the
        error. One that is dropped changes nothing.

        What has a place is never abandoned. A leader that cannot learn its fate resigns
        (promise-R5), which ends the term for all of them.
        """
        index = in_flight.index
        assert not index, f"{in_flight.identity} is abandoned, and has its place at {index}"
        flights = self._flights.get(in_flight.identity[0])
        if flights is not None and flights.requests.get(in_flight.identity) is in_flight:
            self._remove(flights, in_flight)
            self._line.forget()
        waiters, in_flight.waiters = in_flight.waiters, []
        return waiters

    def expire(self, producer_ids: Iterable[ProducerId]) -> None:
        """The decision to forget these, named by `idle_since` or `longest_idle` in this turn, lies
        in this leader's log: judge what follows without them, until `apply_expire`."""
        for producer_id in producer_ids:
            flights = self._flights.get(producer_id)
            count = len(flights.requests) if flights else 0
            assert not count, f"producer {producer_id} expires with {count} requests in flight"
            if producer_id in self._applied:
                self._expiring.add(producer_id)

    def told(self, producer_ids: Iterable[ProducerId]) -> list[Unpacked]:
        """Producers as the decision to forget them names them in the log."""
        return list(producer_ids)

    def keep(self, producer_ids: Iterable[ProducerId]) -> None:
        """The decision to forget these was refused its place in the log: it was never made."""
        self._expiring.difference_update(producer_ids)
        self._recount()

    def new_term(self, term: Term) -> list[InFlight]:
        """A leadership is over, for a newer term or within its own: drop all speculation.

        Call it when leadership is lost and again, harmlessly, when it is won. Returns what was in
        flight, oldest first per producer, so that its `waiters` can be told.
        """
        dropped = list(self.in_flight())
        for in_flight in dropped:
            assert in_flight.term <= term, f"in flight in {in_flight.term}, term {term} begins"
        self._flights.clear()
        self._expiring.clear()
        self._recount()
        return dropped

    def in_flight(self) -> Iterator[InFlight]:
        """All requests in flight, oldest first per producer."""
        for flights in self._flights.values():
            yield from flights.requests.values()

    def _remove(self, flights: Flights, in_flight: InFlight) -> None:
        flights.remove(in_flight)
        if not flights.requests:
            del self._flights[in_flight.identity[0]]
            if self._new:
                self._new.discard(in_flight.identity[0])

    def _recount(self) -> None:
        """Others may be known, and idle, than were."""
        self._line.forget()
        known = self._applied.keys() - self._expiring if self._flights else ()
        self._new = {each for each in self._flights if each not in known}

    # ---- applying: on every replica, in log order

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
        """A batch with a producer id is committed at `index`, written in `term`; never refuses.

        `now` is when, for `idle_since` of this replica only. Returns who was parked on it; they are
        answered with `base_offset`.
        """
        if index <= self.applied_index:
            return NOBODY
        self.applied_index = index
        producer_id, epoch, first, last = identity
        producer = self._applied.get(producer_id)
        if producer is None:
            producer = self._applied[producer_id] = Producer(epoch, self._window)
            self._new.discard(producer_id)
        else:
            self._applied.move_to_end(producer_id)
            if producer.epoch != epoch:
                producer.restart(epoch)  # the log is right, whatever it says
        # Producer.finish, written out: every replica comes by here with every batch.
        producer.finished.append((first, last, base_offset, max_timestamp))
        producer.firsts.append(first)
        producer.tail = last
        producer.last_index = index
        producer.seen = now
        flights = self._flights.get(producer_id)
        if flights is None:
            return NOBODY
        in_flight = flights.requests.get(identity)
        if in_flight is None or in_flight.index != index or in_flight.term != term:
            return NOBODY
        self._remove(flights, in_flight)
        if not in_flight.waiters:
            return NOBODY
        waiters, in_flight.waiters = in_flight.waiters, []
        return waiters

    def apply_expire(self, producer_ids: Iterable[Unpacked], *, index: LogIndex) -> int:
        """The log says at `index` that these, as `told` named them, are forgotten. Returns how many
        of them were known."""
        if index <= self.applied_index:
            return 0
        self.applied_index = index
        gone = 0
        for producer_id in producer_ids:
            left = self._applied.pop(producer_id, None)
            if left is not None:
                self.forgotten.add(self.id_of(producer_id), left.epoch, left.last_sequence)
                gone += 1
            self._expiring.discard(producer_id)
            if producer_id in self._flights:
                self._new.add(producer_id)
        return gone

    def rewind(self, index: LogIndex, end: Offset) -> None:
        """The log ends at `index`, below offset `end`: what a snapshot ahead of it knew beyond that
        was lost with the disks that had it, and is forgotten.

        Producers that are left have the batches that are left, and no older ones in their place; of
        those that were forgotten beyond `index` nothing can be said.
        """
        flying = sum(len(flights.requests) for flights in self._flights.values())
        assert not flying, f"{flying} requests in flight while the log ends at {index}"
        self.applied_index = min(self.applied_index, index)
        beyond = [pid for pid, each in self._applied.items() if each.last_index > index]
        for producer_id in beyond:
            if not self._applied[producer_id].cut(index, end):
                del self._applied[producer_id]
        self._recount()

    # ---- who may be forgotten

    def longest_idle(self, count: int | None = None) -> list[ProducerId]:
        """At most `count` candidates for eviction (None: all), by last applied index: the same on
        all replicas but for those with a request in flight here, who are never among them."""
        idle = self._line.idle(self._applied, self.applied_index, self._is_free)
        return list(islice(idle, count))

    def idle_since(self, before: Micros, count: int | None = None) -> list[ProducerId]:
        """At most `count` candidates for expiry (None: all): applied nothing here since `before`,
        longest idle first, never one with a request in flight."""
        applied = self._applied
        old = takewhile(lambda pid: applied[pid].seen < before, filter(self._is_free, applied))
        return list(islice(old, count))

    def _is_free(self, producer_id: ProducerId) -> bool:
        return producer_id not in self._flights and producer_id not in self._expiring

    # ---- the applied state as a value

    def snapshot(self) -> bytes:
        """The applied state (never the speculation), see `ottla.idempotency.snapshot`."""
        return encode(self._state())

    def encoding(self) -> Encoding:
        """The same, to be made in steps: tell it what is about to be applied (`keep_for`)."""
        return Encoding(self._state())

    def keep_for(self, encoding: Encoding, identity: BatchIdentity) -> None:
        """A batch of this producer is about to be applied."""
        key = self._key(identity)
        producer = self._applied.get(key)
        if producer is not None:
            encoding.keep(key, producer)

    def restore(self, data: bytes, now: Micros = 0) -> None:
        """Become what `snapshot` wrote; idle times start at `now`. Raises SnapshotError."""
        decoding = self.decoding(data, now)
        decoding.step(decoding.left)
        self.adopt(decoding)

    def decoding(self, data: bytes, now: Micros = 0) -> Decoding:
        """The same, to be read in steps, for `adopt`. Changes nothing. Raises SnapshotError."""
        return Decoding(data, self._window, now=now)

    def let_go(self, count: int) -> int:
        """Before `adopt`: drop `count` of those that it replaces; returns how many are left."""
        for _ in range(min(count, len(self._applied))):
            self._applied.popitem()
        return len(self._applied)

    def adopt(self, decoding: Decoding) -> None:
        """Become what was read, all of it. Raises SnapshotError."""
        flying = sum(len(flights.requests) for flights in self._flights.values())
        assert not flying, f"{flying} requests in flight while a snapshot is restored"
        self.applied_index, self.forgotten, self._applied = decoding.state()[:3]
        self._expiring.clear()
        self._recount()

    def digest(self) -> int:
        """64 bits over the applied state, whatever the order in memory: equal on replicas that
        have applied the same prefix (invariant sim-I25)."""
        return digest_of(self.seen())

    def seen(self) -> list[Unpacked]:
        """What `digest` is made of, see `ottla.idempotency.snapshot.seen_of`."""
        return seen_of(self._state())

    def _key(self, identity: BatchIdentity) -> int:
        """Under what a producer is kept."""
        return identity.producer_id

    def id_of(self, key: int) -> ProducerId:
        """Whose state is kept under this key."""
        return key

    def _state(self) -> AppliedState:
        return AppliedState(self.applied_index, self.forgotten, self._applied)

    def __len__(self) -> int:
        """How many producers the applied state knows."""
        return len(self._applied)

    def describe(self) -> dict[str, Unpacked]:
        """Everything, as plain values for people and JSON; producers by id."""
        ids = sorted({*self._applied, *self._flights})
        return {
            "profile": self.profile.name,
            "applied_index": self.applied_index,
            "forgotten": self.forgotten.plain(),
            "producers": {self.named(each): self._describe(each) for each in ids},
        }

    def named(self, producer_id: ProducerId) -> int | str:
        """What `describe` calls a producer."""
        return producer_id

    def _describe(self, producer_id: ProducerId) -> dict[str, Unpacked]:
        producer = self._applied.get(producer_id)
        flights = self._flights.get(producer_id)
        requests = flights.requests.values() if flights else ()
        return {
            "epoch": producer.epoch if producer else None,
            "finished": [list(f) for f in producer.finished] if producer else [],
            "expiring": producer_id in self._expiring,
            "in_flight": [each.describe() for each in requests],
        }
