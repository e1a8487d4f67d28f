"""`ClientHost`: a node as the handlers of one client's requests see it, watched.

It is an `ottla.broker.wire.host.Host`, and the node answers everything. Two things differ. A
partition's answer for a batch becomes a row of the history before the client gets it. And the world
hands out producer ids, because it may give one out twice. A ticket in a partition says which client
asked: its `on_done` is a `Submitted`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ottla.broker.errors import ErrorCode
from ottla.broker.turn.tickets import FetchTicket, ProduceTicket, Ticket
from ottla.broker.wire.host import Host, ReplicaInbox
from ottla.log.record_batch import SEQUENCE_MASK
from ottla.log.records import records_of
from ottla.log.types import ProducerEpoch, ProducerId, RecordBatch
from ottla.raft.types import GroupId
from ottla.sim.world.batch import value_of
from ottla.sim.world.in_sync_model import Asked
from ottla.sim.world.life import Life
from ottla.sim.world.observer import Observer
from ottla.sim.world.producer_ids import ProducerIds
from ottla.sim.world.request_watch import RequestWatch
from ottla.sim.world.submitted import Asker, Submitted


class Watches(NamedTuple):
    """Who hears what one life of a node is asked and answers."""

    observer: Observer
    requests: RequestWatch
    producer_ids: ProducerIds


class ClientHost:
    """See the module's docstring."""

    def __init__(self, life: Life, host: Host, asker: Asker, watches: Watches):
        self._life = life
        self._host = host
        self._asker = asker
        self._observer, self._requests, self._producer_ids = watches
        self._arrivals = 0
        self.node, self.cluster_id, self.config = host.node, host.cluster_id, host.config
        self.remarks, self.slices, self.searches = host.remarks, host.slices, host.searches
        self.now, self.wall_ms, self.call_at = host.now, host.wall_ms, host.call_at
        self.topics, self.knows_all_topics = host.topics, host.knows_all_topics
        self.brokers, self.registered = host.brokers, host.registered
        self.controller, self.leader, self.replica = host.controller, host.leader, host.replica
        self.read, self.control = host.read, host.control

    def submit(self, replica: ReplicaInbox, ticket: Ticket) -> None:
        """See `Host`."""
        if isinstance(ticket, ProduceTicket | FetchTicket):
            in_sync = self._observer.in_sync
            asked = None if in_sync is None else in_sync.asked(self._life, replica.group)
            if isinstance(ticket, ProduceTicket):
                self._requests.begin(self._asker.client, ticket)
            tell = partial(self._decided, replica.group, ticket.on_done, asked)
            ticket.on_done = Submitted(self._asker, self._arrivals, tell)
            self._arrivals += 1
        watcher = self._observer.tickets
        if watcher is not None:
            watcher.asks(self._life, replica.group, ticket)
        self._host.submit(replica, ticket)

    def new_producer_id(self, done: Callable[[ErrorCode, ProducerId, ProducerEpoch], None]) -> None:
        """See `Host`."""

        def given(error: ErrorCode, producer_id: ProducerId, epoch: ProducerEpoch) -> None:
            if error is ErrorCode.NONE:
                producer_id = self._producer_ids.given_out(producer_id)
            done(error, producer_id, epoch)

        self._host.new_producer_id(given)

    def _decided(
        self,
        group: GroupId,
        done: Callable[[Ticket], None],
        asked: Asked | None,
        ticket: ProduceTicket | FetchTicket,
    ) -> None:
        """Note what the turn under way has committed: answers come before the node looks."""
        if isinstance(ticket, ProduceTicket):
            self._requests.ended(ticket)
        observer = self._observer
        if observer.tickets is not None:
            observer.tickets.answers(self._life, group, ticket)
        if observer.knows(self._life, group):
            observer.moved(self._life, group)
            if isinstance(ticket, ProduceTicket):
                self._note(observer.partitions[group], ticket)
            if observer.in_sync is not None and asked is not None:
                observer.in_sync.answered(self._life, group, ticket, asked)
        done(ticket)

    def _note(self, partition: int, ticket: ProduceTicket) -> None:
        life, batch = self._life, ticket.batch
        self._observer.history.add(
            "answer",
            node=life.node_id,
            inc=life.inc,
            client=self._asker.client,
            op=_first_op(batch) if ticket.acks == 0 else None,
            partition=partition,
            off=ticket.base_offset,
            pid=batch.producer_id,
            epoch=batch.producer_epoch,
            seq=batch.base_sequence,
            seq_last=_last_sequence(batch),
            code=ticket.error.name,
            acks=ticket.acks,
            cand=ticket.leader or None,
            term=ticket.leader_epoch if ticket.leader else None,
        )


def _first_op(batch: RecordBatch) -> int:
    """What a client calls the batch: with acks=0 its answer is all that says where it went."""
    return value_of(next(records_of(batch)).value or b"")


def _last_sequence(batch: RecordBatch) -> int:
    """Sequences begin anew at 0; a batch without any has none to begin anew."""
    last = batch.base_sequence + batch.last_offset_delta
    return last if batch.base_sequence < 0 else last & SEQUENCE_MASK
