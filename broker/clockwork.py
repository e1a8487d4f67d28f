"""`Clockwork`: time, and when something is done, as the drivers of a node see it.

`Node`, `Runner`, `Syncer` and `Scheduler` never ask an event loop. They are handed a clockwork, of
which there are two: `AsyncioClockwork` here, and the simulator's, where time is virtual
(docs/decisions/0013). So what carries effects out is one piece of code under both.

Times are `Micros` of a monotonic clock, the wall clock tells ms since 1970.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Protocol, TypeAlias

from ottla.log.types import Millis
from ottla.raft.config import JitterSource
from ottla.raft.types import Micros, NodeId

Cancel: TypeAlias = Callable[[], None]
"""Takes back what was asked for; without effect once it happened."""


class Work(Protocol):
    """Something that runs beside the node."""

    async def wait(self) -> None:
        """Until it has ended, however it ended."""


class Clockwork(Protocol):
    """See the module's text. Everything is called back on the node's own thread."""

    def now(self) -> Micros:
        """Monotonic clock."""

    def wall_ms(self) -> Millis:
        """Wall clock."""

    def call_soon(self, call: Callable[[], None], /) -> object:
        """Run `call` when what runs now is through, in the order asked for."""

    def call_at(self, when: Micros, call: Callable[[], None]) -> Cancel:
        """Run `call` at `when`, or soon if that is past."""

    def work(self, work: Callable[[], None], ended: Callable[[str | None], None]) -> Work:
        """Run `work`, which may block, beside the node; then `ended(None)` here.

        `work` keeps its own errors; `ended` is told what else kept it from ending.
        """


MakeClockwork: TypeAlias = Callable[[Executor | None], Clockwork]
"""A clockwork whose `work` runs in that executor (None: wherever it likes)."""


def monotonic_micros() -> Micros:
    """The clock of all deadlines of a process."""
    return time.monotonic_ns() // 1000


def election_jitter(seed: int | None, node: NodeId) -> JitterSource:
    """Where a node's election timeouts come from: repeatable when the cluster has a seed."""
    return random.Random(None if seed is None else seed * 1009 + node)


class _Running:
    """Work in an executor."""

    __slots__ = ("_future",)

    def __init__(self, future: asyncio.Future[None]):
        self._future = future

    async def wait(self) -> None:
        """Until it has ended, however it ended."""
        await asyncio.wait((self._future,))


class AsyncioClockwork:
    """Real time on an event loop; `writer` runs what blocks (None: the loop's own executor)."""

    def __init__(self, loop: asyncio.AbstractEventLoop, writer: Executor | None = None):
        self._loop = loop
        self._writer = writer
        self.call_soon = loop.call_soon
        self.now = monotonic_micros

    def wall_ms(self) -> Millis:
        """Wall clock, ms since 1970."""
        return time.time_ns() // 1_000_000

    def call_at(self, when: Micros, call: Callable[[], None]) -> Cancel:
        """Run `call` at `when`, or soon if that is past."""
        return self._loop.call_later(max(0, when - monotonic_micros()) / 1e6, call).cancel

    def work(self, work: Callable[[], None], ended: Callable[[str | None], None]) -> Work:
        """Run `work` in the executor."""
        running = self._loop.run_in_executor(self._writer, work)
        running.add_done_callback(lambda done: ended(_broken(done)))
        return _Running(running)


def real_time(writer: Executor | None) -> AsyncioClockwork:
    """`MakeClockwork` of the running loop."""
    return AsyncioClockwork(asyncio.get_running_loop(), writer)


def _broken(running: asyncio.Future[None]) -> str | None:
    """What kept work from ending by itself."""
    if running.cancelled():
        return "cancelled"
    error = running.exception()
    return None if error is None else repr(error)
