"""A node's listener: accepts clients, and does for all its connections what is cheaper together.

That is: one receive buffer and one bound for all others (see `ottla.broker.wire.receiving`), one
`call_soon` for all answers of a burst, one timer for the idle limit. `pause` holds everything, as a
stopped process would: bytes stay in the sockets, answers in the pipelines.
"""

from __future__ import annotations

import asyncio
import logging
from mmap import mmap

from ottla.broker.wire.connection import Connection
from ottla.broker.wire.half_frames import SMALL_BYTES, HalfFrames
from ottla.broker.wire.host import Host
from ottla.broker.wire.modules import give_up_spare, keep_spare
from ottla.broker.wire.ports import Listening, Port, descriptor_of
from ottla.broker.wire.receiving import SPARE_BYTES, ReceiveBuffer
from ottla.broker.wire.routes import Routes
from ottla.log.forking import disown_in_children

SCRATCH_BYTES = 1 << 18
REFUSALS_TOLD = 16
"""Refused clients that the log names one by one; then only each time their number has doubled. What
a peer sends must not fill a disk, nor a pipe that nobody reads."""
LATE_SECONDS = 1.0
"""A sweep that comes so much later than it should sees a process that did not run."""

log = logging.getLogger("ottla")


class Server:
    """The Kafka listener of one node. Make it inside the loop that shall run it."""

    def __init__(self, host: Host):
        self.host = host
        self.slices = host.slices
        self.routes = Routes()
        self.loop = asyncio.get_running_loop()
        self.paused = False
        self.address: tuple[str, int] = ("", 0)
        """Where the listener listens, once started."""
        self._scratch = bytearray(SCRATCH_BYTES)
        self._spare: ReceiveBuffer | None = None
        self._connections: dict[Connection, None] = {}
        self._to_flush: list[Connection] = []
        self._listener: Listening | None = None
        self._stopped = False
        self._idle_timer: asyncio.TimerHandle | None = None
        self._slow_timer: asyncio.TimerHandle | None = None
        self._refusals = 0
        most = max(host.config.queued_max_request_bytes, host.config.max_request_bytes)
        self.half_frames = HalfFrames(most, self.loop.time, self.loop.call_soon, self._pressed)
        self.scratch = memoryview(self._scratch)
        self.scratch_readonly = self.scratch.toreadonly()
        disown_in_children(self)

    async def start(self, port: Port) -> None:
        """Listen. Raises `OSError`."""
        self._stopped = False
        self._listener = await port.listen(self.loop, self._accept)
        self.address = port.address
        keep_spare()

    def descriptors(self) -> list[int]:
        """Of the clients' connections: see `ottla.log.forking`."""
        return [descriptor_of(each.transport) for each in list(self._connections)]

    def _accept(self) -> Connection:
        """Take a client in. Raises when the listener stopped between its arrival and this call."""
        if self._stopped:
            # asyncio would fail a step later, at its transport, and keep the socket in a cycle.
            raise ConnectionAbortedError("the listener has stopped")
        return Connection(self)

    def stop(self, *, politely: bool = False) -> None:
        """Stop listening and drop every client: at once, or with what has been answered."""
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
        """Drop every client at once, and go on listening; returns how many there were."""
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
        """Go on where `pause` stopped."""
        self.paused = False
        self.half_frames.restart()
        for connection in list(self._connections):
            connection.flush()

    @property
    def connections(self) -> int:
        """Clients connected now."""
        return len(self._connections)

    # -- for connections --------------------------------------------------------------------

    def opened(self, connection: Connection) -> None:
        """A client has connected; the loop may have accepted it before a stop and say so now."""
        if self._stopped:
            connection.abort()
            return
        self._connections[connection] = None
        if self._idle_timer is None:
            self._sweep_at(self.loop.time() + self.host.config.connections_max_idle_ms / 1000)

    def closed(self, connection: Connection) -> None:
        """A client is gone."""
        self._connections.pop(connection, None)

    def refused(self, connection: Connection, reason: str) -> None:
        """The connection closes, for it sent what is no request: say why, but not without end."""
        self._refusals += 1
        number = self._refusals
        if number <= REFUSALS_TOLD or number & (number - 1) == 0:
            peer = connection.transport and connection.transport.get_extra_info("peername")
            where = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "a client"
            log.warning("closes the connection of %s (%d so far): %s", where, number, reason)

    def take_buffer(self, size: int) -> ReceiveBuffer:
        """A buffer of at least `size` bytes, to hold what is left of a data event.

        Python fills a bytearray with zeros, 30 ms of a turn for 100 MB. A large buffer is memory of
        the system's, which gives it page by page as bytes come in.
        """
        spare = self._spare
        if spare is not None and len(spare) >= size:
            self._spare = None
            return spare
        return bytearray(size) if size <= SPARE_BYTES else mmap(-1, size)

    def give_buffer(self, buffer: ReceiveBuffer) -> None:
        """A connection needs its buffer no longer: keep the largest sensible one for the next.

        Fresh memory for every frame of 1 MB costs as much as receiving into it.
        """
        if len(buffer) <= SPARE_BYTES and len(buffer) > len(self._spare or b""):
            self._spare = buffer

    def flush_soon(self, connection: Connection) -> None:
        """Flush `connection` when the callbacks that run now are through."""
        if not self._to_flush:
            self.loop.call_soon(self._flush_all)
        self._to_flush.append(connection)

    def _flush_all(self) -> None:
        waiting, self._to_flush = self._to_flush, []
        for connection in waiting:
            connection.flush()

    def _pressed(self, pressed: bool) -> None:
        """Somebody waits for memory, or nobody any more: see `ottla.broker.wire.half_frames`."""
        # What is received to it has to be kept, room or not.
        self.scratch = memoryview(self._scratch)[: SMALL_BYTES if pressed else SCRATCH_BYTES]
        if pressed and self._slow_timer is None and not self._stopped:
            self._judge_at(self.half_frames.due())

    def _judge_at(self, when: float) -> None:
        self._slow_timer = self.loop.call_at(when, self._judge, when)

    def _judge(self, due: float) -> None:
        """Drop half frames that have had their time; look again while anybody waits."""
        self._slow_timer = None
        now = self.loop.time()
        if now - due > LATE_SECONDS or self.paused:
            self.half_frames.restart()  # What clients sent meanwhile is yet to be read.
        holder = self.half_frames.overdue()
        if holder is not None:
            holder.too_slow()  # One a turn: to give back 100 MB takes its time.
        if self.half_frames.waiting:
            self._judge_at(self.half_frames.due())

    def _sweep_at(self, when: float) -> None:
        self._idle_timer = self.loop.call_at(when, self._sweep, when)

    def _sweep(self, due: float) -> None:
        """Drop who has been idle for too long; look again when the next one may have been."""
        self._idle_timer = None
        limit = self.host.config.connections_max_idle_ms / 1000
        now = self.loop.time()
        if now - due > LATE_SECONDS:
            # What clients sent while the process did not run is yet to be read.
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
