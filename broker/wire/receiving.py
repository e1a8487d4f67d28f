"""Where a connection receives to, and what it keeps of what came.

The loop receives straight into a buffer. While no frame is cut in half that is one buffer shared by
all connections of a server (the loop asks for a buffer, receives and reports before it turns to
another socket), so a thousand idle connections hold none. A half frame moves to a buffer of its
own, which grows in steps, so that announcing 100 MB costs nobody 100 MB. So does what may not begin
yet. All these buffers together are bounded: see `ottla.broker.wire.half_frames`. Whose frames come
whole never meets that.

A half frame does not grow while the pipeline takes no request: it could not begin.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from mmap import mmap
from struct import Struct
from typing import TYPE_CHECKING, TypeAlias

from ottla.broker.wire.half_frames import HalfFrames
from ottla.broker.wire.pipeline import Pipeline

if TYPE_CHECKING:
    from ottla.broker.wire.server import Server

FIRST_BUFFER_BYTES = 1 << 16
"""A frame up to this size gets its buffer at once, a larger one as its bytes come in: a thousand
clients that announce much and send little must not fill the memory."""
WHOLE_FROM_BYTES = 1 << 20
"""With so much of a frame at hand it gets a buffer for all of it: to move 64 MB from one buffer to
the next takes a turn of 50 ms."""
STEP_BYTES = 1 << 18
"""How much more of such a frame is received at once: the others are to have their turn."""
SPARE_BYTES = 1 << 22
"""The largest receive buffer that is kept for reuse, and that is filled with zeros before."""

ReceiveBuffer: TypeAlias = bytearray | mmap

_SIZE = Struct(">i")


def room_for(at_hand: int, frame: int) -> int:
    """How large the buffer of a frame should be, with so many of its bytes at hand."""
    if at_hand >= WHOLE_FROM_BYTES:
        return frame
    return min(frame, max(FIRST_BUFFER_BYTES, 4 * at_hand))


class Receiving(asyncio.BufferedProtocol, ABC):
    """The receiving side of a connection: see the module's text."""

    _own: ReceiveBuffer | None = None
    """Bytes received and not begun: `_own[_start:_end]`, at least the head of a half frame."""
    _start = 0
    _end = 0
    _limit = 0
    """Where receiving into `_own` stops: at the end of the frame, or of what it may hold so far."""
    _blocked = False
    """What lies in `_own` waits for room in the pipeline."""
    _full = False
    """Nothing more is to be received: `_blocked`, or memory is waited for."""

    def __init__(self, server: Server, pipeline: Pipeline):
        self.server = server
        self.pipeline = pipeline
        self._halves: HalfFrames = server.half_frames

    def get_buffer(self, _sizehint: int) -> memoryview:
        """asyncio: where to receive to."""
        if self._own is None:
            return self.server.scratch
        return memoryview(self._own)[self._end : self._limit]

    @abstractmethod
    def go_on(self) -> None:
        """There is memory for what the half frame waited for."""

    @abstractmethod
    def too_slow(self) -> None:
        """The half frame has had its time while others wait."""

    def _keep(self, view: memoryview, start: int, end: int) -> None:
        """Of `view`, bytes `start` to `end` are left: keep them until there are more, or room."""
        if start == end:
            if self._own is not None:
                self._let_go()
        elif self._blocked:
            self._keep_whole(view, start, end)
        else:
            self._keep_half(view, start, end)

    def _keep_whole(self, view: memoryview, start: int, end: int) -> None:
        """A frame may not begin: it stays where it is, and nothing is received behind it."""
        self._full = True
        self._halves.whole(self)
        if self._own is None:
            self._move(view, start, end, end - start, end - start)
        else:
            self._start, self._end = start, end

    def _keep_half(self, view: memoryview, start: int, end: int) -> None:
        """Make room for more of a frame, as far as there is any."""
        known = self._own is not None and start == self._start
        if known and end < self._limit:
            self._end, self._full = end, False
            return
        if not known:
            # Of the frame before it something may be counted, and the buffer be large.
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
        """The frame may hold `most` bytes now, in a buffer of `room`."""
        if self._own is None or len(self._own) < room or start:
            self._move(view, start, end, room, most)
        else:
            self._end = end
        self._limit = most

    def _move(self, view: memoryview, start: int, end: int, room: int, most: int) -> None:
        """Move what is left to a buffer of `room` bytes, of which `most` are to be filled."""
        fresh = self.server.take_buffer(room)
        rest = end - start
        fresh[:rest] = view[start:end]
        self._own, self._start, self._end, self._limit = fresh, 0, rest, rest
        # The system gives memory of its own page by page, Python all at once; a spare may be large.
        self._halves.hold(self, most if isinstance(fresh, mmap) else len(fresh))

    def _let_go(self) -> None:
        """Nothing is left."""
        own, self._own = self._own, None
        self._blocked = self._full = False
        if own is not None:
            self.server.give_buffer(own)
        self._halves.drop(self)
