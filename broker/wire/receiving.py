"""The receive buffers of a connection, and the bytes that it keeps.

The loop receives directly into a buffer. As long as only whole frames arrive, all connections of a
server share one buffer, because the loop asks for a buffer, receives and reports before it handles
another socket. So a thousand idle connections need no buffers. A half frame is moved to a buffer of
its connection, which grows in steps: a client that announces 100 MB does not cost 100 MB. Whole
frames that may not begin yet are moved there, too. `ottla.broker.wire.half_frames` limits all these
buffers together.

A half frame does not grow while the pipeline accepts no request, because it could not begin.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from mmap import mmap
from struct import Struct

from ottla.broker.wire.buffers import SPARE_BYTES, Buffers, ReceiveBuffer
from ottla.broker.wire.half_frames import HalfFrames
from ottla.broker.wire.pipeline import Pipeline

FIRST_BUFFER_BYTES = 1 << 16
"""A frame up to this size gets its whole buffer at once, a larger one as its bytes arrive, because
a thousand clients may announce much and send little."""
WHOLE_FROM_BYTES = 1 << 20
"""Once this much of a frame has arrived, it gets a buffer for the whole frame: moving 64 MB from
one buffer to another takes 50 ms."""
STEP_BYTES = 1 << 18
"""How much of a half frame is received at once, so that others can run in between. The loop
receives from all sockets that have bytes in one turn: with the whole rest of their frames at once,
sixty clients that sent large requests made a turn of 105 ms, now of 41 ms."""

_SIZE = Struct(">i")


def room_for(at_hand: int, frame: int) -> int:
    """The size of the buffer for a frame of `frame` bytes, of which `at_hand` have arrived."""
    if at_hand >= WHOLE_FROM_BYTES:
        return frame
    return min(frame, max(FIRST_BUFFER_BYTES, 4 * at_hand))


class Receiving(asyncio.BufferedProtocol, ABC):
    """The receiving side of a connection: see the module's docstring."""

    _own: ReceiveBuffer | None = None
    """The connection's own buffer; `_own[_start:_end]` are bytes of requests that have not
    begun."""
    _start = 0
    _end = 0
    _limit = 0
    """Receiving into `_own` stops here: at the end of the frame, or of the memory granted so
    far."""
    _blocked = False
    """The bytes in `_own` wait for room in the pipeline."""
    _full = False
    """Nothing more may be received: the connection is `_blocked`, or waits for memory."""

    def __init__(self, buffers: Buffers, halves: HalfFrames, pipeline: Pipeline):
        self.pipeline = pipeline
        self._buffers = buffers
        self._halves = halves

    def get_buffer(self, _sizehint: int) -> memoryview:
        """asyncio: the buffer to receive into."""
        if self._own is None:
            return self._buffers.scratch
        return memoryview(self._own)[self._end : min(self._limit, self._end + STEP_BYTES)]

    @abstractmethod
    def go_on(self) -> None:
        """The memory that the half frame waited for is granted."""

    @abstractmethod
    def too_slow(self) -> None:
        """The half frame was not completed in time while others wait."""

    def _keep(self, view: memoryview, start: int, end: int) -> None:
        """Bytes `start` to `end` of `view` have not begun: keep them until more arrive or the
        pipeline has room."""
        if start == end:
            if self._own is not None:
                self._let_go()
        elif self._blocked:
            self._keep_whole(view, start, end)
        else:
            self._keep_half(view, start, end)

    def _keep_whole(self, view: memoryview, start: int, end: int) -> None:
        """A whole frame may not begin: keep it, and receive nothing more."""
        self._full = True
        self._halves.whole(self)
        if self._own is None:
            self._move(view, start, end, end - start, end - start)
        else:
            self._start, self._end = start, end

    def _keep_half(self, view: memoryview, start: int, end: int) -> None:
        """Keep a half frame, and make room for more of it if memory is granted."""
        known = self._own is not None and start == self._start
        if known and end < self._limit:
            self._end, self._full = end, False
            return
        if not known:
            # The count, and a large buffer, may still be those of the previous frame.
            self._halves.whole(self)
        rest = end - start
        size = 4 + (_SIZE.unpack_from(view, start)[0] if rest >= 4 else 0)
        room = room_for(rest, size)
        most = room if room <= SPARE_BYTES else min(room, rest + STEP_BYTES)
        self._blocked = not self.pipeline.may_begin
        self._full = self._blocked or not self._halves.ask(self, most)
        if not self._full:
            self._grow(view, start, end, room, most)
        elif known:
            self._end = self._limit = end
        else:
            self._move(view, start, end, rest, rest)

    def _grow(self, view: memoryview, start: int, end: int, room: int, most: int) -> None:
        """The frame may now have `most` bytes, in a buffer of `room` bytes."""
        if self._own is None or len(self._own) < room or start:
            self._move(view, start, end, room, most)
        else:
            self._end = end
        self._limit = most

    def _move(self, view: memoryview, start: int, end: int, room: int, most: int) -> None:
        """Move the bytes that are left to a buffer of `room` bytes, of which `most` may be
        filled."""
        fresh = self._buffers.take(room)
        rest = end - start
        fresh[:rest] = view[start:end]
        self._own, self._start, self._end, self._limit = fresh, 0, rest, rest
        # Memory of the system is used page by page as it is filled, a bytearray all at once. A
        # spare buffer may be larger than `room`.
        self._halves.hold(self, most if isinstance(fresh, mmap) else len(fresh))

    def _let_go(self) -> None:
        """No bytes are left: give the own buffer back."""
        own, self._own = self._own, None
        self._blocked = self._full = False
        if own is not None:
            self._buffers.give_back(own)
        self._halves.drop(self)
