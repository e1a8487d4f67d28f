"""The witness: asks the reference model about every decision of a partition's leader.

A partition of a simulated node is the broker's own and gets the same calls about the log as always
(`Machine`). The witness gets these calls too and keeps the model's log. Each decision leaves a
`decide` row of its node, in the leader's words. If the model disagrees, a second row, of node 0,
says what it would have decided.

The model's opinion never reaches the broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import msgpack

from ottla.broker.partition.admission import NO_ROOM, CommandItem
from ottla.broker.partition.in_sync import InSync
from ottla.broker.partition.partition import Partition
from ottla.broker.partition.state import PartitionSettings
from ottla.broker.turn.tickets import ProduceTicket
from ottla.idempotency.decisions import Accept, Decision, Duplicate, Park
from ottla.idempotency.mutex import ProducerMutex
from ottla.idempotency.table import ProducerTable
from ottla.log.types import BatchIdentity, ProducerId
from ottla.raft.types import Entry, LogIndex, Micros, Snapshot, Term
from ottla.sim.mutants.mutant import Mutants
from ottla.sim.mutants.partition import MutatedPartition
from ottla.sim.world.one_state_model import OneStateModel, Remnant
from ottla.sim.world.reference_model import (
    ACCEPT,
    DUPLICATE,
    FULL,
    MODELLED,
    PARK,
    Ahead,
    LogModel,
    Opinion,
    Stored,
    stored,
)

Told = Callable[[Partition, ProduceTicket, Decision, Opinion | None], None]
"""Called with partition, ticket, decision, and the model's opinion (None: it has none)."""
Applied = Callable[[Partition, Sequence[Entry]], None]
Restored = Callable[[Partition, Remnant], None]
"""Called when a replica begins with a snapshot of which it keeps only a part."""


class _Witnessed(Partition):
    """A partition whose log and decisions are watched."""

    model: LogModel | OneStateModel | None = None
    on_decided: Told
    on_applied: Applied
    on_restored: Restored

    def witness(self, on_decided: Told, on_applied: Applied, on_restored: Restored) -> None:
        """Watch from now on; called before the first entry."""
        settings = self.settings
        name = settings.profile.rulebook.name
        modelled = MODELLED.get(name)
        if modelled is not None and modelled.one_state:
            self.model = OneStateModel(settings.max_producers, wraps=modelled.wraps)
        elif modelled is not None:
            self.model = LogModel(name, settings.max_producers)
        self.on_decided = on_decided
        self.on_applied = on_applied
        self.on_restored = on_restored
        self.admission.table = cast(ProducerTable, _WatchedTable(self))
        self._line = _WatchedMutex(self.admission.mutex)
        self.admission.mutex = cast("ProducerMutex[ProduceTicket]", self._line)

    def appended(self, entries: Sequence[Entry]) -> None:
        """As `Partition.appended`."""
        super().appended(entries)
        if self.model is not None:
            self.model.appended(entries)

    def truncated(self, first: LogIndex) -> None:
        """As `Partition.truncated`."""
        super().truncated(first)
        if self.model is not None:
            self.model.truncated(first)

    def restore(self, snapshot: Snapshot, now: Micros) -> None:
        """As `Partition.restore`."""
        super().restore(snapshot, now)
        if self.model is None:
            return
        body = msgpack.unpackb(snapshot.data)
        if isinstance(self.model, LogModel):
            self.model.restored(body["producers"], body["producers_term"])
        else:
            table = msgpack.unpackb(body["producers"])
            remnant = Remnant(body, snapshot.meta.index, self.settings.node, table)
            self.model.restored(remnant)
            self.on_restored(self, remnant)

    def apply(self, entries: Sequence[Entry], now: Micros) -> None:
        """As `Partition.apply`."""
        if isinstance(self.model, OneStateModel):
            self.model.applied(entries)  # before: applying them may let requests be judged
        super().apply(entries, now)
        self.on_applied(self, entries)

    def decided(self, identity: BatchIdentity, decision: Decision) -> None:
        """The rules were asked about a batch."""
        model = self.model
        said = None
        if model is not None:
            said = model.opinion(identity, self.state.applied, list(self._ahead()))
        self.on_decided(self, self._line.first, decision, said)

    def _ahead(self) -> Iterator[Ahead]:
        """The items on their way into the log that precede the next batch, in order."""
        for item in self.admission.admitted():
            if isinstance(item, CommandItem):
                yield from ((producer_id, Stored(0)) for producer_id in item.expires)
            elif item.batch.producer_id >= 0:
                yield item.batch.producer_id, stored(item.batch, 0)


class WitnessedPartition(_Witnessed):
    """The broker's own partition, watched."""


class WitnessedMutant(_Witnessed, MutatedPartition):
    """A partition without one of its safety mechanisms, watched."""


class _WatchedTable:
    """A producer table as admission uses it; it reports its decisions."""

    def __init__(self, partition: _Witnessed):
        self._partition = partition
        self._table = partition.table
        # These are called all the time; bound once, they need no `__getattr__`.
        self.begin, self.enqueued = self._table.begin, self._table.enqueued
        self.in_flight = self._table.in_flight

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def decide(self, identity: BatchIdentity, term: Term) -> Decision:
        """As `ProducerTable.decide`."""
        decision = self._table.decide(identity, term)
        self._partition.decided(identity, decision)
        return decision


class _WatchedMutex:
    """The mutexes of a partition's producers. A decision is about the ticket that got one last."""

    first: ProduceTicket

    def __init__(self, mutex: ProducerMutex[ProduceTicket]):
        self._mutex = mutex

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mutex, name)

    def acquire(self, producer_id: ProducerId, ticket: ProduceTicket) -> bool:
        """As `ProducerMutex.acquire`."""
        held = self._mutex.acquire(producer_id, ticket)
        if held:
            self.first = ticket
        return held

    def release(self, producer_id: ProducerId) -> ProduceTicket | None:
        """As `ProducerMutex.release`."""
        ticket = self._mutex.release(producer_id)
        if ticket is not None:
            self.first = ticket
        return ticket


def witnessed(
    mutants: Mutants, on_decided: Told, on_applied: Applied, on_restored: Restored
) -> Callable[[PartitionSettings, InSync], Partition]:
    """What makes the partitions of one life."""

    def make(settings: PartitionSettings, in_sync: InSync) -> Partition:
        partition: _Witnessed
        if mutants:
            partition = WitnessedMutant(settings, in_sync, mutants)
        else:
            partition = WitnessedPartition(settings, in_sync)
        partition.witness(on_decided, on_applied, on_restored)
        return partition

    return make


def opinion_of(decision: Decision) -> Opinion:
    """The broker's decision as an `Opinion`."""
    if isinstance(decision, Accept):
        return Opinion(ACCEPT)
    if isinstance(decision, Duplicate):
        return Opinion(DUPLICATE, decision.base_offset)
    if isinstance(decision, Park):
        return Opinion(PARK)
    return Opinion(FULL if decision.reason in NO_ROOM else decision.reason.value)
