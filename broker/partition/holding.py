"""`HoldingAdmission`: admission by a table in which a newer epoch wipes (`WipingTable`).

**Copies hold the mutex** (`Profile.copies_keep_mutex`). A copy of a batch in flight waits for that
batch's outcome, whatever its own acks and time limit are, and shares it, an error too. It keeps its
producer's mutex meanwhile, so all that comes behind it waits, too (RP-PARKING). So there is at most
one such copy per producer, and no newer epoch can wipe its original while it waits. A copy whose
original is in the log keeps the mutex also if a transfer of leadership fails all others (`fail`).
Copies are not among the `open_tickets`, because no deadline of theirs ever comes.

**A refusal is final** (`Rulebook.newer_epoch_wipes`). After the barrier the batch is not judged
again, even if what it missed has arrived meanwhile (RP-GAP).

**Failures cost the leadership** (`Profile.resigns_on_failure`; `PartitionState.fail_producer`). A
copy that shares an error adds nothing to that: its original has cost what there is to cost.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from ottla.broker.errors import ErrorCode
from ottla.broker.partition.admission import Admission
from ottla.broker.partition.state import PartitionState
from ottla.broker.turn.tickets import ProduceTicket
from ottla.idempotency.decisions import Park, Reject
from ottla.idempotency.rules import RejectReason
from ottla.idempotency.table import ProducerTable
from ottla.idempotency.wiping import WipingTable
from ottla.log.record_batch import identity
from ottla.log.types import ProducerId


class Copy(NamedTuple):
    """A copy of a batch in flight, and its original."""

    ticket: ProduceTicket
    original: ProduceTicket


class HoldingAdmission(Admission):
    """See the module's docstring."""

    table: WipingTable

    def __init__(self, state: PartitionState, table: WipingTable):
        super().__init__(state, table)
        self._copies: dict[ProducerId, Copy] = {}
        """The copies that keep a mutex, by producer id."""

    def _reject(self, ticket: ProduceTicket, decision: Reject) -> None:
        who = identity(ticket.batch)
        assert who is not None, "it was evaluated"
        self.table.meet(who)
        if decision.reason is RejectReason.BACKWARDS:
            self.state.fail_producer()
        if decision.barrier:
            self._leadership.barriers.ask(ticket, partial(self._refuse, decision=decision))
        else:
            self._refuse(ticket, decision)

    def _park(self, ticket: ProduceTicket, decision: Park) -> bool:
        copy = Copy(ticket, decision.in_flight.owner)
        if copy.original.done:
            self._share(copy)
            return False
        self.counters.duplicates_parked += 1
        self._copies[ticket.batch.producer_id] = copy
        return True

    def _make_room(self) -> bool:
        """As `Admission._make_room`, but the leader may know more producers than there is room for
        (`WipingTable`)."""
        victims = self.table.longest_idle(self.table.surplus())
        self.expire(victims)
        return bool(victims)

    def wake(self) -> None:
        """As `Admission.wake`, and hand their mutexes on."""
        for producer_id, copy in list(self._copies.items()):
            if copy.original.done:
                del self._copies[producer_id]
                self._share(copy)
                self._release(producer_id)

    def fail(self) -> None:
        """As `Admission.fail`. Copies share it; those of batches in the log wait on.

        These have the mutex again: if they had not, `wake` would hand on the mutex of another
        request, and the next copy of the producer would take their place here.
        """
        super().fail()
        copies, self._copies = self._copies, {}
        for producer_id, copy in copies.items():
            if copy.original.done:
                self._share(copy)
            else:
                self.mutex.acquire(producer_id, copy.ticket)
                self._copies[producer_id] = copy

    def _share(self, copy: Copy) -> None:
        """Answer a copy as its original was answered."""
        ticket, original = copy
        ticket.log_append_time = original.log_append_time
        if original.error is ErrorCode.NONE:
            self.state.accept(ticket, original.base_offset)
            return
        ticket.base_offset = original.base_offset
        ticket.leader, ticket.leader_epoch = original.leader, original.leader_epoch
        self.state.refuse(ticket, original.error)


def make_admission(state: PartitionState, table: ProducerTable) -> Admission:
    """The admission that the profile needs. Copies keep the mutex where a newer epoch wipes, and
    nowhere else."""
    keep = state.settings.profile.copies_keep_mutex
    if isinstance(table, WipingTable):
        assert keep, "a wiping table hands no copies back"
        return HoldingAdmission(state, table)
    assert not keep, "without a wiping table copies wait in the table"
    return Admission(state, table)
