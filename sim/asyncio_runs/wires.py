"""Wires: how the bytes of a simulated connection travel, modelled as TCP.

A connection has two `Wire`s, one for each direction. A wire carries *segments* in order, each once:
bytes, the end of them, a reset. A way that is cut keeps everything back until it is mended, also
segments that were under way (TCP sends them again). An end that waits longer than `GIVE_UP_MICROS`
for that is told so.

A way is what the network knows of a direction between two addresses:
`ottla.sim.asyncio_runs.ways`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextvars import Context
from enum import Enum, auto
from typing import Any, NamedTuple, Protocol

from ottla.raft.types import Micros

GIVE_UP_MICROS: Micros = 924_600_000
"""How long TCP sends again before it gives up (15 times, Linux's default)."""


class Kind(Enum):
    """The kind of a segment."""

    BYTES = auto()
    OPEN = auto()
    """The first segment of each direction."""
    EOF = auto()
    RESET = auto()
    READ = auto()
    """So many bytes were read: the window is open again."""


class Segment(NamedTuple):
    """A unit of data on a wire."""

    kind: Kind
    data: bytes = b""
    read: int = 0


class Way(Protocol):
    """One direction between two addresses, as the network knows it."""

    def cut(self) -> bool:
        """Whether nothing gets through now."""

    def span(self) -> Micros:
        """How long the next segment takes."""

    def piece(self, size: int) -> int:
        """How many of `size` bytes make up the next segment, at least 1."""

    def when_mended(self, call: Callable[[], None]) -> None:
        """Call it, once, as soon as the way is no longer cut."""


class Clock(Protocol):
    """The methods of the loop that are used here."""

    def now(self) -> Micros:
        """Virtual time."""

    def call_at_micros(
        self, when: Micros, callback: Any, *args: Any, context: Context | None = None
    ) -> Any:
        """Set a timer."""

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> Any:
        """Call it after what runs now."""


class Wire:
    """One direction of one connection."""

    def __init__(self, clock: Clock, way: Way):
        self.arrive: Callable[[Segment], None]
        """The end that it leads to: called with each segment."""
        self.context: Context
        """The context of that call."""
        self.on_given_up: Callable[[], None]
        self._clock = clock
        self._way = way
        self._line: deque[Segment] = deque()
        """Segments that have not arrived, in order."""
        self._until: Micros = 0
        """When the last arrival is scheduled; each arrival takes the first segment."""
        self._missed = 0
        """Arrivals that a cut way has swallowed, or that were not scheduled because of it."""
        self._missed_since: Micros = 0

    def send(self, segment: Segment) -> None:
        """Send a segment; it arrives after everything that was sent before."""
        self._line.append(segment)
        if self._way.cut():
            self._miss()
        else:
            self._plan()

    def _plan(self) -> None:
        self._until = max(self._until, self._clock.now() + self._way.span())
        self._clock.call_at_micros(self._until, self._reach, context=self.context)

    def _reach(self) -> None:
        if self._way.cut():
            self._miss()
        elif self._line:
            self.arrive(self._line.popleft())

    def _miss(self) -> None:
        if not self._missed:
            now = self._missed_since = self._clock.now()
            self._way.when_mended(self._mended)
            self._clock.call_at_micros(now + GIVE_UP_MICROS, self._give_up, now)
        self._missed += 1

    def _mended(self) -> None:
        missed, self._missed = self._missed, 0
        for _ in range(missed):
            self._plan()

    def _give_up(self, since: Micros) -> None:
        if self._missed and self._missed_since == since:
            self._line.clear()
            self.on_given_up()


class Link(NamedTuple):
    """What an end needs of the network."""

    clock: Clock
    wire: Wire
    """The wire to the other end."""
    way: Way
    """The way of the wire."""
    window: int
    """Bytes that may be under way or unread."""
    note: Callable[[int, str], None]
    """Called with what arrives."""
