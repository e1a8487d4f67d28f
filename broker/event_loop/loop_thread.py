"""`LoopThread`: an event loop in a thread of its own, for callers that block.

The thread runs `start`, then the work that `call` hands over, and `stop` when it is asked to end.
An interrupt (Ctrl-C, a test's timeout) may hit the caller between any two steps. So the caller owns
nothing. Any thread may call `end`, any number of times, and wait. The thread cleans up by itself,
even if nobody waits any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeAlias, TypeVar, cast

from ottla.broker.errors import NodeStateError
from ottla.broker.event_loop.loops import new_event_loop
from ottla.broker.event_loop.native import Latch, NativeThread, interpreter_ends, make_lock

Result = TypeVar("Result")
Step = Callable[[], Coroutine[object, None, None]]

STOPPED = "the cluster was stopped meanwhile"
ENDING = (
    "the interpreter is ending, and the cluster's thread has stopped; stop the cluster before that"
)


class LoopThread:
    """See the module's docstring. One life: it is started once."""

    def __init__(self, start: Step, stop: Step):
        self._start = start
        self._stop = stop
        self._thread = NativeThread(self._run, "ottla")
        self._lock = make_lock()
        self._begun = False
        self._left = False
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop, while it takes calls; None before and after."""
        self._leave: Callable[[], None] = _nothing
        self._calls: dict[_AnyCall, None] = {}
        self._started = Latch()
        self._error: BaseException | None = None
        """The error of a start or a stop that failed."""

    def run(self) -> None:
        """Start the thread, and wait until `start` is done. Raises what `start` raised."""
        _refuse_at_the_end()
        self._thread.start()
        self._started.wait()
        error, self._error = self._error, None
        if error is not None:
            raise error
        if self._left:
            raise NodeStateError(STOPPED)

    def end(self) -> None:
        """Ask the thread to end, and wait for that. The first caller gets the error that `stop`
        raised. If the interpreter is ending, the thread is frozen, and nobody waits for it."""
        with self._lock:
            self._left = True
            begun, loop = self._begun, self._loop
            if loop is not None:
                loop.call_soon_threadsafe(self._leave)
        if begun:
            self._thread.join()
            error, self._error = self._error, None
            if error is not None:
                raise error

    def call(self, work: Callable[[], Coroutine[object, None, Result]]) -> Result:
        """Run `work` on the loop. Raises what it raises, or `NodeStateError` if the thread or the
        interpreter ends.

        The loop's thread makes the coroutine. So an interrupt of the caller leaves no coroutine
        that nobody awaits.
        """
        _refuse_at_the_end()
        call = _Call(work)
        try:
            if not self._submit(call):
                raise NodeStateError(STOPPED)
            call.over.wait()
            return call.result()
        finally:
            self._let_go(call)

    def _submit(self, call: _AnyCall) -> bool:
        with self._lock:
            if self._loop is not None:
                self._calls[call] = None
                self._loop.call_soon_threadsafe(call.begin, self._loop)
            return self._loop is not None

    def _let_go(self, call: _AnyCall) -> None:
        """Forget a call for which nobody waits any more: an interrupt came at some step."""
        with self._lock:
            self._calls.pop(call, None)
            if self._loop is None:
                call.fail()
            elif not call.over.is_set:
                self._loop.call_soon_threadsafe(call.cancel)

    # --- in the thread --------------------------------------------------------------------------

    def _run(self) -> None:
        with self._lock:
            self._begun = not self._left
        try:
            if self._begun:
                with asyncio.Runner(loop_factory=new_event_loop) as runner:
                    runner.run(self._live())
        except BaseException as error:  # noqa: BLE001 - told to whoever waits, whatever it is
            self._error = error
        finally:
            with self._lock:
                self._loop = None
                calls, self._calls = self._calls, {}
            for call in calls:
                call.fail()
            self._started.set()

    async def _live(self) -> None:
        loop = asyncio.get_running_loop()
        leave = asyncio.Event()
        starting = loop.create_task(self._start())

        def asked_to_leave() -> None:
            leave.set()
            starting.cancel()

        with self._lock:
            self._leave, self._loop = asked_to_leave, loop
            left = self._left
        if left:
            asked_to_leave()
        try:
            await starting
            self._started.set()
            await leave.wait()
            await self._stop()
        except asyncio.CancelledError:
            pass  # `end` came during the start, and the start has undone itself
        finally:
            with self._lock:  # The loop closes next: nobody may call into it any more.
                self._loop = None


class _Call(Generic[Result]):
    """Work that somebody in another thread waits for."""

    def __init__(self, work: Callable[[], Coroutine[object, None, Result]]):
        self.over = Latch()
        self._work = work
        self._task: asyncio.Task[Result] | None = None
        self._cancelled = False
        self._error: BaseException | None = None
        self._result: Result | None = None

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the work. Called on the loop."""
        if self._cancelled:
            return
        self._task = loop.create_task(self._work())
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Result]) -> None:
        if task.cancelled():
            self._error = NodeStateError(STOPPED)
        elif (error := task.exception()) is not None:
            self._error = error
        else:
            self._result = task.result()
        self.over.set()

    def cancel(self) -> None:
        """Cancel the work, because nobody waits any more. Called on the loop."""
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()

    def fail(self) -> None:
        """Fail the call: the loop has ended, and the work with it."""
        if not self.over.is_set:
            self._error = NodeStateError(STOPPED)
            self.over.set()

    def result(self) -> Result:
        """The result of the work; raises its error."""
        if self._error is not None:
            raise self._error
        return cast(Result, self._result)


_AnyCall: TypeAlias = _Call[Any]  # calls with whatever results wait side by side


def _refuse_at_the_end() -> None:
    if interpreter_ends():
        raise NodeStateError(ENDING)


def _nothing() -> None:
    """Do nothing: there is no task to cancel yet."""
