"""Purgatory: produce requests that wait for the high watermark (promise-K1).

Kafka calls it DelayedProduce.

Items stand in log order, so a commit settles a prefix. An answer may leave earlier, by the client's
time limit or by acks=1; the item stays until its entry commits or leadership ends, since parked
duplicates and producer state hang on it.

Time limits are checked lazily: one lower bound for the whole partition, scanned only when it comes
(nearly every request is answered long before).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ottla.broker.errors import ErrorCode
from ottla.broker.partition.admission import CommandItem, Item
from ottla.broker.partition.state import PartitionState
from ottla.broker.turn.tickets import ProduceTicket, Ticket
from ottla.raft.types import LogIndex, Micros


class Purgatory:
    """Items that have their place in the log and wait for its commit."""

    def __init__(self, state: PartitionState):
        self.state = state
        self._items: deque[Item] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def enter(self, items: Iterable[Item]) -> None:
        """Just enqueued, in log order. acks=0 and acks=1 get their answer on the way in, and so do
        copies that came before their original had its place (RP-COPIES)."""
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
        """The answer of who waits for no commit, to leave once the store has the batch."""
        if not ticket.done:
            ticket.done = True
            ticket.base_offset = base_offset
            ticket.log_start_offset = self.state.log_start_offset
            self.state.outbox.after_append.append(ticket)

    def settle(self, index: LogIndex, enough: bool) -> list[CommandItem]:
        """Entries up to `index` are committed and applied: answer whoever waits for them.

        `enough`: as many replicas are in sync as min.insync.replicas asks for; if not, the record
        is stored and the client must know it is less safe than it asked for (promise-K2).
        Returns the items that are commands, for their owner to finish.
        """
        items = self._items
        commands: list[CommandItem] = []
        while items and items[0].index <= index:
            item = items.popleft()
            if isinstance(item, CommandItem):
                commands.append(item)
            else:
                self.answer(item, item.batch.base_offset, enough)
        return commands

    def answer(self, ticket: ProduceTicket, base_offset: int, enough: bool) -> None:
        """Outcome of a committed batch, for its own request or a parked copy of it."""
        if ticket.done:
            return
        self.state.accept(ticket, base_offset)
        if ticket.acks == -1 and not enough:
            ticket.error = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def overdue(self, now: Micros) -> None:
        """REQUEST_TIMED_OUT with the real base offset; the data stays (K-ACKS)."""
        for item in self._items:
            if isinstance(item, CommandItem):
                if item.ticket is not None and item.ticket.deadline <= now:
                    self.state.answer(item.ticket, ErrorCode.REQUEST_TIMED_OUT)
            elif not item.done and item.deadline <= now:
                item.base_offset = item.batch.base_offset
                self.state.refuse(item, ErrorCode.REQUEST_TIMED_OUT)

    def fail(self) -> None:
        """Leadership is lost: the fate of these entries is for the next leader's log to show."""
        for item in self._items:
            if isinstance(item, CommandItem):
                if item.ticket is not None:
                    self.state.not_leader(item.ticket)
            else:
                self.state.lost(item, item.batch.base_offset)
        self._items.clear()

    def open_tickets(self) -> Iterable[Ticket]:
        """Every ticket in here that waits for its answer."""
        for item in self._items:
            ticket = item if isinstance(item, ProduceTicket) else item.ticket
            if ticket is not None and not ticket.done:
                yield ticket
