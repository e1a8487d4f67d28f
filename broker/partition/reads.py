"""Reads of one partition: fetch, offsets by time, epochs (promise-K3).

Readers see only committed records: those below the high watermark. A new leader knows its high
watermark only when its own first entry is committed. Until then readers wait, at most up to their
own time limit, so that no client ever sees the high watermark go back.

Answers name ranges of log indexes. The driver reads the bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.broker.errors import ErrorCode
from ottla.broker.partition.state import PartitionState
from ottla.broker.turn.tickets import (
    ANY_EPOCH,
    CONSUMER,
    DEBUGGER,
    EpochEndTicket,
    FetchTicket,
    ListOffsetsTicket,
    Ticket,
    WatchTicket,
)
from ottla.log.types import EpochStart, Millis, Offset
from ottla.raft.types import LogIndex, Micros, Term

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3

ReadTicket = FetchTicket | ListOffsetsTicket | EpochEndTicket | WatchTicket


class Reads:
    """The reads of one partition."""

    def __init__(self, state: PartitionState):
        self.state = state
        self._leadership = state.leadership
        self._watching: list[WatchTicket] = []

    def submit(self, ticket: ReadTicket) -> None:
        """Answer a read, or keep it until it can be answered."""
        if isinstance(ticket, ListOffsetsTicket) and ticket.asker == DEBUGGER:
            self._serve(ticket)
        elif not self._leadership.leading:
            self._turn_away(ticket)
        elif not self._leadership.synced:
            self._leadership.wait(ticket, self.submit, reads=True)
        elif isinstance(ticket, WatchTicket):
            self._watch(ticket)
        else:
            self._serve(ticket)

    def _turn_away(self, ticket: ReadTicket) -> None:
        """Refuse: this node does not lead. As in Kafka, a wrong leader epoch is reported first."""
        claimed = ANY_EPOCH if isinstance(ticket, WatchTicket) else ticket.current_leader_epoch
        error = self._epoch_error(claimed)
        if error is ErrorCode.NONE:
            self.state.not_leader(ticket)
        else:
            self.state.answer(ticket, error)

    def _serve(self, ticket: FetchTicket | ListOffsetsTicket | EpochEndTicket) -> None:
        error = self._epoch_error(ticket.current_leader_epoch)
        if error is ErrorCode.NONE:
            if isinstance(ticket, FetchTicket):
                if not ticket.proved and self._lies_elsewhere(ticket):
                    self._doubt(ticket)
                    return
                error = self._fetch(ticket)
            elif isinstance(ticket, ListOffsetsTicket):
                self._list_offsets(ticket)
            else:
                self._epoch_end(ticket)
        self.state.answer(ticket, error)

    def _epoch_error(self, claimed: Term) -> ErrorCode:
        """The error if a client names another leader epoch than this one (KIP-320). -1: it names
        none."""
        if claimed in {ANY_EPOCH, self._leadership.term}:
            return ErrorCode.NONE
        if claimed > self._leadership.term:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.FENCED_LEADER_EPOCH

    def _fetch(self, ticket: FetchTicket) -> ErrorCode:
        state = self.state
        offset, high = ticket.offset, state.high_watermark
        if offset < state.log_start_offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        if self._contradicts(ticket):
            ticket.diverging = self._end_of(ticket.last_fetched_epoch)
            if ticket.diverging is None:
                return ErrorCode.OFFSET_OUT_OF_RANGE
        elif offset > state.index.next_offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        ticket.high_watermark = high
        ticket.log_start_offset = state.log_start_offset
        ticket.leader_epoch = self._leadership.term
        if offset < high and ticket.diverging is None:
            ticket.first_index = state.index.index_of(offset)
            ticket.last_index = state.shown
        return ErrorCode.NONE

    def _lies_elsewhere(self, ticket: FetchTicket) -> bool:
        """Whether the reader has records that this log does not have."""
        return ticket.offset > self.state.index.next_offset or self._contradicts(ticket)

    def _contradicts(self, ticket: FetchTicket) -> bool:
        """Whether this log lacks the reader's last epoch, or that epoch ended here before the
        reader's offset."""
        epoch = ticket.last_fetched_epoch
        if epoch == ANY_EPOCH:
            return False
        end = self._end_of(epoch)
        return end is None or end.epoch < epoch or end.start_offset < ticket.offset

    def _end_of(self, epoch: Term) -> EpochStart | None:
        """The end of an epoch; see `OffsetIndex.end_offset_for_epoch`."""
        state = self.state
        return state.index.end_offset_for_epoch(
            epoch, state.index.next_offset, state.log_start_offset
        )

    def _doubt(self, ticket: FetchTicket) -> None:
        """A newer leader's log may have what this log lacks: prove by a barrier that there is no
        newer leader."""
        ticket.deadline = max(ticket.deadline, ticket.proof_deadline)
        self._leadership.barriers.ask(ticket, self._proved)

    def _proved(self, ticket: FetchTicket) -> None:
        ticket.proved = True
        self.submit(ticket)

    def _list_offsets(self, ticket: ListOffsetsTicket) -> None:
        state = self.state
        ticket.leader_epoch = self._leadership.term
        ticket.log_start_offset = state.log_start_offset
        if ticket.timestamp == LATEST_TIMESTAMP:
            consumer = ticket.asker == CONSUMER
            ticket.offset = state.high_watermark if consumer else state.index.next_offset
        elif ticket.timestamp == EARLIEST_TIMESTAMP:
            ticket.offset = state.log_start_offset
            ticket.leader_epoch = self._epoch_at(ticket.offset)
        else:
            ticket.index = self._candidate(ticket.timestamp, ticket.behind) or 0

    def _epoch_at(self, offset: Offset) -> Term:
        """The leader epoch at `offset`; the current one if the log has no record there or
        before."""
        for start in reversed(self.state.index.epoch_starts()):
            if start.start_offset <= offset:
                return start.epoch
        return self._leadership.term

    def _candidate(self, timestamp: Millis, behind: LogIndex) -> LogIndex | None:
        """The log index of the batch to search for a time; None if no committed batch can have a
        record for it."""
        state, index = self.state, self.state.index
        if state.log_start_offset >= state.high_watermark:
            return None
        first = max(index.index_of(state.log_start_offset), behind + 1)
        if timestamp == MAX_TIMESTAMP:
            return index.with_max_timestamp(first, state.shown)
        return index.first_with_timestamp(timestamp, first, state.shown)

    def _epoch_end(self, ticket: EpochEndTicket) -> None:
        ticket.end = self._end_of(ticket.epoch)

    def _watch(self, ticket: WatchTicket) -> None:
        if self.state.high_watermark > ticket.beyond:
            self.state.answer(ticket, ErrorCode.NONE)
        else:
            self._watching.append(ticket)

    # --- tickets that wait --------------------------------------------------------------------

    def moved(self) -> None:
        """The high watermark may have moved: answer the watchers that it has passed."""
        if not self._watching:
            return
        high = self.state.high_watermark
        still: list[WatchTicket] = []
        for ticket in self._watching:
            if ticket.cancelled:
                ticket.done = True
            elif high > ticket.beyond:
                self.state.answer(ticket, ErrorCode.NONE)
            else:
                still.append(ticket)
        self._watching = still

    def overdue(self, now: Micros) -> None:
        """Answer overdue watchers with REQUEST_TIMED_OUT."""
        watching, self._watching = self._watching, []
        for watch in watching:
            if watch.cancelled:
                watch.done = True
            elif watch.deadline <= now:
                self.state.answer(watch, ErrorCode.REQUEST_TIMED_OUT)
            else:
                self._watching.append(watch)

    def fail(self) -> None:
        """This node no longer leads: refuse all watchers."""
        for ticket in self._watching:
            self.state.not_leader(ticket)
        self._watching.clear()

    def open_tickets(self) -> Iterable[Ticket]:
        """Every ticket of this part that waits for its answer."""
        return self._watching
