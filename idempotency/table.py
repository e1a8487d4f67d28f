"""The producers of one partition: what the log says of them, and what this leader has begun.

**Applied state** is a function of the log prefix. `apply` and `apply_expire` change it in log
order, on every replica in the same way, without any check. An entry at or below `applied_index` is
skipped, so a snapshot may be ahead of the log that is replayed after it.

**Speculation** exists on a leader only: requests that are begun and not yet applied, and decisions
to forget producers that are in the log and not yet applied. A request is judged against the applied
state plus the speculation, that is against the state at the *end* of this leader's log. The
speculation ends with the leadership (`new_term`); nothing of it is kept. The steps of one request:

    decide -> Accept -> begin -> enqueued -> apply      its waiters are answered with its offset
                          |         `-> new_term        the next leader reads its fate from the log
                          `-> abandon                   it got no place in the log: never begun

**Bounds.** At most `max_producers` are known. A leader makes room by `expire`: it chooses the
longest idle producers without a request in flight and puts the decision to forget them into the
log. From then on it judges requests as if that decision were applied, because they follow it in the
log. Where replicas may know different producers, the bound is the leader's (`wiping.py`).
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
from ottla.idempotency.rulebooks import Rulebook
from ottla.idempotency.rules import Fact, Row, Verdict
from ottla.idempotency.snapshot import AppliedState, Decoding, Encoding, digest_of, encode, seen_of
from ottla.log.types import BatchIdentity, Millis, Offset, ProducerId, Unpacked

_WELL_FORMED = int(Fact.WELL_FORMED)
_FULL = int(Fact.FULL)
_ZERO = int(Fact.ZERO)
_KNOWN = int(Fact.KNOWN)
_FORGOTTEN = int(Fact.FORGOTTEN)

Waiters: TypeAlias = Sequence[Owner]
"""Parked requests that can be answered now, in the order in which they parked."""
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
        "rulebook",
    )

    def __init__(self, rulebook: Rulebook, max_producers: int) -> None:
        self.rulebook = rulebook
        self.max_producers = max_producers
        self.applied_index: LogIndex = 0
        """The last log index that changed this table, by `apply`, `apply_expire` or a snapshot."""
        self.forgotten = Forgotten()
        """The producers that the applied log has forgotten. Part of the applied state."""
        self._outcomes = rulebook.outcomes
        self._window = rulebook.window
        # Ordered by last applied index: the first producer is idle longest.
        self._applied: OrderedDict[ProducerId, Producer] = OrderedDict()
        self._flights: dict[ProducerId, Flights] = {}
        self._expiring: set[ProducerId] = set()
        self._new: set[ProducerId] = set()  # in flight, and unknown at the end of the log
        self._line = IdleLine()

    # ---- deciding: changes nothing

    def decide(self, identity: BatchIdentity, term: Term) -> Decision:
        """The decision on this batch in this term. Changes nothing."""
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
        """Whether the batch can be the next one of a producer that the log has forgotten or, by a
        decision not applied yet, will forget."""
        if key in self._expiring:
            left = self._applied[key]
            return goes_on(identity[1], identity[2], left.epoch, left.last_sequence)
        return self.forgotten.may_resume(identity)

    def _no_room(self) -> bool:
        return len(self._applied) - len(self._expiring) + len(self._new) >= self.max_producers

    # ---- speculation: on a leader only

    def begin(self, identity: BatchIdentity, term: Term) -> InFlight:
        """After `Accept`: this batch becomes the tail now, and the next request is judged by it."""
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
        """The batch has log index `index` in this leader's log: its order is certain
        (promise-R1)."""
        applied = self.applied_index
        assert index > applied, f"enqueued at {index}, but {applied} is applied already"
        in_flight.index = index

    def park(self, in_flight: InFlight, waiter: object) -> None:
        """After `Park`: `apply` or `abandon` of `in_flight` will return `waiter`."""
        in_flight.waiters.append(waiter)

    def abandon(self, in_flight: InFlight) -> Waiters:
        """The batch was refused its place in the log: the table forgets that it was begun. Returns
        its waiters, who get the same error. If `new_term` has dropped it before, nothing changes.

        A batch with a log index is never abandoned. A leader that cannot learn the fate of such a
        batch resigns (promise-R5), which ends the term for all batches in flight.
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
        """The decision to forget these producers is in this leader's log: from now on they count as
        unknown. `idle_since` or `longest_idle` named them in this turn."""
        for producer_id in producer_ids:
            flights = self._flights.get(producer_id)
            count = len(flights.requests) if flights else 0
            assert not count, f"producer {producer_id} expires with {count} requests in flight"
            if producer_id in self._applied:
                self._expiring.add(producer_id)

    def told(self, producer_ids: Iterable[ProducerId]) -> list[Unpacked]:
        """The keys in the form in which the log's decision to forget these producers names them."""
        return list(producer_ids)

    def keep(self, producer_ids: Iterable[ProducerId]) -> None:
        """The decision to forget these was refused its place in the log: they stay known."""
        self._expiring.difference_update(producer_ids)
        self._recount()

    def new_term(self, term: Term) -> list[InFlight]:
        """A leadership is over, because of a newer term or by resigning: drop all speculation.

        Call it when leadership is lost; a second call when leadership is won does no harm. Returns
        the requests that were in flight, oldest first per producer: their `waiters` need an answer.
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
        """Call this when other producers may be known or idle than before."""
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
        """A batch with a producer id is committed: its entry has log index `index` and was written
        in `term`. Never refuses.

        `now`: the time of this call; only `idle_since` of this replica reads it. Returns the
        requests that were parked on the batch; they are answered with `base_offset`.
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
                producer.restart(epoch)  # the log decides, also if its epoch is older
        # The lines of Producer.finish without the call: this runs for each batch on each replica.
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
        """The log's entry at `index` forgets these producers, in the form that `told` returned.
        Returns how many of them were known."""
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
        """The log ends at `index`, and its log end offset is `end`. A snapshot may have been ahead
        of it: entries beyond `index` are lost with the disks that had them, so drop their effects.

        A producer keeps the batches of its window below `end`; older batches that the lost ones
        pushed out of the window do not come back. A producer that was forgotten beyond `index`
        stays forgotten.
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
        """At most `count` producers to evict (None: all), longest idle first by last applied index.
        Producers with a request in flight here are left out; otherwise replicas agree on it."""
        idle = self._line.idle(self._applied, self.applied_index, self._is_free)
        return list(islice(idle, count))

    def idle_since(self, before: Micros, count: int | None = None) -> list[ProducerId]:
        """At most `count` producers to expire (None: all), longest idle first: this replica has
        applied none of their batches since `before`, and none of their requests is in flight."""
        applied = self._applied
        old = takewhile(lambda pid: applied[pid].seen < before, filter(self._is_free, applied))
        return list(islice(old, count))

    def written_before(self, time: Millis, count: int | None = None) -> list[ProducerId]:
        """At most `count` producers to expire (None: all): the last batch of each has no record
        later than `time`, and none of their requests is in flight."""
        applied = self._applied
        old = (pid for pid, each in applied.items() if each.max_timestamp <= time)
        return list(islice(filter(self._is_free, old), count))

    def _is_free(self, producer_id: ProducerId) -> bool:
        return producer_id not in self._flights and producer_id not in self._expiring

    # ---- the applied state as a value

    def snapshot(self) -> bytes:
        """The applied state, without the speculation, as bytes (`ottla.idempotency.snapshot`)."""
        return encode(self._state())

    def encoding(self) -> Encoding:
        """As `snapshot`, made in steps. Until it is complete, call `keep_for` before each
        `apply`."""
        return Encoding(self._state())

    def keep_for(self, encoding: Encoding, identity: BatchIdentity) -> None:
        """A batch of this producer will be applied next: keep its present state for `encoding`."""
        key = self._key(identity)
        producer = self._applied.get(key)
        if producer is not None:
            encoding.keep(key, producer)

    def restore(self, data: bytes, now: Micros = 0) -> None:
        """Replace the applied state by a `snapshot`; idle times start at `now`. Raises
        SnapshotError."""
        decoding = self.decoding(data, now)
        decoding.step(decoding.left)
        self.adopt(decoding)

    def decoding(self, data: bytes, now: Micros = 0, kept_from: Offset = 0) -> Decoding:
        """Read a snapshot in steps, for `adopt`, without batches that end below offset `kept_from`.
        Does not change this table. Raises SnapshotError."""
        return Decoding(data, self._window, now=now, kept_from=kept_from)

    def let_go(self, count: int) -> int:
        """Before `adopt`: drop `count` of the producers that it replaces. Returns how many are
        left."""
        for _ in range(min(count, len(self._applied))):
            self._applied.popitem()
        return len(self._applied)

    def adopt(self, decoding: Decoding) -> None:
        """Replace the applied state by that of a complete `decoding`. Raises SnapshotError."""
        flying = sum(len(flights.requests) for flights in self._flights.values())
        assert not flying, f"{flying} requests in flight while a snapshot is restored"
        self.applied_index, self.forgotten, self._applied = decoding.state()[:3]
        self._expiring.clear()
        self._recount()

    def digest(self) -> int:
        """64 bits over the applied state, independent of the order in memory. Replicas that have
        applied the same prefix have equal digests (invariant sim-I25)."""
        return digest_of(self.seen())

    def seen(self) -> list[Unpacked]:
        """The plain values that `digest` is computed from
        (`ottla.idempotency.snapshot.seen_of`)."""
        return seen_of(self._state())

    def _key(self, identity: BatchIdentity) -> int:
        """The key under which the table keeps the producer of this batch."""
        return identity.producer_id

    def id_of(self, key: int) -> ProducerId:
        """The producer whose state is kept under this key."""
        return key

    def _state(self) -> AppliedState:
        return AppliedState(self.applied_index, self.forgotten, self._applied)

    def __len__(self) -> int:
        """How many producers the applied state knows."""
        return len(self._applied)

    def describe(self) -> dict[str, Unpacked]:
        """The whole table as plain values, for people and JSON; producers by id."""
        ids = sorted(self._ids())
        return {
            "rulebook": self.rulebook.name,
            "applied_index": self.applied_index,
            "forgotten": self.forgotten.plain(),
            "producers": {self.named(each): self._describe(each) for each in ids},
        }

    def _ids(self) -> set[ProducerId]:
        """Whom `describe` tells of."""
        return {*self._applied, *self._flights}

    def named(self, producer_id: ProducerId) -> int | str:
        """The name of a producer in `describe`."""
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
