"""Steps of the deterministic loop, and the trace that tells two runs apart.

A `Step` is what `call_soon` and `call_at` hand out: one callback that runs at most once. It has a
*serial*, its place in the order in which steps were asked for, and a *lane*: the serial of the task
of which it is a step, or 0 for plain callbacks.

The `Trace` digests every step that ran (time, serial, lane), and whatever else is noted in it, such
as the bytes that arrive at a socket. Two runs that part ways anywhere have different digests.
With `keep`, every step is remembered with its name, and `first_difference` says where they parted.
No word of it is an address, a name from outside, or a hash of Python's, so digests of different
processes may be compared.
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
"""Of a word of the trace; the rest is the serial."""
_WORD_MASK = (1 << 64) - 1
NOT_WAITING = -1


class TimerOwner(Protocol):
    """Who counts timers that were taken back."""

    def timer_dropped(self) -> None:
        """One that still waits for its time was."""


class Step(asyncio.TimerHandle):
    """See the module's docstring. What asyncio's own handles keep in private is not used."""

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
        """While it waits for its time: when that is; then it has an `owner`."""
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
        """Whether it was taken back."""
        return self.dropped

    def when(self) -> float:
        """Seconds of the loop's time."""
        return self.due / 1e6

    def get_context(self) -> Context:
        """What it runs in."""
        return self.context

    def __hash__(self) -> int:
        return self.serial

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"<step {self.serial} of lane {self.lane}: {name_of(self.call)}>"


def name_of(call: Callable[..., Any] | None) -> str:
    """What a callback is, without its address: the same in every process."""
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
        """Digest what has gathered; so many steps are in it."""
        self.steps += steps
        if sys.byteorder == "big":
            self.words.byteswap()
        self._hash.update(self.words)
        del self.words[:]

    def note(self, time: Micros, value: int, what: str) -> None:
        """Something beside the steps that must be the same in every run."""
        self.words.append(time)
        self.words.append(value & _WORD_MASK)
        if self.rows is not None:
            self.rows.append(Row(time, 0, 0, f"{what} {value}"))

    @property
    def digest(self) -> str:
        """Of everything up to now."""
        self.settle()
        return self._hash.hexdigest()


class Difference(NamedTuple):
    """Where two runs parted: `place` counts rows from 0; None: that run was over."""

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
    """The first row in which two kept traces differ; None when they are equal.

    Rows that came through JSON, as lists, compare as well.
    """
    for place, (a, b) in enumerate(zip_longest(left, right)):
        ours, theirs = None if a is None else Row(*a), None if b is None else Row(*b)
        if ours != theirs:
            return Difference(place, ours, theirs)
    return None
