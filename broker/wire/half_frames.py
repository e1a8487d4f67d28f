"""Frames of which only a part has come: what they may be, and how much memory they may hold.

A frame that has come in part lies in a buffer of its connection for as long as its client likes.
`HalfFrames` counts these buffers for all connections of a server, and with them frames that are
whole and may not begin yet, and large ones that are at work. While there is room nobody notices.
When there is none,

* whoever would hold more *waits*: its socket is not read. It goes on in the order of waiting;
* the oldest half frame may grow beyond the limit, or else all would wait for each other: each has a
  part, and nobody has room for the rest. One at a time: what the others hold is within the limit;
* a half frame that its client has not completed after `PATIENCE_SECONDS` goes. The time in which
  it waited does not count, and a whole frame never goes: the client is not to blame for that.

So a server holds the limit, one frame beside it, and `SMALL_BYTES` for each connection: so much
everybody may hold without being counted, so that small requests pass while large ones wait.

Sans-IO: the time is handed in, and the server, which has the timers, asks for who is `overdue`.
docs/decisions/0032-memory-of-half-frames.md has the reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Protocol

from ottla.broker.wire.byte_call import ByteCall
from ottla.broker.wire.translation.packing import Piece
from ottla.broker.wire.translation.produce_shortcut import PRODUCE_KEY
from ottla.broker.wire.walk import REQUEST_LIMITS

SMALLEST_FRAME = 10
"""API key, version, correlation id and the length of the client id."""
PLAIN_FRAME_BYTES = REQUEST_LIMITS.body_bytes + (1 << 20)
"""The largest frame without records: a body of the largest size, and room for any header."""
SMALL_BYTES = 1 << 14
"""What each connection may hold without being counted."""
PATIENCE_SECONDS = 10.0
"""How long a half frame may take while others wait for memory."""
GRANTED_BYTES = 1 << 22
"""For so many one turn of the loop lets connections go on: memory takes its time to be given."""

_SIZE = Struct(">i")
_SIZE_AND_KEY = Struct(">ih")


def size_refusal(head: memoryview, most: int) -> str | None:
    """Why a frame that begins with these bytes, 4 at least, is none; `most` is the largest."""
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
        """What was asked for is there: it is counted already."""

    def too_slow(self) -> None:
        """Its client has had its time."""


class HalfFrames:
    """What the connections of a server hold of frames that are not done; see the module's text.

    `pressed` is called with whether anybody waits, each time that changes.
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
        """Bytes counted."""
        self._time = time
        self._call_soon = call_soon
        self._pressed = pressed
        self._planned = False
        self._bytes: dict[object, int] = {}
        self._half: dict[Holder, float] = {}
        """Half frames, the oldest first, with the time from which their patience counts."""
        self._waiting: dict[Holder, int] = {}
        """Who waits, in order, and for how many bytes in all."""

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def ask(self, holder: Holder, size: int) -> bool:
        """May this half frame hold `size` bytes in all? False: not before its `go_on`."""
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
        """Count what somebody holds anyway, instead of what was counted for it so far."""
        size = size if size > SMALL_BYTES else 0
        before = self._bytes.pop(holder, 0)
        if size:
            self._bytes[holder] = size
        self.held += size - before
        if size < before:
            self._plan()

    def whole(self, holder: Holder) -> None:
        """What it holds is no half frame, or not the same as before."""
        if self._half.pop(holder, None) is not None:
            self._plan()

    def drop(self, holder: Holder) -> None:
        """It holds nothing any more."""
        if self._waiting.pop(holder, None) is not None and not self._waiting:
            self._pressed(False)
        self.whole(holder)
        self.hold(holder, 0)

    def overdue(self) -> Holder | None:
        """A connection whose client has had its time while others wait."""
        now = self._time()
        for holder, since in self._half.items() if self._waiting else ():
            if holder not in self._waiting and since + PATIENCE_SECONDS <= now:
                return holder
        return None

    def due(self) -> float:
        """When the next one may be overdue."""
        starts = [since for holder, since in self._half.items() if holder not in self._waiting]
        return min(starts, default=self._time()) + PATIENCE_SECONDS

    def restart(self) -> None:
        """Nobody has been read for a while: the patience with all counts from now."""
        self._half = dict.fromkeys(self._half, self._time())

    def _may(self, holder: Holder, size: int, *, alone: bool) -> bool:
        """Whether it may hold so much; `alone`: nobody waits before it."""
        others = self.held - self._bytes.get(holder, 0)
        if others <= self.most and next(iter(self._half)) is holder:
            return True
        return alone and others + size <= self.most

    def _plan(self) -> None:
        """Memory has become free, or another half frame is the oldest: see in the next turn."""
        if self._waiting and not self._planned:
            self._planned = True
            self._call_soon(self._grant)

    def _grant(self) -> None:
        """Let those go on for whom there is room: the oldest, and the first in order."""
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
        """Who may go on next, of those that wait."""
        for holder in (next(iter(self._half)), next(iter(self._waiting))):
            if holder in self._waiting and self._may(holder, self._waiting[holder], alone=True):
                return holder
        return None


class LargeCall(ByteCall):
    """A request with a large frame: counted until it is settled."""

    _counted: HalfFrames

    def count(self, halves: HalfFrames) -> None:
        """It is at work."""
        self._counted = halves
        halves.hold(self, self.size)

    def answer_bytes(self, body: bytes) -> None:
        """See `ByteCall`."""
        self.answer_parts((body,))

    def finish(self, parts: Sequence[Piece] = (), closing: str | None = None) -> bool:
        """See `Slot`."""
        self._counted.hold(self, 0)
        return super().finish(parts, closing)
