"""Purgatory: produce requests that wait for the high watermark (promise-K1).

Kafka calls it DelayedProduce.

Items are in log order, so a commit settles the first ones. An item may be answered earlier, because
of the client's time limit or acks=1. It stays here until its entry is committed or leadership ends,
because parked duplicates and the producer's state depend on it.

Time limits cost little: the partition has one lower bound for all deadlines, and `overdue` looks at
the items only when that time comes. Nearly every request is answered long before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ottla.broker.errors import ErrorCode
from ottla.broker.partition.admission import Admission, CommandItem, Item
from ottla.broker.partition.state import PartitionState
from ottla.broker.turn.tickets import DeleteRecordsTicket, ProduceTicket, Ticket
from ottla.raft.types import LogIndex, Micros


class Purgatory:
    """Items that have a place in the log and wait for its commit."""

    def __init__(self, state: PartitionState):
        self.state = state
        self._items: deque[Item] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def enter(self, items: Iterable[Item]) -> None:
        """Take items that were just enqueued, in log order. Requests with acks=0 or acks=1 are
        answered now, and so are their parked copies (RP-COPIES)."""
        for item in items:
            if isinstance(item, ProduceTicket):
                offset = item.batch.base_offset
                if item.acks != -1:
                    self._appended(item, offset)
                if item.in_flight is not None and item.in_flight.waiters:
                    for copy in item.in_flight.waiters:
                        if copy.acks != -1:
                            copy.log_append_time = item.batch.max_timestamp
                            self._appended(copy, offset)
            self._items.append(item)

    def _appended(self, ticket: ProduceTicket, base_offset: int) -> None:
        """Answer a request that does not wait for the commit, once the store has the batch."""
        if not ticket.done:
            ticket.done = True
            ticket.base_offset = base_offset
            ticket.log_start_offset = self.state.log_start_offset
            self.state.outbox.after_append.append(ticket)

    def settle(self, index: LogIndex, enough: bool) -> None:
        """Entries up to `index` are committed and applied: answer the requests that wait for them.

        `enough`: whether as many replicas are in sync as min.insync.replicas requires. If not, the
        batch is stored, and the answer says that too few replicas have it (promise-K2).
        """
        items = self._items
        while items and items[0].index <= index:
            item = items.popleft()
            if isinstance(item, CommandItem):
                self._finish(item)
            else:
                self.answer(item, item.batch.base_offset, enough)

    def _finish(self, item: CommandItem) -> None:
        """Answer the ticket of a command that was applied."""
        if isinstance(item.ticket, DeleteRecordsTicket):
            item.ticket.log_start_offset = self.state.log_start_offset
            self.state.answer(item.ticket, ErrorCode.NONE)

    def answer(self, ticket: ProduceTicket, base_offset: int, enough: bool) -> None:
        """Answer a request whose batch is committed, or a parked copy of such a request."""
        if ticket.done:
            return
        self.state.accept(ticket, base_offset)
        if ticket.acks == -1 and not enough:
            ticket.error = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def overdue(self, now: Micros) -> None:
        """Answer overdue requests with REQUEST_TIMED_OUT and the real base offset; the data stays
        (K-ACKS)."""
        for item in self._items:
            if isinstance(item, CommandItem):
                if item.ticket is not None and item.ticket.deadline <= now:
                    self.state.answer(item.ticket, ErrorCode.REQUEST_TIMED_OUT)
            elif not item.done and item.deadline <= now:
                item.base_offset = item.batch.base_offset
                self.state.time_out(item)

    def fail(self) -> None:
        """Leadership is lost: refuse everything. The next leader's log decides whether these
        entries are committed."""
        for item in self._items:
            if isinstance(item, CommandItem):
                if item.ticket is not None:
                    self.state.not_leader(item.ticket)
            else:
                self.state.lost(item, item.batch.base_offset)
        self._items.clear()

    def open_tickets(self) -> Iterable[Ticket]:
        """Every ticket of this part that waits for its answer."""
        for item in self._items:
            ticket = item if isinstance(item, ProduceTicket) else item.ticket
            if ticket is not None and not ticket.done:
                yield ticket


class PatientPurgatory(Purgatory):
    """As `Purgatory`, but acks=all waits until readers see the batch, which may be later than its
    commit (`Profile.waits_for_all_in_sync`). It also keeps copies of batches that are committed and
    not seen (`PartitionState.copies`)."""

    def settle(self, index: LogIndex, enough: bool) -> None:
        """As `Purgatory.settle`, up to what readers see."""
        state = self.state
        super().settle(min(index, state.shown), enough=True)
        copies, state.copies = state.copies, []
        for copy in copies:
            state.accept_copy(copy, copy.base_offset)

    def answer(self, ticket: ProduceTicket, base_offset: int, enough: bool) -> None:
        """As `Purgatory.answer`; a parked copy may have to wait longer."""
        self.state.accept_copy(ticket, base_offset)

    def overdue(self, now: Micros) -> None:
        """As `Purgatory.overdue`."""
        super().overdue(now)
        for copy in self.state.copies:
            if copy.deadline <= now:
                self.state.refuse(copy, ErrorCode.REQUEST_TIMED_OUT)

    def fail(self) -> None:
        """As `Purgatory.fail`."""
        super().fail()
        for copy in self.state.copies:
            self.state.lost(copy, copy.base_offset)
        self.state.copies.clear()

    def open_tickets(self) -> Iterable[Ticket]:
        """As `Purgatory.open_tickets`."""
        yield from super().open_tickets()
        yield from self.state.copies


class WakingPurgatory(Purgatory):
    """As `Purgatory`, but copies of its items wait in admission (`Profile.copies_keep_mutex`). So
    whatever may have answered an item is told there, and copies get the same outcome in that
    turn."""

    def __init__(self, state: PartitionState, admission: Admission):
        super().__init__(state)
        self._admission = admission

    def enter(self, items: Iterable[Item]) -> None:
        """As `Purgatory.enter`."""
        super().enter(items)
        self._admission.wake()

    def settle(self, index: LogIndex, enough: bool) -> None:
        """As `Purgatory.settle`."""
        super().settle(index, enough)
        self._admission.wake()

    def overdue(self, now: Micros) -> None:
        """As `Purgatory.overdue`."""
        super().overdue(now)
        self._admission.wake()

    def fail(self) -> None:
        """As `Purgatory.fail`."""
        super().fail()
        self._admission.wake()


def make_purgatory(state: PartitionState, admission: Admission) -> Purgatory:
    """The purgatory that the partition's profile needs."""
    profile = state.settings.profile
    if profile.copies_keep_mutex:
        return WakingPurgatory(state, admission)
    return PatientPurgatory(state) if profile.waits_for_all_in_sync else Purgatory(state)
