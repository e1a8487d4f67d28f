"""`Lifecycle`: the start and the stop of something on an event loop, safe against interruption.

A start may fail, or be cancelled at any await, or a stop may come while it runs. A stop may be
called twice, by two callers at once, or be cancelled while it waits. So there is one state, from
the first step of a start to the last step of a stop. Each runs in a task of its own: if the caller
that waits is cancelled, the task goes on.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine

from ottla.broker.errors import NodeStateError
from ottla.broker.event_loop.loops import Lease

NOT_OURS = (
    "the cluster belongs to the parent process, which forked this one; make a new cluster here"
)
LOOP_CLOSED = (
    "the event loop was closed while the cluster ran: the cluster can neither go on nor stop; "
    "leave `async with` before the loop is closed, and make a new cluster"
)
Begin = Callable[[asyncio.AbstractEventLoop], Coroutine[object, None, None]]
End = Callable[[], Coroutine[object, None, None]]


class Lifecycle:
    """See the module's docstring. `end` undoes whatever `begin` has done so far."""

    def __init__(self, begin: Begin, end: End):
        self._begin = begin
        self._end = end
        self._process = 0
        """The id of the process that started it last."""
        self._lease: Lease | None = None
        """Set from the beginning of a start to the end of a stop."""
        self._starting: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None

    @property
    def begun(self) -> bool:
        """A start has begun, and no stop has ended."""
        return self._lease is not None

    def check_ours(self) -> None:
        """Raises `NodeStateError` in a forked child of the process that started it."""
        if self._lease is not None and self._process != os.getpid():
            raise NodeStateError(NOT_OURS)

    async def start(self) -> None:
        """Run `begin`. If it fails, undo everything, then raise its error. Raises `NodeStateError`
        if it runs already, or was stopped meanwhile."""
        if self._lease is not None:
            self.check_ours()
            if self._lease.loop_closed:
                raise NodeStateError(LOOP_CLOSED)
            raise NodeStateError("the cluster runs already; stop it before it starts again")
        try:
            loop = asyncio.get_running_loop()
            self._process = os.getpid()
            self._lease = Lease(loop)
            self._starting = loop.create_task(self._begin(loop))
            await self._starting
        except BaseException as error:
            stopped = self._stopping is not None
            await self.stop()
            if stopped and isinstance(error, asyncio.CancelledError):
                raise NodeStateError("the cluster was stopped while it started") from None
            raise

    async def stop(self) -> None:
        """Run `end`, once, and return when it is done. Does nothing before a start, or in a forked
        child, which owns nothing of it. Raises `NodeStateError` if its loop was closed before."""
        if self._lease is None or self._process != os.getpid():
            return
        if self._lease.loop_closed:
            raise NodeStateError(LOOP_CLOSED)
        if self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        try:
            try:
                if self._starting is not None and not self._starting.done():
                    self._starting.cancel()
                    await asyncio.wait({self._starting})
            finally:
                await self._end()
        finally:
            if self._lease is not None:
                self._lease.end()
            self._lease = self._starting = self._stopping = None
