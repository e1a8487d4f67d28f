"""Reads of a partition without one of their safety mechanisms; one override each.

What they read is in `ottla.broker.partition.reads`; how far they see, in
`ottla.broker.partition.showing`.
"""

from __future__ import annotations

from ottla.broker.errors import ErrorCode
from ottla.broker.partition.purgatory import Purgatory
from ottla.broker.partition.reads import LATEST_TIMESTAMP, Reads
from ottla.broker.partition.showing import Showing, make_showing
from ottla.broker.partition.state import PartitionState
from ottla.broker.turn.tickets import EpochEndTicket, FetchTicket, ListOffsetsTicket
from ottla.raft.types import Micros
from ottla.sim.mutants.mutant import Mutant, Mutants


class _OpenReads(Reads):
    """Shows readers the whole log."""

    def _fetch(self, ticket: FetchTicket) -> ErrorCode:
        error = super()._fetch(ticket)
        index = self.state.index
        if error is ErrorCode.NONE and ticket.offset < index.next_offset:
            ticket.first_index = index.index_of(ticket.offset)
            ticket.last_index = index.last_index
        return error


class _NarrowReads(Reads):
    """Answers OFFSET_OUT_OF_RANGE for offsets that are not committed yet."""

    def _fetch(self, ticket: FetchTicket) -> ErrorCode:
        if ticket.offset > self.state.high_watermark and not self._contradicts(ticket):
            return ErrorCode.OFFSET_OUT_OF_RANGE
        return super()._fetch(ticket)


class _ListsLogEnd(Reads):
    """Returns the log end as the latest offset."""

    def _list_offsets(self, ticket: ListOffsetsTicket) -> None:
        super()._list_offsets(ticket)
        if ticket.timestamp == LATEST_TIMESTAMP:
            ticket.offset = self.state.index.next_offset


class _TellsLogEnd(Reads):
    """Shows what is committed, but returns the log end as high watermark."""

    def _fetch(self, ticket: FetchTicket) -> ErrorCode:
        error = super()._fetch(ticket)
        ticket.high_watermark = self.state.index.next_offset
        return error


class _EndlessEpochs(Reads):
    """Lets every epoch end at the log end."""

    def _epoch_end(self, ticket: EpochEndTicket) -> None:
        super()._epoch_end(ticket)
        if ticket.end is not None:
            ticket.end = ticket.end._replace(start_offset=self.state.index.next_offset)


class _UnprovedReads(Reads):
    """Refuses readers that ask beyond its log, or have another log, without a barrier."""

    def _lies_elsewhere(self, ticket: FetchTicket) -> bool:
        return False


class _HeldShown(Showing):
    """Holds nothing back."""

    def show(self, enough: bool, now: Micros) -> None:
        """As `Showing.show`; there are always enough."""
        super().show(enough=True, now=now)


class _HeldForGood(Showing):
    """Looks again at what it holds back only when more is committed."""

    def look_again(self, now: Micros) -> None:
        """As `Showing.look_again`; nothing is shown."""


_WITHOUT: dict[Mutant, type[Reads]] = {
    Mutant.READS_UNCOMMITTED: _OpenReads,
    Mutant.READS_NARROW: _NarrowReads,
    Mutant.LISTS_LOG_END: _ListsLogEnd,
    Mutant.TELLS_LOG_END: _TellsLogEnd,
    Mutant.EPOCHS_ENDLESS: _EndlessEpochs,
    Mutant.RANGES_WITHOUT_BARRIER: _UnprovedReads,
}
_SHOWING_WITHOUT: dict[Mutant, type[Showing]] = {
    Mutant.HELD_SHOWN: _HeldShown,
    Mutant.HELD_FOR_GOOD: _HeldForGood,
}


def reads_without(state: PartitionState, mutants: Mutants) -> Reads:
    """The reads of a partition with these mutants."""
    for mutant, reads in _WITHOUT.items():
        if mutant in mutants:
            return reads(state)
    return Reads(state)


def showing_without(
    state: PartitionState, purgatory: Purgatory, reads: Reads, mutants: Mutants
) -> Showing:
    """What a partition with these mutants shows to readers."""
    for mutant, showing in _SHOWING_WITHOUT.items():
        if mutant in mutants:
            return showing(state, purgatory, reads)
    return make_showing(state, purgatory, reads)
