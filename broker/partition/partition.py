"""`Partition`: Kafka's semantics on top of an agreed log, without I/O.

A `Replica` calls it through the `Machine` protocol:

    submit        a ticket goes to admission (produce), reads (fetch, offsets), or is handled here
                  (DeleteRecords)
    appended      the local log grew: extend the offset index
    apply         entries are committed: producer table, high watermark, answers
    resign        leadership is lost: refuse everybody who waits, drop all speculation

The leader epoch is the Raft term; the conversion is made only here. Offsets count records, log
indexes count entries; `OffsetIndex` is the only map between them.

Commands in the log are those of `commands.py`. An invalid command changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import cast

from ottla.broker.errors import ErrorCode
from ottla.broker.partition.admission import Admission
from ottla.broker.partition.commands import encode_command, sound_command
from ottla.broker.partition.expiry import Expiry
from ottla.broker.partition.holding import make_admission
from ottla.broker.partition.in_sync import InSync
from ottla.broker.partition.purgatory import make_purgatory
from ottla.broker.partition.reads import Reads, ReadTicket
from ottla.broker.partition.showing import make_showing
from ottla.broker.partition.snapshots import Snapshots
from ottla.broker.partition.state import PartitionSettings, PartitionState
from ottla.broker.turn.machine import Compaction, LogWatcher, Proposals
from ottla.broker.turn.tickets import (
    DeleteRecordsTicket,
    LookOnTicket,
    ProduceTicket,
    Ticket,
)
from ottla.idempotency.sessions import make_table
from ottla.log.offset_index import OffsetIndex
from ottla.log.record_batch import identity
from ottla.log.types import RecordBatch
from ottla.raft.types import Entry, EntryKind, LogIndex, Micros, Snapshot, Term

AT_ONCE: Micros = 0
EVER: LogIndex = 1 << 63


class Partition(LogWatcher):
    """The machine of one partition replica; see the module's docstring."""

    def __init__(self, settings: PartitionSettings, in_sync: InSync):
        self.settings = settings
        self.state = PartitionState(settings, OffsetIndex(), in_sync)
        self.table = make_table(settings.profile.rulebook, settings.max_producers)
        self.admission: Admission = make_admission(self.state, self.table)
        self.purgatory = make_purgatory(self.state, self.admission)
        self.reads = Reads(self.state)
        self.showing = make_showing(self.state, self.purgatory, self.reads)
        self.expiry = Expiry(self.state, self.table)
        self.leadership = self.state.leadership
        self.outbox = self.state.outbox
        self.snapshots = Snapshots(self.state, self.table)
        self._overdue_from: Micros | None = None
        """A lower bound: no open ticket has an earlier deadline. None: there is no open ticket."""
        self._next_expiry_check: Micros | None = None
        self._careful_to: LogIndex = 0
        """For entries up to this index `_may_apply` is asked before they are applied."""
        self._proposed_at: Micros = 0

    @property
    def applied(self) -> LogIndex:
        """Index of the last entry applied."""
        return self.state.applied

    @property
    def last_index(self) -> LogIndex:
        """Index of the last entry appended."""
        return self.state.index.last_index

    # --- commands -----------------------------------------------------------------------------

    def submit(self, ticket: Ticket, now: Micros) -> None:
        """Take one ticket."""
        due = self._overdue_from
        if due is None or ticket.deadline < due:
            self._overdue_from = ticket.deadline
        if self.showing.held:
            # A follower that lacks nothing acknowledges nothing: only beats say that it is back.
            self.showing.look_again(now)
        if isinstance(ticket, ProduceTicket):
            self.settings.counters.batches_received += 1
            self.admission.admit(ticket, now)
        elif isinstance(ticket, DeleteRecordsTicket):
            self._delete_records(ticket)
        elif isinstance(ticket, LookOnTicket):
            judged = self.admission.look_on(now)
            self._overdue_from = min((at for at in (due, judged) if at is not None), default=None)
        else:
            self.reads.submit(cast(ReadTicket, ticket))

    def _delete_records(self, ticket: DeleteRecordsTicket) -> None:
        state = self.state
        if not self.leadership.synced:
            state.not_leader(ticket)
            return
        offset = state.high_watermark if ticket.offset == -1 else ticket.offset
        if offset > state.high_watermark and not ticket.proved:
            self.leadership.barriers.ask(ticket, self._delete_proved)
        elif not 0 <= offset <= state.high_watermark:
            state.answer(ticket, ErrorCode.OFFSET_OUT_OF_RANGE)
        elif offset <= state.log_start_offset:
            ticket.log_start_offset = state.log_start_offset
            state.answer(ticket, ErrorCode.NONE)
        else:
            self.admission.command(encode_command("delete_records", offset), ticket)

    def _delete_proved(self, ticket: DeleteRecordsTicket) -> None:
        """The barrier proved that there is no newer leader with a higher high watermark."""
        ticket.proved = True
        self._delete_records(ticket)

    # --- time ---------------------------------------------------------------------------------

    def deadline(self) -> Micros | None:
        """When `tick` may have something to do."""
        due, check = self._overdue_from, self._next_expiry_check
        if due is None or check is None:
            return due if check is None else check
        return min(due, check)

    def tick(self, now: Micros) -> None:
        """Answer overdue clients, propose to forget idle producers, continue a snapshot."""
        if self._overdue_from is not None and self._overdue_from <= now:
            self.showing.tick(now)
            self.admission.overdue(now)
            self.purgatory.overdue(now)
            self.reads.overdue(now)
            self.leadership.overdue(now)
            self._overdue_from = self._earliest_deadline(now)
        if self._next_expiry_check is not None and self._next_expiry_check <= now:
            self._expire_idle(now)
        if self.snapshots.busy:
            self._go_on_with_snapshot(now)

    def _earliest_deadline(self, now: Micros) -> Micros | None:
        open_tickets = chain(
            self.admission.open_tickets(),
            self.purgatory.open_tickets(),
            self.reads.open_tickets(),
            self.leadership.open_tickets(),
        )
        falls_out = self.showing.falls_out(now)
        times = [each.deadline for each in open_tickets if not each.done]
        return min(times if falls_out is None else (*times, falls_out), default=None)

    def _expire_idle(self, now: Micros) -> None:
        """Queue the decision to forget idle producers. It goes through the log, so that every
        replica forgets the same ones (sim-I25)."""
        self._next_expiry_check = now + self.expiry.period
        if self.leadership.synced:
            self.admission.expire(self.expiry.idle(now))

    # --- the way into the log -----------------------------------------------------------------

    def has_pending(self) -> bool:
        """Whether an item waits in the leader queue."""
        return len(self.admission.queue) > 0

    def take_proposals(self, inflight_bytes: int, now: Micros) -> Proposals | None:
        """What the leader queue may propose now."""
        self._proposed_at = now
        return self.admission.take(inflight_bytes)

    def proposed(self, first: LogIndex | None) -> None:
        """The outcome of a proposal: the index of its first item, None if it was refused."""
        items = self.admission.proposed(first)
        if first is not None:
            self.state.in_sync.appended(first + len(items) - 1, self._proposed_at)
            self.purgatory.enter(items)

    def appended(self, entries: Sequence[Entry]) -> None:
        """These entries were appended to the local log."""
        self.state.index.extend(entries)

    def truncated(self, first: LogIndex) -> None:
        """Entries from `first` on were removed: another leader's entries replace them."""
        assert first > self.state.applied, f"truncation at {first}, applied {self.state.applied}"
        self.state.index.truncate_from(first)

    # --- committed entries --------------------------------------------------------------------

    def apply(self, entries: Sequence[Entry], now: Micros) -> None:
        """Apply committed entries. Called on every replica, in order, once for each entry."""
        state, first, last = self.state, entries[0].index, entries[-1].index
        if first <= self._careful_to and not self._may_apply(entries):
            return
        assert first == state.applied + 1, f"apply of {first} after {state.applied}"
        waiting = len(self.purgatory) > 0
        # If nothing waits, predecessors left these entries and may have shown them (0014).
        asked = (waiting or self.showing.held) and self.leadership.leading
        enough = not (asked and self.showing.lacks(last, now))
        batch: RecordBatch | None = None
        for entry in self._that_count(entries):
            if entry.kind is EntryKind.BATCH:
                batch = entry.payload
                if batch.producer_id >= 0:
                    self._apply_producer(batch, entry, now, enough)
            elif entry.kind is EntryKind.COMMAND:
                self._apply_command(cast(bytes, entry.payload), entry.index)
        state.applied = last
        if self.showing.held or not enough:
            self.showing.show(enough, now)
            self._look_again_in_time(now)
        else:
            state.shown = last
            end = state.high_watermark if batch is None else batch.last_offset + 1
            state.high_watermark = end
        if waiting:
            self.purgatory.settle(last, enough)
        state.check_offsets()
        if self.snapshots.wanted:
            self._begin_snapshot(entries[-1].term)
        if not self.leadership.synced and self.leadership.opens(last):
            self._synced(now)
        self.reads.moved()

    def _may_apply(self, entries: Sequence[Entry]) -> bool:
        """Prepare for entries that meet a snapshot which is being written or read, or was read.
        False: a snapshot is being read, so the entries wait."""
        snapshots = self.snapshots
        if snapshots.reading:
            snapshots.late += entries
            return False
        snapshots.keep(entries)
        if entries[0].index <= self.table.applied_index:
            snapshots.doubt(entries)
        return True

    def _that_count(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """The entries that a follower has to apply; the others would leave no trace.

        The table keeps only the last batches of a producer (`ProducerTable`), so a follower may
        skip earlier ones, unless a batch's epoch decides what it does. If there is a command among
        the entries, all are applied, because it may depend on the table. The last batch is never
        skipped: it gives the high watermark.
        """
        if self.leadership.leading:
            return entries
        rulebook = self.settings.profile.rulebook
        window = rulebook.window
        if len(entries) <= window or rulebook.epochs_apart or rulebook.newer_epoch_wipes:
            return entries
        counted: list[Entry] = []
        seen: dict[int, int] = {}
        batches = EntryKind.BATCH
        for entry in reversed(entries):
            if entry.kind is batches:
                batch: RecordBatch = entry.payload
                times = seen.get(batch.producer_id, 0)
                if times < window:
                    seen[batch.producer_id] = times + 1
                    counted.append(entry)
            elif entry.kind is EntryKind.COMMAND:
                return entries
        return counted[::-1]

    def _look_again_in_time(self, now: Micros) -> None:
        """The high watermark may be held by a replica that falls out of sync: then look again."""
        due, falls_out = self._overdue_from, self.showing.falls_out(now)
        if falls_out is not None and (due is None or falls_out < due):
            self._overdue_from = falls_out

    def _apply_producer(self, batch: RecordBatch, entry: Entry, now: Micros, enough: bool) -> None:
        who = batch.identity or identity(batch)
        assert who is not None, f"producer {batch.producer_id} without identity"
        offset = batch.base_offset
        for ticket in self.table.apply(
            who, offset, batch.max_timestamp, index=entry.index, term=entry.term, now=now
        ):
            ticket.log_append_time = batch.max_timestamp  # as for any duplicate (K-FIELDS)
            self.purgatory.answer(ticket, offset, enough)

    def _apply_command(self, payload: bytes, index: LogIndex) -> None:
        end = self.state.index.end_offset(index)
        name, argument = sound_command(payload, end, self.settings, index)
        if name == "expire":
            self.table.apply_expire(argument, index=index)
        elif name == "delete_records":
            self._apply_delete_records(argument)

    def _apply_delete_records(self, offset: int) -> None:
        state = self.state
        state.log_start_offset = max(state.log_start_offset, offset)
        self.snapshots.wanted = True

    def _synced(self, now: Micros) -> None:
        """The sync() of promise-R3 is done: all entries of earlier terms are applied. Serve now."""
        self._next_expiry_check = now + self.expiry.period
        self.leadership.open()

    # --- role ---------------------------------------------------------------------------------

    def resign(self) -> None:
        """Leadership is lost: refuse everybody who waits, and drop all speculation."""
        state = self.state
        self._next_expiry_check = None
        for in_flight in self.table.new_term(self.leadership.term):
            for parked in in_flight.waiters:
                if in_flight.index:
                    state.place_copy(parked, in_flight.owner.batch)
                    state.lost(parked, in_flight.owner.batch.base_offset)
                else:
                    state.not_leader(parked)
        self.admission.fail()
        self.leadership.fail()
        self.purgatory.fail()
        self.showing.show(enough=True, now=AT_ONCE)
        self.reads.fail()

    # --- snapshots ----------------------------------------------------------------------------

    def _begin_snapshot(self, term: Term = 0) -> None:
        """Begin a snapshot, so that entries below the log start offset can be dropped."""
        self._compacted(self.snapshots.begin(term))

    def _go_on_with_snapshot(self, now: Micros) -> None:
        snapshots = self.snapshots
        self._compacted(snapshots.step())
        if snapshots.late and not snapshots.reading:
            late, snapshots.late = snapshots.late, []
            self.apply(late, now)
        if snapshots.wanted and not snapshots.busy:
            self._begin_snapshot()

    def _compacted(self, compaction: Compaction | None) -> None:
        if compaction is not None:
            self.outbox.compaction = compaction
        if self.snapshots.busy:
            self._overdue_from, self._careful_to = AT_ONCE, EVER
        else:
            self._careful_to = self.table.applied_index

    def restore(self, snapshot: Snapshot, now: Micros) -> None:
        """Replace the whole state by this snapshot. The log continues after its index."""
        self.snapshots.restore(snapshot, now)
        self._compacted(None)
        self.outbox.compaction = None
