"""`MutatedPartition`: a partition without one of its safety mechanisms; one override each.

If the broker asserts what a mechanism ensures, the mutant leaves out the assertion as well: an
invariant must notice the mutant, not the broker itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ottla.broker.partition.admission import Admission, Item
from ottla.broker.partition.expiry import Expiry
from ottla.broker.partition.in_sync import InSync
from ottla.broker.partition.partition import Partition
from ottla.broker.partition.purgatory import Purgatory
from ottla.broker.partition.snapshots import Snapshots
from ottla.broker.partition.state import PartitionSettings
from ottla.broker.turn.tickets import ProduceTicket, Ticket
from ottla.idempotency.mutex import ProducerMutex
from ottla.log.offset_index import OffsetIndex
from ottla.log.types import ProducerId
from ottla.raft.types import LogIndex, Micros, Term
from ottla.sim.mutants.mutant import Mutant, Mutants
from ottla.sim.mutants.reads import reads_without, showing_without
from ottla.sim.mutants.table import MutatedTable


class _LastingEpochs(OffsetIndex):
    """Keeps the epochs of truncated entries."""

    def truncate_from(self, index: LogIndex) -> None:
        """As `OffsetIndex.truncate_from`."""
        kept = dict(self._epochs)
        super().truncate_from(index)
        self._epochs.update(kept)

    def _last_term_kept(self) -> Term:
        return 0


class MutatedPartition(Partition):
    """See the module's docstring."""

    def __init__(self, settings: PartitionSettings, in_sync: InSync, mutants: Mutants):
        if Mutant.ONE_IN_SYNC in mutants:
            settings = replace(settings, min_insync_replicas=1)
        if Mutant.BATCHES_OF_ANY_SIZE in mutants:
            settings = replace(settings, max_message_bytes=settings.segment_bytes)
        super().__init__(settings, in_sync)
        self.mutants = mutants
        state = self.state
        self.mutated = MutatedTable(
            settings.profile.rulebook,
            settings.max_producers,
            mutants,
            lambda: state.leadership.leading,
        )
        self.table = self.mutated
        self.admission = Admission(state, self.table)
        self.snapshots = Snapshots(state, self.table)
        hasty = Mutant.FORGETS_EARLY in mutants
        self.expiry = (_HastyExpiry if hasty else Expiry)(state, self.table)
        if Mutant.ANY_TERM_APPENDS in mutants:
            self.admission = _PatientAdmission(state, self.table)
        if Mutant.LAST_DECIDED_FIRST in mutants:
            self.admission.mutex = _LastFirstMutex()
        if Mutant.WAITS_WITHOUT_LIMIT in mutants:
            self.purgatory = _EndlessPurgatory(state)
        if Mutant.ACKS_ALL_AT_APPEND in mutants:
            self.purgatory = _EagerPurgatory(state)
        self.reads = reads_without(state, mutants)
        self.showing = showing_without(state, self.purgatory, self.reads, mutants)
        if Mutant.EPOCHS_KEPT in mutants:
            state.index = _LastingEpochs()
        self._forgets_at: Micros = 0

    def submit(self, ticket: Ticket, now: Micros) -> None:
        """As `Partition.submit`, but may serve before it has applied what earlier terms left."""
        leadership = self.leadership
        if Mutant.SERVES_UNSYNCED in self.mutants and leadership.leading and not leadership.synced:
            self._synced(now)
        super().submit(ticket, now)

    def truncated(self, first: LogIndex) -> None:
        """As `Partition.truncated`, but applied entries may be cut off, and stay applied."""
        if first > self.state.applied or Mutant.STALE_LEADERS_HEARD not in self.mutants:
            super().truncated(first)
            return
        self.state.index.truncate_from(first)

    def _apply_delete_records(self, offset: int) -> None:
        if Mutant.START_MOVED_BY_LEADERS not in self.mutants or self.leadership.leading:
            super()._apply_delete_records(offset)

    def deadline(self) -> Micros | None:
        """As `Partition.deadline`, but every replica may forget producers by its own clock."""
        due = super().deadline()
        if Mutant.EXPIRES_BY_CLOCK not in self.mutants:
            return due
        return self._forgets_at if due is None else min(due, self._forgets_at)

    def tick(self, now: Micros) -> None:
        """As `Partition.tick`."""
        if Mutant.EXPIRES_BY_CLOCK in self.mutants and now >= self._forgets_at:
            expiry = self.settings.producer_expiry
            self.mutated.forget(self.table.idle_since(now - expiry))
            self._forgets_at = now + max(expiry // 4, 1)
        super().tick(now)


class _HastyExpiry(Expiry):
    """Three quarters of the expiry time count as passed."""

    __slots__ = ()

    def idle(self, now: Micros) -> Sequence[ProducerId]:
        """As `Expiry.idle`, but as if it were later."""
        return super().idle(now + 3 * self._expiry // 4)


class _PatientAdmission(Admission):
    """Keeps its queue after the term in which it was admitted."""

    def fail(self) -> None:
        """Leadership is lost and the queue stays, but not its mutexes and speculation."""
        for item in self.queue:
            if isinstance(item, ProduceTicket):
                item.in_flight = None
        for ticket in self.mutex.drop_all():
            self.state.not_leader(ticket)


class _LastFirstMutex(ProducerMutex[ProduceTicket]):
    """Serves the last one that came first."""

    __slots__ = ()

    def release(self, producer_id: ProducerId) -> ProduceTicket | None:
        """As `ProducerMutex.release`, from the other end of the queue."""
        line = self._lines.get(producer_id)
        if line:
            line.rotate(1)
        return super().release(producer_id)


class _EndlessPurgatory(Purgatory):
    """Lets tickets wait for a commit until it happens, or until the leadership ends."""

    def overdue(self, now: Micros) -> None:
        """As `Purgatory.overdue`, but nothing is ever overdue."""

    def open_tickets(self) -> Iterable[Ticket]:
        """As `Purgatory.open_tickets`, but nothing has a deadline."""
        return ()


class _EagerPurgatory(Purgatory):
    """Answers acks=all when the leader has appended."""

    def enter(self, items: Iterable[Item]) -> None:
        """As `Purgatory.enter`, as if all had asked for acks=1."""
        entering = list(items)
        for item in entering:
            if isinstance(item, ProduceTicket) and item.acks == -1:
                item.acks = 1
        super().enter(entering)
