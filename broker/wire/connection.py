"""One client connection: bytes to requests, answers to bytes.

**In.** Where bytes are received to, and what is kept of them: `ottla.broker.wire.receiving`. Frames
are cut, decoded, and begun in one go; no task and no future is made. What a limit of the pipeline,
or a client that does not read its answers, forbids to begin stays in the connection's own buffer,
and the socket is not read until there is room (promise-S1): nothing fails. So does what follows
`TURN_REQUESTS` requests that were decoded the general way, until the loop has been around: a flood
of small requests is worth seconds, and elections wait on the same loop.

**Out.** Answers gather in the pipeline and leave once per data event, or once per burst of
callbacks: the server collects the connections that have something to send and flushes them
together.

**Ends.** Frames of impossible size, headers and bodies that do not parse, APIs or versions that
are not served: the connection closes (as measured on Apache Kafka 4.3.1), once everything before
has been answered, and the log says why. Bytes after a good body are ignored.
"""

from __future__ import annotations

import asyncio
import sys
from struct import Struct
from typing import TYPE_CHECKING, cast

from ottla.broker.errors import FrameError
from ottla.broker.wire.byte_call import ByteCall, Route
from ottla.broker.wire.codec import read_header, skip_tags
from ottla.broker.wire.framing import PORTION_BYTES, Outgoing, frames, write
from ottla.broker.wire.half_frames import (
    PATIENCE_SECONDS,
    SMALLEST_FRAME,
    LargeCall,
    size_refusal,
)
from ottla.broker.wire.pipeline import Pipeline, Slot, limits_of
from ottla.broker.wire.ports import descriptor_of, shut_down
from ottla.broker.wire.receiving import Receiving
from ottla.broker.wire.translation.produce_large import LARGE_BYTES
from ottla.broker.wire.translation.produce_shortcut import begin_produce

if TYPE_CHECKING:
    from ottla.broker.wire.server import Server

WRITE_HIGH_WATER = 1 << 20
"""Unsent bytes above which no request of the connection is begun."""
LAST_WORDS_SECONDS = 1.0
"""How long a client may take to read its last answers from a node that stops by itself."""
TURN_REQUESTS = 32
"""Requests decoded the general way after which the connection lets the others have their turn."""
BYTES_A_UNIT = 128
"""Bytes of a request that cost a unit of the turn to decode (`ottla.broker.event_loop.slices`)."""
SEND_AFTER = 256
"""Answers that may gather before some are sent."""

_NO_ROUTES: dict[int, Route] = {}
_FRAME = Struct(">ihhih")
_FRAME_HEAD_BYTES = 14
_read_frame = _FRAME.unpack_from


class Connection(Receiving):
    """See the module's text. Made by `ottla.broker.wire.server.Server` for each client."""

    def __init__(self, server: Server):
        config = server.host.config
        super().__init__(server, Pipeline(limits_of(config)))
        self.host = server.host
        self.last_active = server.loop.time()
        self.transport: asyncio.Transport | None = None
        self._max_frame = config.max_request_bytes
        self._reading = True
        self._unwritable = self._writing_paused = False
        self._turn_left = TURN_REQUESTS
        """0: the turn is over, and `_next_turn` is planned."""
        self._flush_planned = False
        self._outgoing = Outgoing()
        self._portion_planned = False

    # -- asyncio's side ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: the client is there."""
        # uvloop has a class of its own for it.
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=WRITE_HIGH_WATER)
        self.server.opened(self)
        # uvloop starts to read behind this call, whatever has been asked for by then.
        self.server.loop.call_soon(self._steer_reading)

    def connection_lost(self, _exc: Exception | None) -> None:
        """asyncio: the client is gone; requests under way are told, their answers dropped."""
        self.transport = None
        self._let_go()
        self._outgoing = Outgoing()
        self.server.closed(self)
        for slot in self.pipeline.lost():
            if slot.on_lost is not None:
                try:
                    on_lost, slot.on_lost = slot.on_lost, None
                    on_lost()
                except Exception as error:  # noqa: BLE001 - the next one is to hear of it, too
                    self._tell("a request whose client is gone was not given up", error)

    def buffer_updated(self, nbytes: int) -> None:
        """asyncio: `nbytes` have been received into the buffer last asked for."""
        self.last_active = self.server.loop.time()
        self._flush_planned = True  # whatever is answered on the way leaves at the end
        try:
            if self._own is None:
                scratch = self.server.scratch_readonly
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
        """asyncio: it does again."""
        self._writing_paused = False
        self._unwritable = bool(self._outgoing)
        self.flush()

    # -- in: frames to requests -------------------------------------------------------------

    def _begin_frames(self, view: memoryview, start: int, end: int) -> int:
        """Begin the whole frames in `view[start:end]`; returns where the first one left starts."""
        pipeline = self.pipeline
        # Of a large frame the records are copied in steps, and not by a shortcut.
        routes = self.server.routes if len(view) <= LARGE_BYTES else _NO_ROUTES
        self._blocked = False
        while end - start >= _FRAME_HEAD_BYTES:
            size, key, version, correlation_id, length = _read_frame(view, start)
            after = start + 4 + size
            if after > end or size < SMALLEST_FRAME or size > self._max_frame:
                break
            room = pipeline.may_begin and self._turn_left and not self._unwritable
            if not room or self.server.paused:
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
        """Refuse a frame whose size alone tells that it is none, before any more of it comes."""
        why = size_refusal(view[start:end], self._max_frame)
        if why is not None:
            self._refuse(why)

    def _begin(self, view: memoryview, start: int, end: int) -> bool:
        """Decode one request the general way, hand it to its handler. False: not in this turn."""
        units = 1 + (end - start) // BYTES_A_UNIT
        if not self.server.slices.take(units, self._next_turn):
            self._blocked = True
            self._turn_left = 0
            return False
        self._turn_left -= 1
        if not self._turn_left:
            self.server.loop.call_soon(self._next_turn)
        frame = view[start:end]
        try:
            header = read_header(frame)
            route = self.server.routes.find(header.key, header.version)
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
        """A handler has a bug: the loop's owner hears of it, and only this client is cut off."""
        what = f"{call} failed"
        self._tell(what, error)
        call.close(f"{what}: {error!r}")

    def _refuse(self, reason: str) -> None:
        """Close after everything before has been answered; the log says why."""
        self.server.refused(self, reason)
        slot = Slot(0)
        slot.finish(closing=reason)
        self.pipeline.begin(slot)
        self.pipeline.done(slot)

    def _begin_kept(self) -> None:
        """Begin what lies in the own buffer, as far as it may."""
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
        """Read the socket exactly while what it brings could begin."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        want = not (self._full or self._unwritable or self.pipeline.doomed or self.server.paused)
        if want != self._reading:
            self._reading = want
            if want:
                transport.resume_reading()
            else:
                transport.pause_reading()

    # -- out: answers to bytes --------------------------------------------------------------

    def done(self, call: ByteCall) -> None:
        """A call has been answered: see `Link`."""
        self.pipeline.done(call)
        if not self._flush_planned:
            self._flush_planned = True
            self.server.flush_soon(self)

    def charge(self, call: ByteCall, size: int) -> None:
        """A call may come to hold that many bytes: see `Link`."""
        self.pipeline.charge(call, size)

    def hold(self) -> None:
        """A call is at work over several turns: see `Link`."""
        self.pipeline.hold()

    def release(self) -> None:
        """It no longer is."""
        self.pipeline.release()
        if not self._flush_planned:
            self._flush_planned = True
            self.server.flush_soon(self)

    def flush(self) -> None:
        """Send what may leave, begin what now has room, until neither is left to do. What fails
        here ends here: whoever flushes one connection flushes others behind it."""
        self._flush_planned = True
        try:
            while not self.server.paused:
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
        """The other connections have had theirs: go on with what is kept."""
        self._turn_left = TURN_REQUESTS
        if self.transport is not None and not self.transport.is_closing():
            self.flush()

    def _send(self) -> None:
        """Hand what is ready to the transport, as few and as large pieces as may be."""
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
                self.last_active = self.server.loop.time()
                write(transport, pieces, total)
        if self.pipeline.closing is not None:
            transport.close()

    def _send_on(self, transport: asyncio.Transport) -> None:
        """Hand on a portion of a large answer; the next one is for another turn of the loop."""
        if self._writing_paused or self._portion_planned:
            return
        self.last_active = self.server.loop.time()
        self._portion_planned = True
        self._unwritable = False
        self._outgoing.write(transport)  # may pause writing
        if self._outgoing:
            self._unwritable = True
        self.server.loop.call_soon(self._next_portion)

    def _next_portion(self) -> None:
        self._portion_planned = False
        self.flush()

    def _tell(self, what: str, error: Exception) -> None:
        """The loop's owner hears of a bug; by default that is a line of the log."""
        self.server.loop.call_exception_handler({"message": what, "exception": error})

    def _broke(self, error: Exception) -> None:
        """What failed belongs to no one request: this client is cut off, and nobody else."""
        self._tell("a client's connection failed and is closed", error)
        self.pipeline.ready.clear()
        self.abort()

    def abort(self) -> None:
        """Drop the client at once."""
        if self.transport is not None:
            shut_down(descriptor_of(self.transport))
            self.transport.abort()

    def leave(self) -> None:
        """The node has stopped: send what is answered, unless it is paused, and begin no more."""
        server = self.server
        if server.paused or self.transport is None:
            self.abort()
            return
        try:
            self._outgoing.write(self.transport, sys.maxsize)
            self._send()
        except Exception as error:  # noqa: BLE001 - the next connection is to leave, too
            self._broke(error)
        if self.transport is not None:
            self.transport.close()
        server.loop.call_later(LAST_WORDS_SECONDS, self.abort)

    def idle_since(self) -> float:
        """Loop time since when nothing came or went; now while requests, or memory for one, are
        under way."""
        transport = self.transport
        waits = len(self.pipeline) or (self._full and not self._blocked)
        if waits and not (transport is None or transport.is_closing()):
            return self.server.loop.time()
        return self.last_active
