"""`Clockwork`: the time, timers and background work that a node's drivers use.

`Node`, `Runner`, `Syncer` and `Scheduler` never use an event loop directly. They get a clockwork.
There are two: `AsyncioClockwork` here, and the simulator's, where time is virtual
(docs/decisions/0013). So the same code carries effects out under both.

Times are `Micros` of a monotonic clock. The wall clock tells ms since 1970. In real time both are
the machine's own clocks. Clocks that a test has patched are not used (`native.py`), because a
broker in another process would not see the patch either. `RunningClock` does not count the time in
which the process did not run.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeAlias

from ottla.broker.event_loop.native import Writer, monotonic_micros, wall_ns
from ottla.log.types import Millis
from ottla.raft.config import JitterSource
from ottla.raft.types import Micros, NodeId

ROUNDING: Micros = 2_000
"""A loop may call a timer this much too early."""

GRAINS = 8
"""An election timeout is this many grains of a `RunningClock`."""
SHORTEST_GRAIN: Micros = 5_000

Cancel: TypeAlias = Callable[[], None]
"""Cancels the call that was asked for; no effect if it has happened."""


class Work(Protocol):
    """Work that runs beside the node."""

    async def wait(self) -> None:
        """Wait until the work has ended, with or without an error."""


class Clockwork(Protocol):
    """See the module's docstring. All callbacks run on the node's own thread."""

    def now(self) -> Micros:
        """The monotonic clock, in microseconds."""

    def wall_ms(self) -> Millis:
        """The wall clock, in ms since 1970."""

    def call_soon(self, call: Callable[[], None], /) -> object:
        """Run `call` after the present callback; calls run in the order of these requests."""

    def call_at(self, when: Micros, call: Callable[[], None]) -> Cancel:
        """Run `call` at `when`, or soon if that is past."""

    def work(self, work: Callable[[], None], ended: Callable[[str | None], None]) -> Work:
        """Run `work`, which may block, beside the node. Then call `ended(None)` on this thread.

        `work` handles its own errors. If it raises all the same, `ended` gets the error as a text.
        """


MakeClockwork: TypeAlias = Callable[[Writer | None], Clockwork]
"""Makes a clockwork whose `work` runs in the given thread."""


def election_jitter(seed: int | None, node: NodeId) -> JitterSource:
    """Where a node's election timeouts come from: repeatable when the cluster has a seed."""
    return random.Random(None if seed is None else seed * 1009 + node)


class RunningClock:
    """The time during which an event loop ran: `MakeClockwork` for nodes that share that loop.

    A process that was stopped, or a loop that something blocked, receives no messages in that time.
    By the machine's clock every leader would have been silent for that long, every follower out of
    sync, every client too late. So this clock counts only one *grain* of such a span. A node that
    wakes late continues at the time when it stopped, handles the waiting messages first, and only
    then decides who was silent.

    The clock has a timer, which is due every grain. If the time is read and the timer has been due
    for more than a grain, the loop did not run. A loop that is only busy is not that late.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, grain: Micros):
        self.loop = loop
        self._grain = grain
        self._lost: Micros = 0
        """Time that this clock has left out so far."""
        self._late_at: Micros = sys.maxsize
        """If the timer has not rung by this time, the loop is late."""
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    def fit_for(cls, loop: asyncio.AbstractEventLoop, election_timeout_ms: int) -> RunningClock:
        """A clock whose grain is small enough for this election timeout."""
        return cls(loop, max(SHORTEST_GRAIN, election_timeout_ms * 1000 // GRAINS))

    def __call__(self, writer: Writer | None) -> AsyncioClockwork:
        """A clockwork with this clock; `writer` runs its `work`."""
        if self._timer is None:
            self._ring()
        return AsyncioClockwork(self, writer)

    def now(self) -> Micros:
        """Microseconds; never goes back."""
        at = monotonic_micros() - self._lost
        return at if at < self._late_at else self._woke_late(at)

    def _woke_late(self, at: Micros) -> Micros:
        counted = self._late_at
        self._lost += at - counted
        self._late_at = counted + 2 * self._grain
        return counted

    def _ring(self) -> None:
        self._late_at = self.now() + 2 * self._grain
        self._timer = self.loop.call_later(self._grain / 1e6, self._ring)

    def stop(self) -> None:
        """Stop the timer: nobody reads the clock any more."""
        self._late_at = sys.maxsize
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class AsyncioClockwork:
    """Real time on an event loop; `writer` runs what blocks (None: nothing does)."""

    def __init__(self, clock: RunningClock, writer: Writer | None = None):
        self._loop = clock.loop
        self._writer = writer
        self.call_soon = clock.loop.call_soon
        self.now = clock.now

    def wall_ms(self) -> Millis:
        """Wall clock, ms since 1970."""
        return max(0, wall_ns() // 1_000_000)

    def call_at(self, when: Micros, call: Callable[[], None]) -> Cancel:
        """Run `call` at `when`, or soon if that is past."""
        return _Timer(self._loop, self.now, when, call).cancel

    def work(self, work: Callable[[], None], ended: Callable[[str | None], None]) -> Work:
        """Run `work` in the writer's thread."""
        assert self._writer is not None, "work for a node without a writer"
        running = _Running(self._loop, work, ended)
        self._writer.run_soon(running.run)
        return running


class _Timer:
    """A call at a time of a clock that may be behind the loop's own clock.

    After the call it drops its references. The timer and its handle refer to each other, and the
    function that it calls often refers to the timer. Only a full garbage collection would free
    such a cycle.
    """

    __slots__ = ("_call", "_handle", "_loop", "_now", "_when")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        now: Callable[[], Micros],
        when: Micros,
        call: Callable[[], None],
    ):
        self._loop = loop
        self._now = now
        self._when = when
        self._call = call
        self._handle: asyncio.TimerHandle | None = loop.call_later(
            max(0, when - now()) / 1e6, self._ring
        )

    def _ring(self) -> None:
        left = self._when - self._now()
        if left > ROUNDING:
            self._handle = self._loop.call_later(left / 1e6, self._ring)
        else:
            call, self._call, self._handle = self._call, _nothing, None
            call()

    def cancel(self) -> None:
        """Do not call."""
        if self._handle is not None:
            self._handle.cancel()
            self._call, self._handle = _nothing, None


def _nothing() -> None:
    """The call of a timer that is over: it does nothing."""


class _Running:
    """Work that runs in a writer's thread. Only `run` is called there; all else is the loop's."""

    __slots__ = ("_ended", "_loop", "_over", "_work")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Callable[[], None],
        ended: Callable[[str | None], None],
    ):
        self._loop = loop
        self._work = work
        self._ended = ended
        self._over: asyncio.Future[None] = loop.create_future()

    def run(self) -> None:
        """Do the work, in the writer's thread."""
        broken = None
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - `work` keeps its own; this is a broken one
            broken = repr(error)
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            self._loop.call_soon_threadsafe(self._end, broken)

    def _end(self, broken: str | None) -> None:
        if not self._over.done():
            self._over.set_result(None)
        self._ended(broken)

    async def wait(self) -> None:
        """Wait until the work has ended, with or without an error."""
        await asyncio.wait((self._over,))
