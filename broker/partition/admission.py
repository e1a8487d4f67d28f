"""Admission decides whether and in which order batches enter the log: hop 4 of a produce request.

The algorithm is that of Redpanda's issue 5054 (promise-R1 to R5), in one pass without I/O:

    admit      leader? in sync enough? batch well-formed?           else refuse (`inspector.py`)
               synced in this term?                                 else wait for sync()
               producer id: take its mutex                          else wait, first come first
    evaluate   look the batch up in the rules (idempotency/rules.py)
                 Duplicate -> answer the old offset, release the mutex
                 Park      -> wait on the original, release the mutex
                 gap       -> release the mutex, prove leadership by a barrier, evaluate again
                 Reject    -> refuse, release the mutex
                 Accept    -> into the leader queue, *holding the mutex*
    take       from the queue into one list, in order, up to the byte budget; hand the mutex on
    propose    the whole list, if the term is still the one in which the rules were asked
               (expected_term)
    enqueued   every entry of the list has its index: its order is certain

The mutex is handed on when its holder joins the list, before the list is proposed. That is safe,
because the list is proposed in the same turn, and all of it gets places in the log or all of it
fails. So requests of one producer that arrive together leave as one append.

The queue and the mutex are needed because the way from *evaluate* to *enqueued* may take time: the
byte budget may be full, or a sync or a barrier may be pending. Leadership may move meanwhile. Then
the condition fails, and the batch fails together with everything that was admitted behind it
(promise-R3, R4).

A client's time limit never removes a batch from this order, because its successors were judged as
if it were there. The client is answered REQUEST_TIMED_OUT and the data stays (suspect redpanda-S1).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from ottla.broker.errors import REASON_CODES, ErrorCode, omits_log_start
from ottla.broker.partition.commands import encode_command
from ottla.broker.partition.inspector import UNFINISHED, Unfinished, make_inspector
from ottla.broker.partition.state import PartitionState
from ottla.broker.turn.machine import Proposals
from ottla.broker.turn.tickets import ProduceTicket, Ticket
from ottla.idempotency.decisions import Accept, Duplicate, Park, Reject
from ottla.idempotency.mutex import ProducerMutex
from ottla.idempotency.rules import RejectReason
from ottla.idempotency.table import ProducerTable
from ottla.log.inspection import appended_at
from ottla.log.record_batch import identity
from ottla.log.types import NO_TIMESTAMP, Millis, ProducerId
from ottla.raft.types import (
    ENTRY_OVERHEAD_BYTES,
    EntryKind,
    LogIndex,
    Micros,
    Proposal,
)


class CommandItem:
    """A command of the partition that waits for its place in the log."""

    __slots__ = ("expires", "index", "payload", "ticket")

    def __init__(self, payload: bytes, ticket: Ticket | None, expires: Sequence[ProducerId] = ()):
        self.payload = payload
        self.ticket = ticket
        self.expires = expires
        """The producers that it forgets. Requests are judged as if it were applied already."""
        self.index: LogIndex = 0


Item = ProduceTicket | CommandItem
NO_ROOM = (RejectReason.TABLE_FULL, RejectReason.TOO_MANY)
"""Refusals before which room is made for one more producer."""


class Admission:
    """Producer mutex, rules and leader queue of one partition."""

    def __init__(self, state: PartitionState, table: ProducerTable):
        self.state = state
        self.table = table
        self.counters = state.settings.counters
        self.mutex: ProducerMutex[ProduceTicket] = ProducerMutex()
        self.queue: deque[Item] = deque()
        """The leader queue, from which `take` takes."""
        self._taken: list[Item] = []
        self.inspector = make_inspector(state)
        self._leadership = state.leadership
        self._append_time: Millis = NO_TIMESTAMP
        """With LogAppendTime: the time of the newest batch that was taken."""

    # --- admit --------------------------------------------------------------------------------

    def admit(self, ticket: ProduceTicket, now: Micros) -> None:
        """Take one batch: refuse it, answer it, or give it its place in the order."""
        leadership = self._leadership
        if not leadership.leading:
            self.state.not_leader(ticket)
            return
        inspector = self.inspector
        if inspector.waiting:
            inspector.wait(ticket, now)
            return
        error = inspector.refusal(ticket, now)
        if error is not None:
            self._stop(ticket, error, now)
        elif leadership.synced:
            self._enter(ticket)
        else:
            leadership.wait(ticket, self._enter)

    def _stop(self, ticket: ProduceTicket, error: ErrorCode | Unfinished, now: Micros) -> None:
        """Refuse the batch, or keep it if its check is not finished."""
        if isinstance(error, Unfinished):
            self.inspector.wait(ticket, now)
        elif omits_log_start(error):
            self.state.answer(ticket, error)
        else:
            self.state.refuse(ticket, error)

    def look_on(self, now: Micros) -> Micros | None:
        """Another slice of work is allowed: continue the checks of waiting batches, in order.
        Returns the earliest deadline of the batches that were judged; None if there was none."""
        inspector, due = self.inspector, None
        while inspector.waiting:
            error = inspector.look_on(inspector.waiting[0], now)
            if error is UNFINISHED:
                break
            ticket = inspector.judged(now)
            due = ticket.deadline if due is None else min(due, ticket.deadline)
            if error is not None:
                self._stop(ticket, error, now)
            elif self._leadership.synced:
                self._enter(ticket)
            else:
                self._leadership.wait(ticket, self._enter)
        return due

    def _enter(self, ticket: ProduceTicket) -> None:
        ticket.term = self._leadership.term
        producer_id = ticket.batch.producer_id
        if producer_id < 0:
            self.queue.append(ticket)
        elif self.mutex.acquire(producer_id, ticket) and not self._evaluate(ticket):
            self._release(producer_id)

    def _release(self, producer_id: ProducerId) -> None:
        """Hand the mutex on until a holder keeps it."""
        while (ticket := self.mutex.release(producer_id)) is not None:
            if self._evaluate(ticket):
                return

    def _evaluate(self, ticket: ProduceTicket) -> bool:
        """Ask the rules; the ticket holds its producer's mutex. True: it keeps the mutex."""
        who = identity(ticket.batch)
        assert who is not None, "only batches with a producer id are evaluated"
        decision = self.table.decide(who, ticket.term)
        if isinstance(decision, Reject) and decision.reason in NO_ROOM:
            if not self._make_room():
                self.state.refuse(ticket, REASON_CODES[decision.reason])
                return False
            decision = self.table.decide(who, ticket.term)
        if isinstance(decision, Accept):
            ticket.in_flight = self.table.begin(who, ticket.term)
            ticket.in_flight.owner = ticket
            self.queue.append(ticket)
            return True
        if isinstance(decision, Duplicate):
            self.counters.duplicates_answered += 1
            ticket.log_append_time = decision.max_timestamp
            self.state.accept_copy(ticket, decision.base_offset)
        elif isinstance(decision, Park):
            return self._park(ticket, decision)
        else:
            self._reject(ticket, decision)
        return False

    def _park(self, ticket: ProduceTicket, decision: Park) -> bool:
        """Let a copy wait for its original. True: it keeps the mutex."""
        original: ProduceTicket = decision.in_flight.owner
        if ticket.acks != -1 and original.index:
            # The original is in this log already, and acks=0 or acks=1 asks for no more.
            ticket.log_append_time = original.batch.max_timestamp
            self.state.accept(ticket, original.batch.base_offset)
        else:
            self.counters.duplicates_parked += 1
            self.table.park(decision.in_flight, ticket)
        return False

    def wake(self) -> None:
        """Items in purgatory may have their outcomes: answer copies that wait for these."""

    def _reject(self, ticket: ProduceTicket, decision: Reject) -> None:
        if decision.barrier and not ticket.barrier_passed:
            self._leadership.barriers.ask(ticket, self._proved)
        else:
            self._refuse(ticket, decision)

    def _refuse(self, ticket: ProduceTicket, decision: Reject) -> None:
        if decision.reason is RejectReason.GAP:
            self.counters.gaps_refused += 1
        self.state.refuse(ticket, REASON_CODES[decision.reason])

    def _proved(self, ticket: ProduceTicket) -> None:
        """The barrier proved that this node leads: judge the gap again, and now answer it."""
        ticket.barrier_passed = True
        self._enter(ticket)

    # --- room in the producer table -----------------------------------------------------------

    def _make_room(self) -> bool:
        """Decide to forget the producer that was idle longest. False: none is idle.

        The decision is in the log before the batch that needs the room, and requests are judged as
        if it were applied already.
        """
        victims = self.table.longest_idle(1)
        self.expire(victims)
        return bool(victims)

    def expire(self, producer_ids: Sequence[ProducerId]) -> None:
        """Queue the decision to forget idle producers."""
        if producer_ids:
            self.table.expire(producer_ids)
            payload = encode_command("expire", self.table.told(producer_ids))
            self.queue.append(CommandItem(payload, None, producer_ids))

    # --- the leader queue ---------------------------------------------------------------------

    def command(self, payload: bytes, ticket: Ticket | None) -> None:
        """Queue a command behind everything that is already admitted."""
        self.queue.append(CommandItem(payload, ticket))

    def take(self, inflight_bytes: int) -> Proposals | None:
        """Take from the queue as much as the byte budget allows; at least one item if no bytes are
        in flight. None: there is nothing to propose.

        Batches are stamped here. If the proposal is refused, the batches fail, so their stamps are
        never used.
        """
        if not self.queue:
            return None
        state, term = self.state, self._leadership.term
        budget = state.settings.leader_queue_bytes
        append_time = state.settings.records.append_time
        offset = state.index.next_offset
        proposals: list[Proposal] = []
        queue, taken = self.queue, self._taken
        while queue:
            item = queue[0]
            payload = item.batch.data if isinstance(item, ProduceTicket) else item.payload
            size = len(payload) + ENTRY_OVERHEAD_BYTES
            if inflight_bytes and inflight_bytes + size > budget:
                break
            inflight_bytes += size
            queue.popleft()
            taken.append(item)
            if isinstance(item, ProduceTicket):
                if append_time:
                    self._set_time(item)
                batch = item.batch
                batch.stamp(offset, term)
                offset += batch.last_offset_delta + 1
                proposals.append(Proposal(EntryKind.BATCH, batch))
                if item.in_flight is not None:
                    self._release(batch.producer_id)
            else:
                proposals.append(Proposal(EntryKind.COMMAND, item.payload))
        return Proposals(term, proposals) if proposals else None

    def _set_time(self, ticket: ProduceTicket) -> None:
        """LogAppendTime: the arrival time of the batch, but not earlier than that of a batch before
        it."""
        self._append_time = max(self._append_time, ticket.wall_ms)
        ticket.batch = appended_at(ticket.batch, self._append_time)
        ticket.log_append_time = self._append_time

    def proposed(self, first: LogIndex | None) -> list[Item]:
        """The outcome of proposing what `take` returned. `first`: the index of its first item.

        The items now have their indexes and are *enqueued*; they are returned, in order. `first` is
        None if the proposal was refused: the term is over, or leadership is being transferred. Then
        everything that was admitted in this term fails, because its predecessors failed
        (promise-R4), and the list is empty.
        """
        taken, self._taken = self._taken, []
        if first is None:
            self.queue.extendleft(reversed(taken))
            self.fail()
            return []
        two_stages = not self.state.settings.profile.one_stage
        for index, item in enumerate(taken, first):
            item.index = index
            if isinstance(item, ProduceTicket) and item.in_flight is not None:
                self.table.enqueued(item.in_flight, index)
            if isinstance(item, ProduceTicket) and item.on_enqueued is not None and two_stages:
                self.state.outbox.enqueued.append(item)
        return taken

    # --- ends ---------------------------------------------------------------------------------

    def fail(self) -> None:
        """Leadership is lost: fail everything that has no place in the log."""
        state = self.state
        for item in self.queue:
            if isinstance(item, ProduceTicket):
                if item.in_flight is not None:
                    for parked in self.table.abandon(item.in_flight):
                        state.not_leader(parked)
                state.not_leader(item)
            else:
                self.table.keep(item.expires)
                if item.ticket is not None:
                    state.not_leader(item.ticket)
        self.queue.clear()
        for ticket in (*self.mutex.drop_all(), *self.inspector.drop_all()):
            state.not_leader(ticket)

    def overdue(self, now: Micros) -> None:
        """Answer clients whose time limit has passed.

        A batch that is being checked has no deadline (`inspector.py`). All other batches keep their
        places and may still be stored.
        """
        state = self.state
        for item in (*self.mutex.waiters(), *self.queue):
            if isinstance(item, ProduceTicket):
                if item.deadline <= now:
                    state.time_out(item)
            elif item.ticket is not None and item.ticket.deadline <= now:
                state.answer(item.ticket, ErrorCode.REQUEST_TIMED_OUT)
        for original, parked in self._parked():
            if parked.deadline <= now and not parked.done:
                if original.index:
                    state.place_copy(parked, original.batch)
                state.refuse(parked, ErrorCode.REQUEST_TIMED_OUT)

    def _parked(self) -> Iterable[tuple[ProduceTicket, ProduceTicket]]:
        """Every parked duplicate, as (original, duplicate)."""
        for in_flight in self.table.in_flight():
            for parked in in_flight.waiters:
                yield in_flight.owner, parked

    def admitted(self) -> Iterable[Item]:
        """The items that wait for a place in the log, in order."""
        yield from self._taken
        yield from self.queue

    def open_tickets(self) -> Iterable[Ticket]:
        """Every ticket of this part that waits for its answer."""
        yield from self.inspector.waiting
        yield from self.mutex.waiters()
        for item in self.queue:
            ticket = item if isinstance(item, ProduceTicket) else item.ticket
            if ticket is not None:
                yield ticket
        for _, parked in self._parked():
            yield parked
