"""Half frames, of which only a part has arrived: their sizes, and a limit of their memory.

A half frame is in a buffer of its connection until its client sends the rest. `HalfFrames` counts
these buffers for all connections of a server. It also counts whole frames that may not begin yet,
and large frames whose requests are in progress. Below the limit it changes nothing. At the limit,

* a connection that needs more memory *waits*: its socket is not read. Connections go on in the
  order in which they began to wait;
* the oldest half frame may grow beyond the limit. Otherwise all could wait for each other, each
  with a part of a frame. Only one may do so, while all others together are within the limit;
* a half frame that its client has not completed after `PATIENCE_SECONDS` is dropped. Time in which
  it waited does not count. A whole frame is never dropped, because its client is not to blame.

So a server holds at most the limit, one frame, and `SMALL_BYTES` for each connection. A connection
may always hold `SMALL_BYTES`, so that small requests pass while large ones wait.

Sans-IO: the time is handed in, and the server, which has the timers, calls `overdue`.
docs/decisions/0032-memory-of-half-frames.md has the reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Protocol

from ottla.broker.wire.byte_call import ByteCall
from ottla.broker.wire.translation.packing import Piece
from ottla.broker.wire.translation.produce_prefixes import PRODUCE_KEY
from ottla.broker.wire.walk import REQUEST_LIMITS

SMALLEST_FRAME = 10
"""The smallest frame: API key, version, correlation id and the length of the client id."""
PLAIN_FRAME_BYTES = REQUEST_LIMITS.body_bytes + (1 << 20)
"""The largest frame without records: the largest body, and room for any header."""
SMALL_BYTES = 1 << 14
"""How many bytes each connection may hold without being counted."""
PATIENCE_SECONDS = 10.0
"""How long a client may take to complete a frame while others wait for memory."""
GRANTED_BYTES = 1 << 22
"""After granting this many bytes, the rest waits for the next iteration of the loop, because
getting memory takes time."""

_SIZE = Struct(">i")
_SIZE_AND_KEY = Struct(">ih")


def size_refusal(head: memoryview, most: int) -> str | None:
    """Why a frame with this beginning (at least 4 bytes) is refused for its size, or None. `most`:
    the largest size of a frame."""
    (size,) = _SIZE.unpack_from(head)
    if size < SMALLEST_FRAME or size > most:
        return f"a frame of {size} bytes, limit {most}"
    if size > PLAIN_FRAME_BYTES and len(head) >= _SIZE_AND_KEY.size:
        _, key = _SIZE_AND_KEY.unpack_from(head)
        if key != PRODUCE_KEY:
            return f"API {key}: a frame of {size} bytes without records, limit {PLAIN_FRAME_BYTES}"
    return None


class Holder(Protocol):
    """A connection, as `HalfFrames` sees it."""

    def go_on(self) -> None:
        """The memory that it waited for is granted, and counted already."""

    def too_slow(self) -> None:
        """Its client has not completed the frame in time."""


class HalfFrames:
    """Counts the memory of unfinished frames of a server; see the module's docstring.

    `most`: the limit in bytes. `pressed(waits)` is called whenever it changes whether a connection
    waits.
    """

    def __init__(
        self,
        most: int,
        time: Callable[[], float],
        call_soon: Callable[[Callable[[], None]], object],
        pressed: Callable[[bool], None],
    ):
        self.most = most
        self.held = 0
        """How many bytes are counted now."""
        self._time = time
        self._call_soon = call_soon
        self._pressed = pressed
        self._planned = False
        self._bytes: dict[object, int] = {}
        self._half: dict[Holder, float] = {}
        """Half frames, oldest first, and the time from which `PATIENCE_SECONDS` counts."""
        self._waiting: dict[Holder, int] = {}
        """Connections that wait, in order, and how many bytes each needs in all."""

    @property
    def waiting(self) -> int:
        """How many connections wait."""
        return len(self._waiting)

    def ask(self, holder: Holder, size: int) -> bool:
        """Ask whether this half frame may hold `size` bytes in all. False: it must wait for
        `go_on`."""
        if size <= SMALL_BYTES:
            self.hold(holder, size)
            return True
        self._half.setdefault(holder, self._time())
        more = size > self._bytes.get(holder, 0)
        if more and not self._may(holder, size, alone=not self._waiting):
            self._waiting[holder] = size
            if len(self._waiting) == 1:
                self._pressed(True)
            return False
        self.hold(holder, size)
        return True

    def hold(self, holder: object, size: int) -> None:
        """Count `size` bytes for this holder, instead of what was counted for it so far."""
        size = size if size > SMALL_BYTES else 0
        before = self._bytes.pop(holder, 0)
        if size:
            self._bytes[holder] = size
        self.held += size - before
        if size < before:
            self._plan()

    def whole(self, holder: Holder) -> None:
        """The holder has no half frame any more, or another one."""
        if self._half.pop(holder, None) is not None:
            self._plan()

    def drop(self, holder: Holder) -> None:
        """The holder has no memory any more and waits for none."""
        if self._waiting.pop(holder, None) is not None and not self._waiting:
            self._pressed(False)
        self.whole(holder)
        self.hold(holder, 0)

    def overdue(self) -> Holder | None:
        """A connection whose client is too slow while others wait; None if there is none."""
        now = self._time()
        for holder, since in self._half.items() if self._waiting else ():
            if holder not in self._waiting and since + PATIENCE_SECONDS <= now:
                return holder
        return None

    def due(self) -> float:
        """When the next connection may be overdue."""
        starts = [since for holder, since in self._half.items() if holder not in self._waiting]
        return min(starts, default=self._time()) + PATIENCE_SECONDS

    def restart(self) -> None:
        """No socket was read for some time: all clients get `PATIENCE_SECONDS` again."""
        self._half = dict.fromkeys(self._half, self._time())

    def _may(self, holder: Holder, size: int, *, alone: bool) -> bool:
        """Whether the holder may have `size` bytes. `alone`: nobody waits before it."""
        others = self.held - self._bytes.get(holder, 0)
        if others <= self.most and next(iter(self._half)) is holder:
            return True
        return alone and others + size <= self.most

    def _plan(self) -> None:
        """Memory is free, or another half frame is the oldest: plan to grant memory."""
        if self._waiting and not self._planned:
            self._planned = True
            self._call_soon(self._grant)

    def _grant(self) -> None:
        """Let connections go on while there is room: the oldest half frame, and the first that
        waits."""
        self._planned = False
        granted = 0
        while self._waiting:
            holder = self._next()
            if holder is None:
                return
            if granted > GRANTED_BYTES:
                self._plan()
                return
            size = self._waiting.pop(holder)
            granted += size
            self.hold(holder, size)
            self._half[holder] = self._time()
            if not self._waiting:
                self._pressed(False)
            holder.go_on()

    def _next(self) -> Holder | None:
        """The waiting connection that may go on next, or None."""
        for holder in (next(iter(self._half)), next(iter(self._waiting))):
            if holder in self._waiting and self._may(holder, self._waiting[holder], alone=True):
                return holder
        return None


class LargeCall(ByteCall):
    """A request with a large frame, which is counted until the request is finished."""

    _counted: HalfFrames

    def count(self, halves: HalfFrames) -> None:
        """The request begins: count its frame."""
        self._counted = halves
        halves.hold(self, self.size)

    def answer_bytes(self, body: bytes) -> None:
        """See `ByteCall`."""
        self.answer_parts((body,))

    def finish(self, parts: Sequence[Piece] = (), closing: str | None = None) -> bool:
        """See `Slot`."""
        self._counted.hold(self, 0)
        return super().finish(parts, closing)
