"""The node's side of client connections, in virtual time: frames in, answers in order.

This does with values what `broker/wire/server.py` and `broker/wire/connection.py` do with bytes.
The same `Pipeline` decides what may be begun, in which order answers leave, and when a connection
closes. The handlers are those that serve real clients (`broker/wire/api/`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ottla.broker.node.node import Node
from ottla.broker.wire.answers import MetadataAnswer
from ottla.broker.wire.api import (
    api_versions,
    create_topics,
    delete_records,
    delete_topics,
    fetch,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from ottla.broker.wire.api.call import Call
from ottla.broker.wire.host import Host
from ottla.broker.wire.pipeline import Pipeline, limits_of
from ottla.broker.wire.requests import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
)
from ottla.sim.mutants.checks import produce_without
from ottla.sim.mutants.mutant import Mutants
from ottla.sim.world.client_host import ClientHost, Watches
from ottla.sim.world.frames import Frame
from ottla.sim.world.life import Life
from ottla.sim.world.submitted import Asker
from ottla.sim.world.tcp import Connection
from ottla.sim.world.value_call import ValueCall

if TYPE_CHECKING:
    from ottla.broker.wire.ports import Port

Handler: TypeAlias = Callable[[Any, Call], None]
HANDLERS: dict[type, Handler] = {
    ApiVersionsRequest: api_versions.handle,
    ProduceRequest: produce.handle,
    FetchRequest: fetch.handle,
    ListOffsetsRequest: list_offsets.handle,
    DeleteRecordsRequest: delete_records.handle,
    MetadataRequest: metadata.handle,
    InitProducerIdRequest: init_producer_id.handle,
    CreateTopicsRequest: create_topics.handle,
    DeleteTopicsRequest: delete_topics.handle,
    OffsetForLeaderEpochRequest: offset_for_leader_epoch.handle,
}
"""The handler of each request of simulated clients."""


class SimListener:
    """`ottla.broker.wire.host.Listener` of one life: has its connections."""

    def __init__(self, life: Life, host: Host, watches: Watches, mutants: Mutants):
        self.life = life
        self.host = host
        self.watches = watches
        self.address = ("node", life.node_id)
        self.paused = False
        self.handlers = HANDLERS
        if mutants:
            self.handlers = {**HANDLERS, ProduceRequest: produce_without(mutants)}
        self._connections: dict[ServedConnection, None] = {}
        self._accepted = 0

    @property
    def connections(self) -> int:
        """Clients connected now."""
        return len(self._connections)

    async def start(self, port: Port) -> None:
        """It listens from the start; in virtual time nothing awaits this."""

    def stop(self, *, politely: bool = False) -> None:
        """Drop every client: at once, or (`politely`) after what has been answered."""
        for each in list(self._connections):
            if politely:
                each.connection.finish("stopped")
            else:
                each.connection.reset("reset")

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
        self.watches.requests.serves_since = self.life.kernel.now
        for each in list(self._connections):
            each.begin()

    def accept(self, connection: Connection) -> ServedConnection:
        """A client has connected."""
        self._accepted += 1
        served = ServedConnection(self, connection, self._accepted)
        self._connections[served] = None
        return served

    def gone(self, served: ServedConnection) -> None:
        """A client has gone."""
        self._connections.pop(served, None)


def listener_of(life: Life) -> SimListener:
    """The listener of its node."""
    listener = life.node.server
    assert isinstance(listener, SimListener), "nodes of runs have no other"
    return listener


class ServedConnection:
    """One connection on the node, counted from 1: the `Link` of its calls."""

    def __init__(self, listener: SimListener, connection: Connection, number: int):
        self.listener = listener
        self.life = listener.life
        self.connection = connection
        asker = Asker(connection.client, number)
        self.host: Host = ClientHost(listener.life, listener.host, asker, listener.watches)
        self._watch = listener.watches.requests.connection(connection.client)
        self.pipeline = Pipeline(limits_of(self.host.config))
        self._unread: deque[Frame] = deque()
        self._closed = False

    # ---- from the network

    def arrived(self, frame: Frame) -> None:
        """A request has come in: it is read when the node has time."""
        self._watch.arrived(frame.value)
        self.life.enter(self._arrived, frame)

    def lost(self) -> None:
        """The connection is lost. A frozen node learns that after the requests that came before, as
        a node that reads a socket does. A node that runs learns it at once; it may be in the middle
        of a turn."""
        if self.life.frozen:
            self.life.enter(self._lost)
        else:
            self._lost()

    # ---- on the node

    def _lost(self) -> None:
        self._closed = True
        self._unread.clear()
        self._watch.lost()
        self.listener.gone(self)
        for slot in self.pipeline.lost():
            if slot.on_lost is not None:
                slot.on_lost()

    def _arrived(self, frame: Frame) -> None:
        if not self._closed:
            self._unread.append(frame)
            self.begin()

    def begin(self) -> None:
        """Begin the requests that may be begun."""
        pipeline = self.pipeline
        while self._unread and pipeline.may_begin and not self.listener.paused:
            frame = self._unread.popleft()
            call = ValueCall(self, frame, cast(Node, self.listener.host))
            pipeline.begin(call)
            self.listener.handlers[frame.value.__class__](frame.value, call)

    def _flush(self) -> None:
        pipeline = self.pipeline
        ready, pipeline.ready = pipeline.ready, []
        for slot in ready:
            call = cast(ValueCall, slot)
            self._watch.left()
            if call.parts:
                answer = Frame(call.frame.number, call.value)
                if call.value.__class__ is MetadataAnswer:
                    self.listener.watches.observer.metadata.add_named(self.life, call.value)
                self.life.point("answer", call.value)
                self.connection.answer(answer)
                self.life.point("answered", call.value)
        if pipeline.closing is not None:
            self.connection.finish(pipeline.closing)
        self.begin()

    # ---- for its calls

    def done(self, call: ValueCall) -> None:
        """See `Link`: the answers that may leave do so, in order."""
        self.pipeline.done(call)
        self._flush()

    def charge(self, call: ValueCall, size: int) -> None:
        """See `Link`."""
        self.pipeline.charge(call, size)

    def hold(self) -> None:
        """See `Link`."""
        self.pipeline.hold()

    def release(self) -> None:
        """See `Link`."""
        self.pipeline.release()
        self.begin()

    def failed(self, call: ValueCall, error: Exception) -> None:
        """See `Link`: a handler has a bug, which ends the run."""
        raise error
