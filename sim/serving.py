"""The node's side of client connections: requests in, tickets to partitions, answers in order.

What `broker/connection.py` and `broker/api/` do with bytes is done here with values, around the
same `Pipeline`: what may be begun, what is answered in which order, when a connection closes. What
is decided about a batch is decided behind it, in the broker's own code.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from ottla.broker.commands import (
    ANY_EPOCH,
    DeleteRecordsTicket,
    FetchTicket,
    ListOffsetsTicket,
    ProduceTicket,
    WatchTicket,
)
from ottla.broker.errors import DEFECT_CODES, ErrorCode
from ottla.broker.host import Host, HostedReplica
from ottla.broker.pipeline import Limits, Pipeline, Slot
from ottla.log.errors import CompactedError
from ottla.log.record_batch import BatchDefect, read_batch
from ottla.log.types import NO_OFFSET, RecordBatch
from ottla.raft.types import EntryKind
from ottla.sim.requests import (
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
    Request,
)

if TYPE_CHECKING:
    from ottla.sim.life import Life
    from ottla.sim.tcp import Connection

TOPIC = "t"
"""The one topic of a run."""
MINUTE = 60_000_000


class SimListener:
    """`ottla.broker.host.Listener` of one life: its connections."""

    def __init__(self, life: Life, host: Host):
        self.life = life
        self.host = host
        self.address = ("node", life.node_id)
        self.paused = False
        self._connections: dict[ServedConnection, None] = {}

    @property
    def connections(self) -> int:
        """Clients connected now."""
        return len(self._connections)

    async def start(self, address: str, port: int) -> None:
        """It listens from the start; nobody in virtual time awaits this."""

    def stop(self) -> None:
        """Drop every client at once."""
        self.cut_connections()

    def cut_connections(self) -> int:
        """Drop every client at once; returns how many there were."""
        connections = list(self._connections)
        for each in connections:
            each.connection.reset("reset")
        return len(connections)

    def pause(self) -> None:
        """Begin no request until `resume`."""
        self.paused = True

    def resume(self) -> None:
        """Go on."""
        self.paused = False
        for each in list(self._connections):
            each.begin()

    def accept(self, connection: Connection) -> ServedConnection:
        """A client has connected."""
        served = ServedConnection(self, connection)
        self._connections[served] = None
        return served

    def gone(self, served: ServedConnection) -> None:
        """A client is gone."""
        self._connections.pop(served, None)


class ServedConnection:
    """One connection on the node."""

    def __init__(self, listener: SimListener, connection: Connection):
        self.listener = listener
        self.life = listener.life
        self.host = listener.host
        self.connection = connection
        config = self.host.config
        limits = Limits(config.max_inflight_requests, config.max_inflight_bytes)
        self.pipeline = Pipeline(limits)
        self._unread: deque[Request] = deque()
        self._closed = False

    # ---- from the network

    def arrived(self, request: Request) -> None:
        """A request has come in: it is read when the node gets to it."""
        self.life.enter(self._arrived, request)

    def lost(self) -> None:
        """The connection is gone."""
        self._closed = True
        self._unread.clear()
        self.listener.gone(self)
        for slot in self.pipeline.lost():
            if slot.on_lost is not None:
                slot.on_lost()

    # ---- on the node

    def _arrived(self, request: Request) -> None:
        if not self._closed:
            self._unread.append(request)
            self.begin()

    def begin(self) -> None:
        """Begin what may be begun."""
        pipeline = self.pipeline
        while self._unread and pipeline.may_begin and not self.listener.paused:
            request = self._unread.popleft()
            slot = Slot(_size(request))
            pipeline.begin(slot)
            _HANDLERS[request.__class__](request, self, slot)

    def answer(self, slot: Slot, answer: Any, closing: str | None = None) -> None:
        """Settle a request; what may leave leaves, in order. `answer` None: there is none."""
        parts = () if answer is None else (answer,)
        if not slot.finish(cast(Any, parts), closing):
            return
        self.pipeline.done(slot)
        self._flush()

    def _flush(self) -> None:
        pipeline = self.pipeline
        ready, pipeline.ready = pipeline.ready, []
        for slot in ready:
            for answer in slot.parts or ():
                self.life.point("answer", answer)
                self.connection.answer(answer)
                self.life.point("answered", answer)
        if pipeline.closing is not None:
            self.connection.finish(pipeline.closing)
        self.begin()

    def replica(self, partition: int) -> HostedReplica | None:
        """The node's replica of a partition."""
        return self.host.replica(TOPIC, partition)


def _size(request: Request) -> int:
    """Bytes a request is charged for."""
    if isinstance(request, Produce):
        return 100 + sum(len(data) for _, data in request.batches)
    return 100


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
        tickets: list[tuple[HostedReplica, ProduceTicket]] = []
        for partition, data in request.batches:
            replica, batch = served.replica(partition), read_batch(data)
            if replica is None:
                self.parts[partition] = self._no_replica(partition)
            elif isinstance(batch, BatchDefect):
                self._refuse(partition, DEFECT_CODES[batch])
            else:
                ticket = ProduceTicket(batch, request.acks, self._done, deadline, partition)
                tickets.append((replica, ticket))
        for replica, ticket in tickets:
            served.host.submit(replica, ticket)
        self._finish_if_all()

    def _no_replica(self, partition: int) -> ProducedPart:
        host = self.served.host
        topic = host.topics().get(TOPIC)
        if topic is None or partition >= len(topic.partitions):
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return ProducedPart(partition, error, NO_OFFSET, NO_OFFSET, 0, -1)
        image = host.leader(topic.partitions[partition].group)
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ProducedPart(partition, error, NO_OFFSET, NO_OFFSET, image.leader, image.epoch)

    def _refuse(self, partition: int, error: ErrorCode) -> None:
        self.parts[partition] = ProducedPart(partition, error, NO_OFFSET, NO_OFFSET, 0, -1)

    def _done(self, ticket: ProduceTicket) -> None:
        """One partition has its outcome."""
        partition = cast(int, ticket.owner)
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
            partition=partition,
            off=ticket.base_offset,
            pid=batch.producer_id,
            epoch=batch.producer_epoch,
            seq=batch.base_sequence,
            seq_last=batch.base_sequence + batch.last_offset_delta,
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
        high, start = ticket.high_watermark, ticket.log_start_offset
        if ticket.error is not ErrorCode.NONE:
            self._answer(ticket.error, NO_OFFSET, NO_OFFSET, [])
            return
        batches = self._read(ticket) if ticket.first_index else []
        if batches is None:
            self._answer(ErrorCode.OFFSET_OUT_OF_RANGE, NO_OFFSET, NO_OFFSET, [])
        elif batches or self.served.host.now() >= self.deadline:
            self._answer(ErrorCode.NONE, high, start, batches)
        else:
            assert self.replica is not None, "decided by it"
            self.watch = WatchTicket(high, self._moved, self.deadline)
            self.slot.on_lost = self._stop_watching
            self.served.host.submit(self.replica, self.watch)

    def _read(self, ticket: FetchTicket) -> list[RecordBatch] | None:
        assert self.replica is not None, "decided by it"
        try:
            entries = self.served.host.read(
                self.replica.group, ticket.first_index, ticket.last_index, ticket.max_bytes
            )
        except CompactedError:
            return None
        return [cast(RecordBatch, e.payload) for e in entries if e.kind is EntryKind.BATCH]

    def _moved(self, watch: WatchTicket) -> None:
        if not watch.cancelled:
            self.begin()

    def _stop_watching(self) -> None:
        if self.watch is not None:
            self.watch.cancelled = True

    def _answer(self, error: ErrorCode, high: int, start: int, batches: list[RecordBatch]) -> None:
        request = self.request
        fetched = Fetched(request.number, request.partition, error, high, start, batches)
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
    images = () if topic is None else topic.partitions
    leads = tuple(
        Leads(each.partition, image.leader, image.epoch)
        for each, image in ((each, host.leader(each.group)) for each in images)
    )
    nodes = tuple(each.node for each in host.brokers())
    served.answer(slot, MetadataAnswer(request.number, nodes, leads))


def _init_producer_id(request: InitProducerId, served: ServedConnection, slot: Slot) -> None:
    def done(error: ErrorCode, producer_id: int, epoch: int) -> None:
        served.answer(slot, ProducerIdAnswer(request.number, error, producer_id, epoch))

    served.host.new_producer_id(done)


_HANDLERS: dict[type, Callable[[Any, ServedConnection, Slot], None]] = {
    ApiVersions: _api_versions,
    Produce: _produce,
    Fetch: _fetch,
    ListOffsets: _list_offsets,
    DeleteRecords: _delete_records,
    Metadata: _metadata,
    InitProducerId: _init_producer_id,
}
