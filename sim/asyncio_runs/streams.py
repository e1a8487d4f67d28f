"""Connections in memory: an `End` is a transport of asyncio, with a protocol.

Two ends are joined by two wires (`ottla.sim.asyncio_runs.wires`), and behave like TCP sockets.

**Out.** Written bytes leave in segments while fewer than `window` bytes are on their way or unread
at the other end. What does not fit waits here, and the protocol is told to pause and to resume by
the watermarks. Bytes that were read are acknowledged in a segment of their own, a quarter of the
window at a time. So a way that is cut in one direction stops the other direction too, once the
window is full.

**In.** Segments wait in order until the protocol reads. They reach it whole or in pieces, by
`data_received` or by `get_buffer` and `buffer_updated`.

**Ends.** `write_eof` ends one direction. `close` sends what was written, then ends both; `abort`
drops what has not left. If there are unread bytes, or more arrive, the other end is reset, as Linux
does. A reset is noticed when the end reads, after what had arrived before it, or by the next write;
nothing arrives after it.

Protocols are called in the context in which their end was made.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import copy_context
from typing import Any, cast
from zlib import crc32

from ottla.sim.asyncio_runs.wires import Kind, Link, Segment

READ_BYTES = 1 << 18
"""Most bytes that a protocol gets at a time, as in asyncio's own transports."""
HIGH_WATER = 1 << 16


class End(asyncio.Transport):
    """One end of a connection; see the module's docstring."""

    def __init__(self, link: Link, names: dict[str, Any]):
        super().__init__()
        self.context = copy_context()
        self.on_closed: Callable[[End], None] = lambda _: None
        self._link = link
        self._clock = link.clock
        self._window = link.window
        self._wire = link.wire
        self._wire.on_given_up = self._timed_out
        self._names = names
        self._protocol: asyncio.BaseProtocol | None = None
        self._high, self._low = HIGH_WATER, HIGH_WATER // 4
        # Out.
        self._unsent = bytearray()
        self._under_way = 0
        """Bytes that have left and are unread, as far as this end knows."""
        self._paused_writing = False
        self._no_more_writes = False
        self._eof_sent = False
        # In.
        self._unread: deque[bytes] = deque()
        self._unacknowledged = 0
        self._eof_arrived = False
        self._eof_told = False
        self._broken: OSError | None = None
        """Why nothing more will come; None: not known here."""
        self._reading = True
        self._read_planned = False
        self._closing = False
        self._lost = False
        """Whether the protocol was told, or will be at once."""

    def made(self, protocol: asyncio.BaseProtocol) -> None:
        """The connection is made, and may have received something already."""
        self._protocol = protocol
        protocol.connection_made(self)
        self._plan_read()

    # ---- what asyncio asks of a transport

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """`peername` and `sockname`: host and port."""
        return self._names.get(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Set the protocol that is called from now on."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """The protocol that is called."""
        assert self._protocol is not None, "made"
        return self._protocol

    def is_closing(self) -> bool:
        """Whether it is ending, or has ended."""
        return self._closing

    def is_reading(self) -> bool:
        """Whether the protocol gets what arrives."""
        return self._reading and not self._closing

    def pause_reading(self) -> None:
        """Pass nothing to the protocol."""
        self._reading = False

    def resume_reading(self) -> None:
        """Pass on what has arrived, and what arrives later."""
        if not self._reading and not self._closing:
            self._reading = True
            self._plan_read()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set when the protocol is told to pause and to resume writing, in bytes."""
        if high is None:
            high = HIGH_WATER if low is None else 4 * low
        low = high // 4 if low is None else low
        if not 0 <= low <= high:
            raise ValueError(f"high ({high}) must be at least low ({low}), and that at least 0")
        self._high, self._low = high, low
        self._watch_marks()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Low and high."""
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        """Bytes that have not left yet."""
        return len(self._unsent)

    def write(self, data: Any) -> None:
        """Send bytes."""
        if self._no_more_writes:
            if not self._closing:
                raise RuntimeError("Cannot call write() after write_eof()")
            return
        if self._broken is not None:
            self._lose(self._broken)
            return
        self._unsent += data
        self._push()

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        """Send all of it."""
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        """Always true."""
        return True

    def write_eof(self) -> None:
        """Nothing more will be written; the other end may go on."""
        if not self._no_more_writes:
            self._no_more_writes = True
            self._push()

    def close(self) -> None:
        """Send what was written, then end."""
        if not self._closing:
            self._closing = self._no_more_writes = True
            self._push()

    def abort(self) -> None:
        """End at once; what has not left is dropped."""
        self._unsent.clear()
        self._paused_writing = False  # the protocol is not told to resume
        self.close()
        self._push()

    # ---- out

    def _push(self) -> None:
        """Send what may leave."""
        unsent = self._unsent
        while unsent and self._under_way < self._window:
            size = self._link.way.piece(min(len(unsent), self._window - self._under_way))
            data = bytes(unsent[:size])
            del unsent[:size]
            self._under_way += size
            self._wire.send(Segment(Kind.BYTES, data))
        self._watch_marks()
        if unsent or not self._no_more_writes or self._lost:
            return
        if self._closing and self._unread:
            self._wire.send(Segment(Kind.RESET))
        elif not self._eof_sent:
            self._eof_sent = True
            self._wire.send(Segment(Kind.EOF))
        if self._closing:
            self._lose(None)

    def _watch_marks(self) -> None:
        size = len(self._unsent)
        if self._paused_writing and size <= self._low and not self._lost:
            self._paused_writing = False
            self.get_protocol().resume_writing()
        elif not self._paused_writing and size > self._high:
            self._paused_writing = True
            self.get_protocol().pause_writing()

    # ---- in

    def arrive(self, segment: Segment) -> None:
        """A segment arrives from the other end."""
        if self._broken is not None:
            return  # a reset came first
        if self._lost:
            # The kernel answers for a socket that is gone.
            if segment.kind is Kind.BYTES:
                self._wire.send(Segment(Kind.RESET))
            return
        if segment.kind is Kind.BYTES:
            where = "{}:{}".format(*self._names["sockname"])
            self._link.note(crc32(segment.data), f"{len(segment.data)} bytes at {where}")
            self._unread.append(segment.data)
        elif segment.kind is Kind.EOF:
            self._eof_arrived = True
        elif segment.kind is Kind.RESET:
            # Linux: unread bytes are still read, and a reset after the other side's end is another
            # error.
            self._broken = (
                BrokenPipeError(32, "Broken pipe")
                if self._eof_arrived
                else ConnectionResetError(104, "Connection reset by peer")
            )
            if self._closing or self._unsent:
                self._lose(self._broken)
                return
        else:
            self._under_way -= segment.read
            self._push()
            return
        if not self._read_planned:
            self._read()

    def _plan_read(self) -> None:
        if not self._read_planned:
            self._read_planned = True
            self._clock.call_soon(self._read_soon, context=self.context)

    def _read_soon(self) -> None:
        self._read_planned = False
        self._read()

    def _read(self) -> None:
        """Pass on one piece of what has arrived, and schedule the next."""
        # After the end of the other side asyncio no longer reads, so it does not notice a reset
        # either.
        if not self._reading or self._closing or self._eof_told or self._protocol is None:
            return
        if self._unread:
            self._take(self._hand_on())
        elif self._broken is not None:
            self._lose(self._broken)
            return
        elif self._eof_arrived:
            self._eof_told = True
            if not cast(asyncio.Protocol, self._protocol).eof_received():
                self.close()
            return
        if self._unread or self._broken or self._eof_arrived:
            self._plan_read()

    def _hand_on(self) -> int:
        """Give the protocol one piece; returns how many bytes that was."""
        protocol = self._protocol
        if isinstance(protocol, asyncio.BufferedProtocol):
            room = memoryview(protocol.get_buffer(-1))
            if not room:
                raise RuntimeError("get_buffer() returned an empty buffer")
            data = self._gather(min(len(room), READ_BYTES))
            room[: len(data)] = data
            protocol.buffer_updated(len(data))
        else:
            data = self._gather(READ_BYTES)
            cast(asyncio.Protocol, protocol).data_received(data)
        return len(data)

    def _gather(self, limit: int) -> bytes:
        """The next bytes in order, as one piece."""
        unread = self._unread
        if len(unread[0]) > limit:
            data, unread[0] = unread[0][:limit], unread[0][limit:]
            return data
        pieces, size = [], 0
        while unread and size + len(unread[0]) <= limit:
            pieces.append(unread.popleft())
            size += len(pieces[-1])
        return b"".join(pieces)

    def _take(self, count: int) -> None:
        """The protocol has read so many bytes."""
        self._unacknowledged += count
        if self._unacknowledged * 4 >= self._window and not self._lost:
            self._wire.send(Segment(Kind.READ, read=self._unacknowledged))
            self._unacknowledged = 0

    # ---- the end

    def _timed_out(self) -> None:
        self._lose(TimeoutError(110, "Connection timed out"))

    def _lose(self, error: Exception | None) -> None:
        """The connection has ended on this side."""
        if self._lost:
            return
        self._lost = self._closing = self._no_more_writes = True
        self._unsent.clear()
        self._unread.clear()
        self._clock.call_soon(self._say_lost, error, context=self.context)

    def _say_lost(self, error: Exception | None) -> None:
        protocol, self._protocol = self._protocol, None
        assert protocol is not None, "made"
        protocol.connection_lost(error)
        self.on_closed(self)
