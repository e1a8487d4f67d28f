"""One client connection: bytes to requests, answers to bytes.

**In.** `ottla.broker.wire.receiving` has the receive buffers. Frames are cut, decoded and begun in
one call, without a task or a future. If a limit of the pipeline is reached, or the client does not
read its answers, no further request begins: its bytes stay in the connection's own buffer, and the
socket is not read until there is room (promise-S1). Nothing fails. The same happens after
`TURN_REQUESTS` requests that were decoded without the short cut, until the next iteration of the
loop: a flood of small requests may take seconds, and elections wait on the same loop.

**Out.** Answers wait in the pipeline and leave once per data event, or once per burst of callbacks:
the server collects connections that have answers and flushes them together.

**Ends.** The connection closes for a frame of impossible size, a header or body that cannot be
parsed, and an API or version that is not served (as measured on Apache Kafka 4.3.1). It closes once
everything before is answered, and the log says why. Bytes after a good body are ignored.
"""

from __future__ import annotations

import asyncio
import sys
from struct import Struct
from typing import Protocol, cast

from ottla.broker.errors import FrameError
from ottla.broker.wire.buffers import Buffers
from ottla.broker.wire.byte_call import ByteCall, Route
from ottla.broker.wire.codec import read_header, skip_tags
from ottla.broker.wire.framing import PORTION_BYTES, Outgoing, frames, write
from ottla.broker.wire.half_frames import (
    PATIENCE_SECONDS,
    SMALLEST_FRAME,
    HalfFrames,
    LargeCall,
    size_refusal,
)
from ottla.broker.wire.host import Host
from ottla.broker.wire.pipeline import Pipeline, Slot, limits_of
from ottla.broker.wire.ports import descriptor_of, shut_down
from ottla.broker.wire.receiving import Receiving
from ottla.broker.wire.routes import Routes
from ottla.broker.wire.translation.produce_large import LARGE_BYTES
from ottla.broker.wire.translation.produce_shortcut import begin_produce

WRITE_HIGH_WATER = 1 << 20
"""With more unsent bytes than this, no further request of the connection begins."""
LAST_WORDS_SECONDS = 1.0
"""How long a client may take to read its last answers when the node stops by itself."""
TURN_REQUESTS = 32
"""After this many requests without the short cut, the connection waits for the next iteration of
the loop."""
BYTES_A_UNIT = 128
"""Decoding this many bytes of a request costs one unit (`ottla.broker.event_loop.slices`)."""
SEND_AFTER = 256
"""If more answers than this are ready, they are sent before the next request begins."""

_NO_ROUTES: dict[int, Route] = {}
_FRAME_HEAD_BYTES = 14
_read_frame = Struct(">ihhih").unpack_from


class Acceptor(Protocol):
    """The listener that has accepted a connection, as the connection sees it."""

    paused: bool
    """Read nothing and send nothing."""

    def opened(self, connection: Connection, /) -> None:
        """A client has connected."""

    def closed(self, connection: Connection, /) -> None:
        """A client has disconnected."""

    def refused(self, connection: Connection, reason: str, /) -> None:
        """The connection closes because its bytes are not a request."""

    def flush_soon(self, connection: Connection, /) -> None:
        """Call `flush` after the callbacks that run now."""


class Connection(Receiving):
    """See the module's docstring. It must be made inside the loop that will run it."""

    def __init__(
        self, acceptor: Acceptor, host: Host, routes: Routes, buffers: Buffers, halves: HalfFrames
    ):
        super().__init__(buffers, halves, Pipeline(limits_of(host.config)))
        self.host = host
        self._acceptor = acceptor
        self._routes = routes
        self._loop = asyncio.get_running_loop()
        self.last_active = self._loop.time()
        self.transport: asyncio.Transport | None = None
        self._max_frame = host.config.max_request_bytes
        self._reading = True
        self._unwritable = self._writing_paused = False
        self._turn_left = TURN_REQUESTS
        """Requests left in this iteration of the loop; 0: `_next_turn` is planned."""
        self._flush_planned = False
        self._outgoing = Outgoing()
        self._portion_planned = False

    # -- asyncio's side ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: a client has connected."""
        # uvloop has its own class of transports.
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=WRITE_HIGH_WATER)
        self._acceptor.opened(self)
        # uvloop begins to read after this call, even if reading was paused in it.
        self._loop.call_soon(self._steer_reading)

    def connection_lost(self, _exc: Exception | None) -> None:
        """asyncio: the client has disconnected. Requests in flight are told; their answers are
        dropped."""
        self.transport = None
        self._let_go()
        self._outgoing = Outgoing()
        self._acceptor.closed(self)
        for slot in self.pipeline.lost():
            if slot.on_lost is not None:
                try:
                    on_lost, slot.on_lost = slot.on_lost, None
                    on_lost()
                except Exception as error:  # noqa: BLE001 - the other requests must be told, too
                    self._tell("a request whose client is gone was not given up", error)

    def buffer_updated(self, nbytes: int) -> None:
        """asyncio: `nbytes` were received into the buffer of the last `get_buffer`."""
        self.last_active = self._loop.time()
        self._flush_planned = True  # answers that are ready meanwhile leave at the end
        try:
            if self._own is None:
                scratch = self._buffers.scratch_readonly
                self._keep(scratch, self._begin_frames(scratch, 0, nbytes), nbytes)
            else:
                self._end += nbytes
                self._begin_kept()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this client's alone
            self._broke(error)
        self.flush()

    def pause_writing(self) -> None:
        """asyncio: the client does not read its answers."""
        self._writing_paused = self._unwritable = True
        self._steer_reading()

    def resume_writing(self) -> None:
        """asyncio: the client reads its answers again."""
        self._writing_paused = False
        self._unwritable = bool(self._outgoing)
        self.flush()

    # -- in: frames to requests -------------------------------------------------------------

    def _begin_frames(self, view: memoryview, start: int, end: int) -> int:
        """Begin the complete frames in `view[start:end]`. Returns where the first frame begins that
        was not begun."""
        pipeline = self.pipeline
        # The records of a large frame are copied in steps, which the short cut does not do.
        routes = self._routes if len(view) <= LARGE_BYTES else _NO_ROUTES
        self._blocked = False
        while end - start >= _FRAME_HEAD_BYTES:
            size, key, version, correlation_id, length = _read_frame(view, start)
            after = start + 4 + size
            if after > end or size < SMALLEST_FRAME or size > self._max_frame:
                break
            room = pipeline.may_begin and self._turn_left and not self._unwritable
            if not room or self._acceptor.paused:
                self._blocked = not pipeline.doomed
                return start if self._blocked else end
            route = routes.get(key * 65536 + version)
            found = None
            if route is not None and route.shortcut is not None:
                found = route.shortcut.read(view, start + 12, length, after)
                if found is not None:
                    target, records = found
                    call = ByteCall(self, route, correlation_id, target.client_id, size)
                    pipeline.begin(call)
                    try:
                        begin_produce(target, records, call)
                    except Exception as error:  # noqa: BLE001 - see failed
                        self.failed(call, error)
            if found is None and not self._begin(view, start + 4, after):
                return start
            start = after
            if len(pipeline.ready) > SEND_AFTER:
                self._send()
        if end - start >= 4:
            self._check_size(view, start, end)
        return end if pipeline.doomed else start

    def _check_size(self, view: memoryview, start: int, end: int) -> None:
        """Refuse a frame with an impossible size, before more of it is received."""
        why = size_refusal(view[start:end], self._max_frame)
        if why is not None:
            self._refuse(why)

    def _begin(self, view: memoryview, start: int, end: int) -> bool:
        """Decode one request without the short cut and call its handler. False: it must wait for
        the next iteration of the loop."""
        units = 1 + (end - start) // BYTES_A_UNIT
        if not self.host.slices.take(units, self._next_turn):
            self._blocked = True
            self._turn_left = 0
            return False
        self._turn_left -= 1
        if not self._turn_left:
            self._loop.call_soon(self._next_turn)
        frame = view[start:end]
        try:
            header = read_header(frame)
            route = self._routes.find(header.key, header.version)
            at = skip_tags(frame, header.end) if route.header_tags else header.end
            request = route.read(frame, at)
        except FrameError as error:
            self._refuse(str(error))
            return True
        made = LargeCall if end - start > LARGE_BYTES else ByteCall
        call = made(self, route, header.correlation_id, header.client_id, end - start)
        if isinstance(call, LargeCall):
            call.count(self._halves)
        self.pipeline.begin(call)
        try:
            route.handle(request, call)
        except Exception as error:  # noqa: BLE001 - see failed
            self.failed(call, error)
        if route.shortcut is not None:
            route.shortcut.learn(view, start + 8, end, header.client_id, request)
        return True

    def failed(self, call: ByteCall, error: Exception) -> None:
        """A handler raised, which is a bug: report it to the loop's exception handler, and close
        only this connection."""
        what = f"{call} failed"
        self._tell(what, error)
        call.close(f"{what}: {error!r}")

    def _refuse(self, reason: str) -> None:
        """Close the connection once everything before is answered; the log says why."""
        self._acceptor.refused(self, reason)
        slot = Slot(0)
        slot.finish(closing=reason)
        self.pipeline.begin(slot)
        self.pipeline.done(slot)

    def _begin_kept(self) -> None:
        """Begin frames of the connection's own buffer, as far as the limits allow."""
        if self._own is not None:
            view = memoryview(self._own).toreadonly()
            self._keep(view, self._begin_frames(view, self._start, self._end), self._end)

    def go_on(self) -> None:
        """See `Receiving`."""
        try:
            self._begin_kept()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this client's alone
            self._broke(error)
        self.flush()

    def too_slow(self) -> None:
        """See `Receiving`."""
        self._refuse(
            f"{self._end - self._start} bytes of a frame after {PATIENCE_SECONDS:g} s, while "
            f"others wait for memory (queued_max_request_bytes is {self._halves.most})"
        )
        self._let_go()
        self.flush()

    def _steer_reading(self) -> None:
        """Pause or resume reading: the socket is read only while a request could begin."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        want = not (self._full or self._unwritable or self.pipeline.doomed or self._acceptor.paused)
        if want != self._reading:
            self._reading = want
            if want:
                transport.resume_reading()
            else:
                transport.pause_reading()

    # -- out: answers to bytes --------------------------------------------------------------

    def done(self, call: ByteCall) -> None:
        """A call is answered: see `Link`."""
        self.pipeline.done(call)
        if not self._flush_planned:
            self._flush_planned = True
            self._acceptor.flush_soon(self)

    def charge(self, call: ByteCall, size: int) -> None:
        """The answer of a call may need `size` bytes: see `Link`."""
        self.pipeline.charge(call, size)

    def hold(self) -> None:
        """A call works over several iterations of the loop: see `Link`."""
        self.pipeline.hold()

    def release(self) -> None:
        """The end of `hold`: see `Link`."""
        self.pipeline.release()
        if not self._flush_planned:
            self._flush_planned = True
            self._acceptor.flush_soon(self)

    def flush(self) -> None:
        """Send answers and begin requests until neither is possible. It never raises, because the
        caller flushes other connections after this one."""
        self._flush_planned = True
        try:
            while not self._acceptor.paused:
                self._send()
                room = self.pipeline.may_begin and self._turn_left and not self._unwritable
                if not self._blocked or not room:
                    break
                self._begin_kept()
            self._steer_reading()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this client's alone
            self._broke(error)
        self._flush_planned = False

    def _next_turn(self) -> None:
        """A new iteration of the loop: go on with the bytes that were kept."""
        self._turn_left = TURN_REQUESTS
        if self.transport is not None and not self.transport.is_closing():
            self.flush()

    def _send(self) -> None:
        """Give the answers that are ready to the transport, in few, large pieces."""
        transport = self.transport
        if transport is None:
            return
        if self._outgoing:
            self._send_on(transport)
            return
        ready = self.pipeline.ready
        if ready:
            pieces: list[bytes | memoryview] = []
            total = frames(ready, pieces)
            ready.clear()
            if total > PORTION_BYTES:
                self._outgoing.keep(pieces)
                self._send_on(transport)
                return
            if pieces:
                self.last_active = self._loop.time()
                write(transport, pieces, total)
        if self.pipeline.closing is not None:
            transport.close()

    def _send_on(self, transport: asyncio.Transport) -> None:
        """Give the transport the next portion of a large answer; another one follows in the next
        iteration of the loop."""
        if self._writing_paused or self._portion_planned:
            return
        self.last_active = self._loop.time()
        self._portion_planned = True
        self._unwritable = False
        self._outgoing.write(transport)  # may pause writing
        if self._outgoing:
            self._unwritable = True
        self._loop.call_soon(self._next_portion)

    def _next_portion(self) -> None:
        self._portion_planned = False
        self.flush()

    def _tell(self, what: str, error: Exception) -> None:
        """Report a bug to the loop's exception handler; by default that is a line in the log."""
        self._loop.call_exception_handler({"message": what, "exception": error})

    def _broke(self, error: Exception) -> None:
        """An error that belongs to no single request: close only this connection."""
        self._tell("a client's connection failed and is closed", error)
        self.pipeline.ready.clear()
        self.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        if self.transport is not None:
            shut_down(descriptor_of(self.transport))
            self.transport.abort()

    def leave(self) -> None:
        """The node has stopped: send the answers that are ready (unless the node is paused), then
        close."""
        if self._acceptor.paused or self.transport is None:
            self.abort()
            return
        try:
            self._outgoing.write(self.transport, sys.maxsize)
            self._send()
        except Exception as error:  # noqa: BLE001 - other connections must be closed, too
            self._broke(error)
        if self.transport is not None:
            self.transport.close()
        self._loop.call_later(LAST_WORDS_SECONDS, self.abort)

    def idle_since(self) -> float:
        """The loop time of the last data in or out. If a request is in flight, or a frame waits for
        memory, the present time."""
        transport = self.transport
        waits = len(self.pipeline) or (self._full and not self._blocked)
        if waits and not (transport is None or transport.is_closing()):
            return self._loop.time()
        return self.last_active
