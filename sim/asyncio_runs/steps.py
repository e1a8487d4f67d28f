"""Steps of the deterministic loop, and the trace that tells two runs apart.

A `Step` is what `call_soon` and `call_at` return: one callback that runs at most once. It has a
*serial*, its place in the order in which steps were made, and a *lane*: the serial of its task, or
0 for plain callbacks.

The `Trace` digests every step that ran (time, serial, lane), and other notes, such as the bytes
that arrive at a socket. Two runs that differ anywhere have different digests. With `keep`, every
step is kept with its name, and `first_difference` says where they differ first. It contains no
address, no name from outside, and no hash of Python's, so digests of different processes may be
compared.
"""

from __future__ import annotations

import asyncio
import sys
from array import array
from collections.abc import Callable, Sequence
from contextvars import Context
from hashlib import blake2b
from itertools import zip_longest
from typing import Any, NamedTuple, Protocol

from ottla.raft.types import Micros

LANE_BITS = 24
"""Bits of a word of the trace for the lane; the rest is the serial."""
_WORD_MASK = (1 << 64) - 1
NOT_WAITING = -1


class TimerOwner(Protocol):
    """Counts timers that were cancelled."""

    def timer_dropped(self) -> None:
        """A timer was cancelled before its time."""


class Step(asyncio.TimerHandle):
    """See the module's docstring. It does not use the private attributes of asyncio's own
    handles."""

    __slots__ = ("args", "call", "context", "dropped", "due", "lane", "owner", "serial")

    def __init__(
        self, serial: int, lane: int, call: Callable[..., Any], args: Any, context: Context
    ):
        self.serial = serial
        self.lane = lane
        self.call: Callable[..., Any] | None = call
        self.args: tuple[Any, ...] = args
        self.context = context
        self.due: Micros = NOT_WAITING
        """Its time while it waits for it; then it has an `owner`."""
        self.owner: TimerOwner
        self.dropped = False

    def cancel(self) -> None:
        """It will not run."""
        if not self.dropped:
            self.dropped = True
            self.call, self.args = None, ()
            if self.due != NOT_WAITING:
                self.owner.timer_dropped()

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self.dropped

    def when(self) -> float:
        """Seconds of the loop's time."""
        return self.due / 1e6

    def get_context(self) -> Context:
        """The context in which it runs."""
        return self.context

    def __hash__(self) -> int:
        return self.serial

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"<step {self.serial} of lane {self.lane}: {name_of(self.call)}>"


def name_of(call: Callable[..., Any] | None) -> str:
    """The name of a callback, without its address: the same in every process."""
    if call is None:
        return "cancelled"
    task = getattr(call, "__self__", None)
    if isinstance(task, asyncio.Task):
        return f"{task.get_name()} {getattr(task.get_coro(), '__qualname__', '?')}"
    inner = getattr(call, "func", call)
    return f"{getattr(inner, '__module__', '?')}.{getattr(inner, '__qualname__', '?')}"


class Row(NamedTuple):
    """One line of a kept trace."""

    time: Micros
    serial: int
    lane: int
    what: str
    """Name of the callback, or what was noted."""


class Trace:
    """See the module's docstring."""

    def __init__(self, *, keep: bool = False):
        self.words = array("Q")
        """Not digested yet; the loop adds two for each step: its time; its serial and lane."""
        self.rows: list[Row] | None = [] if keep else None
        self.steps = 0
        self._hash = blake2b(digest_size=16)

    def settle(self, steps: int = 0) -> None:
        """Digest what has gathered, which contains `steps` steps."""
        self.steps += steps
        if sys.byteorder == "big":
            self.words.byteswap()
        self._hash.update(self.words)
        del self.words[:]

    def note(self, time: Micros, value: int, what: str) -> None:
        """Add something besides the steps that must be the same in every run."""
        self.words.append(time)
        self.words.append(value & _WORD_MASK)
        if self.rows is not None:
            self.rows.append(Row(time, 0, 0, f"{what} {value}"))

    @property
    def digest(self) -> str:
        """Digest of everything up to now."""
        self.settle()
        return self._hash.hexdigest()


class Difference(NamedTuple):
    """Where two runs differ first: `place` counts rows from 0; None: that run was over."""

    place: int
    left: Row | None
    right: Row | None

    def __str__(self) -> str:
        return f"row {self.place} is the first to differ: {_show(self.left)} | {_show(self.right)}"


def _show(row: Row | None) -> str:
    if row is None:
        return "(the run is over)"
    return f"{row.time} us, step {row.serial} of lane {row.lane}: {row.what}"


def first_difference(left: Sequence[Row], right: Sequence[Row]) -> Difference | None:
    """The first row in which two kept traces differ; None: they are equal.

    Rows that came through JSON, as lists, can be compared as well.
    """
    for place, (a, b) in enumerate(zip_longest(left, right)):
        ours, theirs = None if a is None else Row(*a), None if b is None else Row(*b)
        if ours != theirs:
            return Difference(place, ours, theirs)
    return None
