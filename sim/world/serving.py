"""The node's side of client connections: requests in, tickets to partitions, answers in order.

What `broker/wire/connection.py` and `broker/wire/api/` do with bytes is done here with values,
around the same `Pipeline`: what may be begun, what is answered in which order, when a connection
closes. What is decided about a batch is decided behind it, in the broker's own code.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, cast

from ottla.broker.driver.hosted import HostedReplica
from ottla.broker.wire.host import Host, ReplicaInbox
from ottla.broker.wire.pipeline import Pipeline, Slot, limits_of
from ottla.sim.world.handlers import HANDLERS, TOPIC
from ottla.sim.world.requests import Produce, Request, size_of

if TYPE_CHECKING:
    from ottla.broker.wire.ports import Port
    from ottla.sim.world.life import Life
    from ottla.sim.world.tcp import Connection


class SimListener:
    """`ottla.broker.wire.host.Listener` of one life: its connections."""

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

    async def start(self, port: Port) -> None:
        """It listens from the start; nobody in virtual time awaits this."""

    def stop(self, *, politely: bool = False) -> None:
        """Drop every client: at once, or with what has been answered."""
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
        self.pipeline = Pipeline(limits_of(self.host.config))
        self._unread: deque[Request] = deque()
        self._closed = False

    # ---- from the network

    def arrived(self, request: Request) -> None:
        """A request has come in: it is read when the node gets to it."""
        self.life.enter(self._arrived, request)

    def lost(self) -> None:
        """The connection is gone. A frozen node finds that out behind what it was sent before, as
        one that reads a socket does; one that runs may be amid a turn of its own doing."""
        if self.life.frozen:
            self.life.enter(self._lost)
        else:
            self._lost()

    # ---- on the node

    def _lost(self) -> None:
        self._closed = True
        self._unread.clear()
        self.listener.gone(self)
        for slot in self.pipeline.lost():
            if slot.on_lost is not None:
                slot.on_lost()

    def _arrived(self, request: Request) -> None:
        if not self._closed:
            self._unread.append(request)
            self.begin()

    def begin(self) -> None:
        """Begin what may be begun."""
        pipeline = self.pipeline
        while self._unread and pipeline.may_begin and not self.listener.paused:
            request = self._unread.popleft()
            make = _ProduceSlot if isinstance(request, Produce) else Slot
            slot = make(size_of(request))
            pipeline.begin(slot)
            HANDLERS[request.__class__](request, self, slot)

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

    def observe(self, partition: int) -> None:
        """Note what the turn under way has committed: its answers come before the node looks."""
        hosted = self.replica(partition)
        if isinstance(hosted, HostedReplica):
            self.life.world.observer.moved(self.life, hosted)

    def replica(self, partition: int) -> ReplicaInbox | None:
        """The node's replica of a partition."""
        return self.host.replica(TOPIC, partition)


class _ProduceSlot(Slot):
    """The place of a produce request."""

    @property
    def produces(self) -> bool:
        """See `Slot`."""
        return True
