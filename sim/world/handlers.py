"""What a simulated node does with each request, by the Kafka API that it stands for.

A handler is called with the request, its connection and its slot in the pipeline, submits tickets
to the broker's own partitions, and answers when they are done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ottla.broker.errors import DEFECT_CODES, ErrorCode
from ottla.broker.turn.tickets import (
    ANY_EPOCH,
    DeleteRecordsTicket,
    FetchTicket,
    ListOffsetsTicket,
    ProduceTicket,
    WatchTicket,
)
from ottla.broker.wire.host import ReplicaInbox, absent_partition
from ottla.broker.wire.pipeline import Slot
from ottla.log.errors import CompactedError, StoreError
from ottla.log.record_batch import SEQUENCE_MASK, BatchDefect, read_batch
from ottla.log.records import records_of
from ottla.log.types import NO_OFFSET, RecordBatch
from ottla.raft.types import EntryKind, Term
from ottla.sim.world.batch import value_of
from ottla.sim.world.requests import (
    ApiVersions,
    ApiVersionsAnswer,
    DeletedRecords,
    DeleteRecords,
    Fetch,
    Fetched,
    InitProducerId,
    Leads,
    ListedOffset,
    ListOffsets,
    Metadata,
    MetadataAnswer,
    Produce,
    Produced,
    ProducedPart,
    ProducerIdAnswer,
)

if TYPE_CHECKING:
    from ottla.sim.world.serving import ServedConnection

TOPIC = "t"
"""The one topic of a run."""
MINUTE = 60_000_000


# ---- produce


class _Producing:
    """One produce request under way."""

    def __init__(self, request: Produce, served: ServedConnection, slot: Slot):
        self.request = request
        self.served = served
        self.slot = slot
        self.parts: dict[int, ProducedPart] = {}

    def begin(self) -> None:
        """Refuse what no partition needs to see, submit the rest."""
        request, served = self.request, self.served
        deadline = served.host.now() + request.timeout
        tickets: list[tuple[ReplicaInbox, ProduceTicket]] = []
        for partition, data in request.batches:
            replica, batch = served.replica(partition), read_batch(data)
            if replica is None:
                self.parts[partition] = self._no_replica(partition)
            elif isinstance(batch, BatchDefect):
                self._refuse(partition, DEFECT_CODES[batch])
            else:
                ticket = ProduceTicket(batch, request.acks, self._done, deadline, partition)
                ticket.wall_ms = served.host.wall_ms()
                tickets.append((replica, ticket))
        for replica, ticket in tickets:
            served.host.submit(replica, ticket)
        self._finish_if_all()

    def _no_replica(self, partition: int) -> ProducedPart:
        host = self.served.host
        topic = host.topics().get(TOPIC)
        if topic is None or partition >= len(topic.partitions):
            error = absent_partition(host)
            return ProducedPart(partition, error, NO_OFFSET, NO_OFFSET, 0, -1)
        image = host.leader(topic.partitions[partition].group)
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ProducedPart(partition, error, NO_OFFSET, NO_OFFSET, image.leader, image.epoch)

    def _refuse(self, partition: int, error: ErrorCode) -> None:
        self.parts[partition] = ProducedPart(partition, error, NO_OFFSET, NO_OFFSET, 0, -1)

    def _done(self, ticket: ProduceTicket) -> None:
        """One partition has its outcome."""
        partition = cast(int, ticket.owner)
        self.served.observe(partition)
        base, start, leads = ticket.base_offset, ticket.log_start_offset, ticket.leader
        self.parts[partition] = ProducedPart(
            partition, ticket.error, base, start, leads, ticket.leader_epoch
        )
        served, batch = self.served, ticket.batch
        served.life.world.history.add(
            "answer",
            node=served.life.node_id,
            inc=served.life.inc,
            client=served.connection.client,
            op=_first_op(batch) if ticket.acks == 0 else None,
            partition=partition,
            off=ticket.base_offset,
            pid=batch.producer_id,
            epoch=batch.producer_epoch,
            seq=batch.base_sequence,
            seq_last=_last_sequence(batch),
            code=ticket.error.name,
            acks=ticket.acks,
        )
        self._finish_if_all()

    def _finish_if_all(self) -> None:
        request = self.request
        if len(self.parts) < len(request.batches):
            return
        if request.acks == 0:
            failed = any(each.error for each in self.parts.values())
            self.served.answer(self.slot, None, "acks=0 failed" if failed else None)
            return
        parts = tuple(self.parts[partition] for partition, _ in request.batches)
        self.served.answer(self.slot, Produced(request.number, parts))


def _first_op(batch: RecordBatch) -> int:
    """What a client calls the batch: with acks=0 its answer is all that says where it went."""
    return value_of(next(records_of(batch)).value or b"")


def _last_sequence(batch: RecordBatch) -> int:
    """Sequences begin anew at 0; a batch without any has none to begin anew."""
    last = batch.base_sequence + batch.last_offset_delta
    return last if batch.base_sequence < 0 else last & SEQUENCE_MASK


def _produce(request: Produce, served: ServedConnection, slot: Slot) -> None:
    _Producing(request, served, slot).begin()


# ---- fetch


class _Fetching:
    """One fetch under way: at once, or when there is something."""

    def __init__(self, request: Fetch, served: ServedConnection, slot: Slot):
        self.request = request
        self.served = served
        self.slot = slot
        self.replica = served.replica(request.partition)
        self.deadline = served.host.now() + request.max_wait
        self.watch: WatchTicket | None = None
        self.leader_epoch: Term = -1

    def begin(self) -> None:
        """Ask the partition what may be seen."""
        if self.replica is None:
            self._answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, NO_OFFSET, NO_OFFSET, [])
            return
        request = self.request
        ticket = FetchTicket(
            request.offset, request.max_bytes, ANY_EPOCH, self._decided, self.deadline
        )
        self.served.host.submit(self.replica, ticket)

    def _decided(self, ticket: FetchTicket) -> None:
        self.served.observe(self.request.partition)
        high, start = ticket.high_watermark, ticket.log_start_offset
        self.leader_epoch = ticket.leader_epoch
        if ticket.error is not ErrorCode.NONE:
            self._answer(ticket.error, NO_OFFSET, NO_OFFSET, [])
            return
        batches = self._read(ticket) if ticket.first_index else []
        if isinstance(batches, ErrorCode):
            self._answer(batches, NO_OFFSET, NO_OFFSET, [])
        elif batches or self.served.host.now() >= self.deadline:
            self._answer(ErrorCode.NONE, high, start, batches)
        else:
            assert self.replica is not None, "decided by it"
            self.watch = WatchTicket(high, self._moved, self.deadline)
            self.slot.on_lost = self._stop_watching
            self.served.host.submit(self.replica, self.watch)

    def _read(self, ticket: FetchTicket) -> list[RecordBatch] | ErrorCode:
        assert self.replica is not None, "decided by it"
        try:
            entries = self.served.host.read(
                self.replica.group, ticket.first_index, ticket.last_index, ticket.max_bytes
            )
        except CompactedError:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        except StoreError:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return [cast(RecordBatch, e.payload) for e in entries if e.kind is EntryKind.BATCH]

    def _moved(self, watch: WatchTicket) -> None:
        if not watch.cancelled:
            self.begin()

    def _stop_watching(self) -> None:
        if self.watch is not None:
            self.watch.cancelled = True

    def _answer(self, error: ErrorCode, high: int, start: int, batches: list[RecordBatch]) -> None:
        number, partition = self.request.number, self.request.partition
        fetched = Fetched(number, partition, error, high, start, batches, self.leader_epoch)
        self.served.answer(self.slot, fetched)


def _fetch(request: Fetch, served: ServedConnection, slot: Slot) -> None:
    _Fetching(request, served, slot).begin()


# ---- the rest


def _api_versions(request: ApiVersions, served: ServedConnection, slot: Slot) -> None:
    served.answer(slot, ApiVersionsAnswer(request.number))


def _list_offsets(request: ListOffsets, served: ServedConnection, slot: Slot) -> None:
    def done(ticket: ListOffsetsTicket) -> None:
        listed = ListedOffset(request.number, request.partition, ticket.error, ticket.offset)
        served.answer(slot, listed)

    replica = served.replica(request.partition)
    if replica is None:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        served.answer(slot, ListedOffset(request.number, request.partition, error, NO_OFFSET))
        return
    deadline = served.host.now() + MINUTE
    served.host.submit(replica, ListOffsetsTicket(request.timestamp, ANY_EPOCH, done, deadline))


def _delete_records(request: DeleteRecords, served: ServedConnection, slot: Slot) -> None:
    def done(ticket: DeleteRecordsTicket) -> None:
        start = ticket.log_start_offset
        deleted = DeletedRecords(request.number, request.partition, ticket.error, start)
        served.answer(slot, deleted)

    replica = served.replica(request.partition)
    if replica is None:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        served.answer(slot, DeletedRecords(request.number, request.partition, error, NO_OFFSET))
        return
    deadline = served.host.now() + request.timeout
    served.host.submit(replica, DeleteRecordsTicket(request.offset, done, deadline))


def _metadata(request: Metadata, served: ServedConnection, slot: Slot) -> None:
    host = served.host
    topic = host.topics().get(TOPIC)
    groups = () if topic is None else [each.group for each in topic.partitions]
    nodes = tuple([each.node for each in host.brokers(groups)])
    leads: list[Leads] = []
    for each in () if topic is None else topic.partitions:
        image = host.leader(each.group)
        leader = image.leader if image.leader in nodes else 0
        leads.append(Leads(each.partition, leader, image.epoch))
    served.answer(slot, MetadataAnswer(request.number, nodes, tuple(leads)))


def _init_producer_id(request: InitProducerId, served: ServedConnection, slot: Slot) -> None:
    def done(error: ErrorCode, producer_id: int, epoch: int) -> None:
        if error is ErrorCode.NONE:
            producer_id = served.life.world.given_out(producer_id)
        served.answer(slot, ProducerIdAnswer(request.number, error, producer_id, epoch))

    served.host.new_producer_id(done)


Handler: TypeAlias = "Callable[[Any, ServedConnection, Slot], None]"
HANDLERS: dict[type, Handler] = {
    ApiVersions: _api_versions,
    Produce: _produce,
    Fetch: _fetch,
    ListOffsets: _list_offsets,
    DeleteRecords: _delete_records,
    Metadata: _metadata,
    InitProducerId: _init_producer_id,
}
