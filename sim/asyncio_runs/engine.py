"""The engine of the deterministic loop: virtual time, steps, and what ends a run early.

Time is whole microseconds from 0 and moves only when no step is ready: then it jumps to the next
timer. Timers of the same time run in the order in which they were made. A timer whose time is not
in the future is ready at once. Which of the ready steps runs next is decided by the policy.

A `Failure` is something that asyncio would only log: a callback that raises, a task whose exception
nobody retrieves, a refusal that was swallowed. It stops the engine after the step that caused it.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from asyncio.events import _set_running_loop
from collections.abc import Callable
from contextvars import Context, copy_context
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple, TypeVarTuple

from ottla.raft.types import Micros
from ottla.sim.asyncio_runs.policies import Queue
from ottla.sim.asyncio_runs.refusals import Refusals
from ottla.sim.asyncio_runs.steps import LANE_BITS, NOT_WAITING, Row, Step, Trace, name_of
from ottla.sim.asyncio_runs.tasks import SerialTask
from ottla.sim.chance.outside import RefusedError

Args = TypeVarTuple("Args")

BURST = 4096
"""Steps between two checks of what need not be checked at every step."""
STANDSTILL = 1_000_000
"""After this many steps at one time, time is taken to stand still for ever."""
PRUNE_FROM = 1000
_OF_TASKS = (None, "task_wakeup")
"""Names of the callbacks that resume CPython's tasks; other methods of tasks are plain
callbacks."""


class Failure(NamedTuple):
    """Something that must not happen in a good run."""

    time: Micros
    steps: int
    """Steps that ran before the burst in which it happened."""
    message: str
    exception: BaseException | None

    def __str__(self) -> str:
        said = f": {self.exception!r}" if self.exception is not None else ""
        return f"at {self.time} us: {self.message}{said}"


class RunFailedError(Exception):
    """Something failed without any caller that gets the error; `failures` in order."""

    def __init__(self, failures: list[Failure]):
        super().__init__("\n".join(map(str, failures)))
        self.failures = failures


class DeadlockError(Exception):
    """No step is ready, no timer is set, and the run is not over."""


class LivelockError(Exception):
    """The run goes on and makes no progress: time stands still, or has passed every limit."""


class Engine(Refusals):
    """See the module's docstring."""

    def __init__(self, queue: Queue, trace: Trace, until: Micros, collect_every: int):
        self.trace = trace
        self.until = until
        """Virtual time at which the run is given up."""
        self.failures: list[Failure] = []
        self.noticed = self._refused
        self._collect_every = collect_every
        """Number of steps after which the garbage collector runs; 0: when CPython does."""
        self._collected = 0
        self._queue = queue
        self._timers: list[tuple[Micros, int, Step]] = []
        self._dropped = 0
        """Timers that were cancelled and are still in the heap."""
        self._now: Micros = 0
        self._serials = 0
        self._standing = 0
        """Steps since time last moved."""
        self._thread: int | None = None
        """The thread that runs the loop now."""
        self._stopping = False
        self._ending = False
        """Whether failures are only recorded and no longer stop the run."""
        self._closed = False
        self._handler: Any = None
        self._debug = False

    # ---- time

    def now(self) -> Micros:
        """Virtual time."""
        return self._now

    def time(self) -> float:
        """Virtual time in seconds."""
        return self._now / 1e6

    # ---- callbacks

    def call_soon(
        self, callback: Callable[[*Args], object], *args: *Args, context: Context | None = None
    ) -> Step:
        """Make a step that is ready now."""
        step = self._step(callback, args, context)
        self._queue.push(step)
        return step

    def call_at(
        self,
        when: float,
        callback: Callable[[*Args], object],
        *args: *Args,
        context: Context | None = None,
    ) -> Step:
        """Make a step that is ready at `when`, in seconds of `time()`."""
        return self.call_at_micros(round(when * 1e6), callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Args], object],
        *args: *Args,
        context: Context | None = None,
    ) -> Step:
        """Make a step that is ready in `delay` seconds; any delay above 0 takes at least a
        microsecond."""
        span = max(1, round(delay * 1e6)) if delay > 0 else 0
        return self.call_at_micros(self._now + span, callback, *args, context=context)

    def call_at_micros(
        self,
        when: Micros,
        callback: Callable[[*Args], object],
        *args: *Args,
        context: Context | None = None,
    ) -> Step:
        """Make a step that is ready at `when`, in microseconds of `now()`; at once if that is not
        in the future."""
        step = self._step(callback, args, context)
        if when <= self._now:
            self._queue.push(step)
        else:
            step.due, step.owner = when, self
            heappush(self._timers, (when, step.serial, step))
        return step

    def call_soon_threadsafe(
        self, callback: Callable[[*Args], object], *args: *Args, context: Context | None = None
    ) -> Step:
        """As `call_soon`; refused if another thread calls it."""
        if self._thread is not None and self._thread != threading.get_ident():
            raise self.refuse("call_soon_threadsafe from another thread")
        return self.call_soon(callback, *args, context=context)

    def _step(self, callback: Any, args: tuple[Any, ...], context: Context | None) -> Step:
        self._check_open()
        self._serials = serial = self._serials + 1
        lane = 0
        task = getattr(callback, "__self__", None)
        if type(task) is SerialTask:
            if getattr(callback, "__name__", None) in _OF_TASKS:
                lane = task.serial
        elif isinstance(task, asyncio.Task):
            raise self.refuse("a task that the loop did not make (use create_task)")
        return Step(serial, lane, callback, args, copy_context() if context is None else context)

    def timer_dropped(self) -> None:
        """A timer was cancelled. When most timers in the heap are cancelled, they are removed."""
        self._dropped += 1
        if self._dropped > PRUNE_FROM and 2 * self._dropped > len(self._timers):
            self._timers = [each for each in self._timers if not each[2].dropped]
            heapify(self._timers)
            self._dropped = 0

    # ---- the run

    def run_forever(self) -> None:
        """Run until `stop`. Raises `DeadlockError` and `LivelockError`."""
        self._check_open()
        if self._thread is not None:
            raise RuntimeError("This event loop is already running")
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=self._generator_began, finalizer=self._generator_dropped)
        _set_running_loop(self)
        self._thread = threading.get_ident()
        try:
            if self._stopping:  # As asyncio: only what is ready now still runs.
                self._stopping = False
                self._burst(len(self._queue), jump=False)
            else:
                while not self._stopping:
                    self._burst(BURST)
        finally:
            self._stopping = False
            self._thread = None
            _set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    def _generator_began(self, generator: Any) -> None:
        raise NotImplementedError

    def _generator_dropped(self, generator: Any) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        """Stop after the present step."""
        self._stopping = True

    def is_running(self) -> bool:
        """Whether it runs."""
        return self._thread is not None

    def is_closed(self) -> bool:
        """Whether it is closed."""
        return self._closed

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Event loop is closed")

    def _burst(self, limit: int, *, jump: bool = True) -> None:
        """Run up to `limit` steps."""
        queue, trace, began = self._queue, self.trace, self._now
        take, note, rows = queue.take, trace.words.append, trace.rows
        done = 0
        try:
            while done < limit and (queue or (jump and self._jump())):
                step = take()
                if step.dropped:
                    continue
                note(self._now)
                note(step.serial << LANE_BITS | step.lane)
                done += 1
                if rows is not None:
                    rows.append(Row(self._now, step.serial, step.lane, name_of(step.call)))
                try:
                    step.context.run(step.call, *step.args)  # type: ignore[arg-type] # not dropped
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # noqa: BLE001 - whatever it is, it fails the run
                    self.fail(f"{name_of(step.call)} raised", error)
                if self._stopping:
                    break
        finally:
            trace.settle(done)
        self._look(done, stood=self._now == began)

    def _jump(self) -> bool:
        """No step is ready: time jumps to the next timer."""
        timers, queue = self._timers, self._queue
        while timers and timers[0][2].dropped:
            heappop(timers)
            self._dropped -= 1
        if not timers:
            raise DeadlockError(f"nothing is ready and no timer is set: {self.waiting()}")
        self._now = now = timers[0][0]
        if now > self.until:
            raise LivelockError(f"virtual time has passed {self.until} us: {self.waiting()}")
        while timers and timers[0][0] == now:
            step = heappop(timers)[2]
            step.due = NOT_WAITING
            queue.push(step)
        return True

    def _look(self, done: int, *, stood: bool) -> None:
        """The checks between two bursts."""
        self._collected += done
        if self._collect_every and self._collected >= self._collect_every:
            self._collected = 0
            gc.collect()
        if not stood:
            if self._standing:
                self._queue.rested()
            self._standing = 0
            return
        self._standing += done
        if self._standing >= BURST:
            self._queue.weary()
        if self._standing > STANDSTILL:
            raise LivelockError(
                f"time stands still at {self._now} us after {STANDSTILL} steps: {self.waiting()}"
            )

    def waiting(self) -> str:
        """The tasks that have not ended, and where they wait, in words."""
        raise NotImplementedError

    # ---- failures

    def fail(self, message: str, error: BaseException | None) -> None:
        """Record a failure of the run."""
        if self.failures and error is not None and self.failures[-1].exception is error:
            return
        self.failures.append(Failure(self._now, self.trace.steps, message, error))
        if not self._ending:
            self._stopping = True

    def _refused(self, error: RefusedError) -> None:
        self.fail("refused", error)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """asyncio and its users report here what no caller will get: it fails the run."""
        message = context.get("message", "no message")
        task = context.get("task") or context.get("future")
        if isinstance(task, SerialTask):
            message = f"{message} ({task.where()})"
        self.fail(message, context.get("exception"))
        if self._handler is not None:
            self._handler(self, context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """A handler of the program may call this: the failure is recorded already."""

    def set_exception_handler(self, handler: Callable[..., Any] | None) -> None:
        """The handler is called, but what it gets fails the run anyway."""
        self._handler = handler

    def get_exception_handler(self) -> Any:
        """The program's own handler."""
        return self._handler

    def get_debug(self) -> bool:
        """asyncio's debug mode."""
        return self._debug

    def set_debug(self, enabled: bool) -> None:
        """asyncio's debug mode: tasks remember where they were made."""
        self._debug = enabled
