"""A node's listener: accepts clients, and has what all its connections share.

They share one receive buffer, one limit for all other buffers (see `ottla.broker.wire.receiving`),
one `call_soon` for all answers of a burst, and one timer for the idle limit. After `pause` nothing
moves, as in a stopped process: bytes stay in the sockets, answers in the pipelines.
"""

from __future__ import annotations

import asyncio
import logging

from ottla.broker.profiles.named import profile_named
from ottla.broker.wire.buffers import SCRATCH_BYTES, Buffers
from ottla.broker.wire.connection import Connection
from ottla.broker.wire.half_frames import SMALL_BYTES, HalfFrames
from ottla.broker.wire.host import Host
from ottla.broker.wire.modules import give_up_spare, keep_spare
from ottla.broker.wire.ports import Listening, Port, descriptor_of
from ottla.broker.wire.routes import Routes
from ottla.log.forking import disown_in_children

REFUSALS_TOLD = 16
"""The log names this many refused clients one by one, then only one each time their number has
doubled: a peer must not be able to fill a disk, or a pipe that nobody reads."""
LATE_SECONDS = 1.0
"""If a timer is later than this, the process did not run in between."""

log = logging.getLogger("ottla")


class Server:
    """The Kafka listener of one node. It must be made inside the loop that will run it."""

    def __init__(self, host: Host):
        self.host = host
        profile = profile_named(host.config.profile)
        self._routes = Routes(short=profile.plain_produce, newest=profile.newest)
        self.loop = asyncio.get_running_loop()
        self.paused = False
        self.address: tuple[str, int] = ("", 0)
        """Host and port where it listens, once started."""
        self._buffers = Buffers()
        self._connections: dict[Connection, None] = {}
        self._to_flush: list[Connection] = []
        self._listener: Listening | None = None
        self._stopped = False
        self._idle_timer: asyncio.TimerHandle | None = None
        self._slow_timer: asyncio.TimerHandle | None = None
        self._refusals = 0
        most = max(host.config.queued_max_request_bytes, host.config.max_request_bytes)
        self.half_frames = HalfFrames(most, self.loop.time, self.loop.call_soon, self._pressed)
        disown_in_children(self)

    async def start(self, port: Port) -> None:
        """Listen. Raises `OSError`."""
        self._stopped = False
        self._listener = await port.listen(self.loop, self.accept)
        self.address = port.address
        keep_spare()

    def descriptors(self) -> list[int]:
        """The descriptors of the clients' connections: see `ottla.log.forking`."""
        return [descriptor_of(each.transport) for each in list(self._connections)]

    def accept(self) -> Connection:
        """Accept a client. Raises if the listener has stopped since the client arrived."""
        if self._stopped:
            # Without this, asyncio would fail later at the transport and keep the socket in a
            # cycle.
            raise ConnectionAbortedError("the listener has stopped")
        return Connection(self, self.host, self._routes, self._buffers, self.half_frames)

    def stop(self, *, politely: bool = False) -> None:
        """Stop listening and close all connections: at once or, if `politely`, after sending the
        answers that are ready."""
        self._stopped = True
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            give_up_spare()
        for connection in list(self._connections):
            if politely:
                connection.leave()
            else:
                connection.abort()
        for timer in (self._idle_timer, self._slow_timer):
            if timer is not None:
                timer.cancel()
        self._idle_timer = self._slow_timer = None

    def cut_connections(self) -> int:
        """Close all connections at once and go on listening. Returns how many there were."""
        clients = list(self._connections)
        for connection in clients:
            connection.abort()
        return len(clients)

    def pause(self) -> None:
        """Read nothing and send nothing until `resume`."""
        self.paused = True
        for connection in list(self._connections):
            connection.flush()

    def resume(self) -> None:
        """Continue after `pause`."""
        self.paused = False
        self.half_frames.restart()
        for connection in list(self._connections):
            connection.flush()

    @property
    def connections(self) -> int:
        """How many clients are connected now."""
        return len(self._connections)

    # -- for connections --------------------------------------------------------------------

    def opened(self, connection: Connection) -> None:
        """A client has connected. The loop may report this after a stop; then close it."""
        if self._stopped:
            connection.abort()
            return
        self._connections[connection] = None
        if self._idle_timer is None:
            self._sweep_at(self.loop.time() + self.host.config.connections_max_idle_ms / 1000)

    def closed(self, connection: Connection) -> None:
        """A client has disconnected."""
        self._connections.pop(connection, None)

    def refused(self, connection: Connection, reason: str) -> None:
        """A connection closes because its bytes are not a request: log why (`REFUSALS_TOLD`)."""
        self._refusals += 1
        number = self._refusals
        if number <= REFUSALS_TOLD or number & (number - 1) == 0:
            peer = connection.transport and connection.transport.get_extra_info("peername")
            where = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "a client"
            log.warning("closes the connection of %s (%d so far): %s", where, number, reason)

    def flush_soon(self, connection: Connection) -> None:
        """Flush `connection` after the callbacks that run now."""
        if not self._to_flush:
            self.loop.call_soon(self._flush_all)
        self._to_flush.append(connection)

    def _flush_all(self) -> None:
        waiting, self._to_flush = self._to_flush, []
        for connection in waiting:
            connection.flush()

    def _pressed(self, pressed: bool) -> None:
        """Connections begin to wait for memory, or none waits any more: see
        `ottla.broker.wire.half_frames`."""
        # Bytes received into the shared buffer must be kept even if there is no memory.
        self._buffers.limit_scratch(SMALL_BYTES if pressed else SCRATCH_BYTES)
        if pressed and self._slow_timer is None and not self._stopped:
            self._judge_at(self.half_frames.due())

    def _judge_at(self, when: float) -> None:
        self._slow_timer = self.loop.call_at(when, self._judge, when)

    def _judge(self, due: float) -> None:
        """Drop a half frame that was not completed in time; check again while others wait."""
        self._slow_timer = None
        now = self.loop.time()
        if now - due > LATE_SECONDS or self.paused:
            self.half_frames.restart()  # Bytes that clients sent meanwhile are not read yet.
        holder = self.half_frames.overdue()
        if holder is not None:
            holder.too_slow()  # Only one at a time: releasing 100 MB takes long.
        if self.half_frames.waiting:
            self._judge_at(self.half_frames.due())

    def _sweep_at(self, when: float) -> None:
        self._idle_timer = self.loop.call_at(when, self._sweep, when)

    def _sweep(self, due: float) -> None:
        """Close connections that were idle for too long; check again when the next one may be."""
        self._idle_timer = None
        limit = self.host.config.connections_max_idle_ms / 1000
        now = self.loop.time()
        if now - due > LATE_SECONDS:
            # Bytes that clients sent while the process did not run are not read yet.
            self._sweep_at(now + LATE_SECONDS)
            return
        oldest = None
        for connection in list(self._connections):
            since = connection.idle_since()
            if now - since >= limit:
                connection.abort()
            elif oldest is None or since < oldest:
                oldest = since
        if oldest is not None:
            self._sweep_at(oldest + limit)
