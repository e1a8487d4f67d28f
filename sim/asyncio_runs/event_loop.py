"""A deterministic asyncio event loop: virtual time, and an order that follows from the seed alone.

It runs real asyncio programs (the broker's server, real Python clients) so that a run can be done
again: in another process, with another PYTHONHASHSEED, another heap, behind other runs.

**Time and steps** are the engine's (`ottla.sim.asyncio_runs.engine`).

**Order** is decided by a policy (`ottla.sim.asyncio_runs.policies`), which draws from the stream
"schedule" of the run's choices, and by nothing else: tasks and futures are numbered
(`ottla.sim.asyncio_runs.tasks`), async generators are remembered in the order in which they began,
and with `collect_every` the collector of garbage runs after so many steps, not when memory is
short.

**Nothing gets lost.** Whatever asyncio would log and go on stops the run, and `run_until_complete`
raises `RunFailedError`. Nothing ready and no timer is a `DeadlockError` that says who waits where;
time that does not move for a million steps, or passes `until`, a `LivelockError`.

**What no seed decides** is refused (`ottla.sim.asyncio_runs.refusals`). Executors run what they are
given inline, as a step. Connections are the business of `network`, if there is one.

**The end** is `shutdown`: tasks are cancelled in the order in which they were made, then async
generators closed in the order in which they began, then exceptions looked for that nobody asked
for. `ottla.sim.asyncio_runs.run` does all of it, from seed to digest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any, TypeVar
from weakref import ReferenceType, WeakKeyDictionary, ref

from ottla.raft.types import Micros
from ottla.sim.asyncio_runs.engine import (
    PRUNE_FROM,
    Args,
    DeadlockError,
    Engine,
    LivelockError,
    RunFailedError,
)
from ottla.sim.asyncio_runs.policies import Policy, fifo
from ottla.sim.asyncio_runs.steps import Trace
from ottla.sim.asyncio_runs.tasks import Hold, SerialFuture, SerialTask, made_by_as_completed
from ottla.sim.chance.choices import Choices, Drawn

Result = TypeVar("Result")

HOUR: Micros = 3_600_000_000
SHUTDOWN_SECONDS = 60.0
"""Virtual: how long a task may take that is told to end."""
SHUTDOWN_ROUNDS = 3
NAMED = 10
"""Tasks that an error names."""


class DeterministicLoop(Engine):
    """See the module's docstring. `choices` may be a seed."""

    def __init__(
        self,
        choices: Choices | int = 0,
        *,
        policy: Policy = fifo,
        keep_trace: bool = False,
        until: Micros = HOUR,
        collect_every: int = 0,
    ):
        self.choices = Drawn(choices) if isinstance(choices, int) else choices
        queue = policy(self.choices.stream("schedule"))
        super().__init__(queue, Trace(keep=keep_trace), until, collect_every)
        self.network: Any = None
        """Makes connections and servers, if it is there."""
        self._ids = 0
        self._tasks: list[ReferenceType[SerialTask]] = []
        self._prune_at = PRUNE_FROM
        self._generators: WeakKeyDictionary[Any, None] = WeakKeyDictionary()
        """Async generators that have begun."""
        self._unheld: dict[Any, None] = {}
        """Those that nobody holds any more, but for this, until each begins to be closed."""
        self._awaited: Any = None
        """With its end the loop stops."""
        self._hold = Hold()

    # ---- futures and tasks

    def next_id(self) -> int:
        """The next number of a task or future, from 1."""
        self._ids += 1
        return self._ids

    def create_future(self) -> SerialFuture:
        """A future with a number."""
        future = SerialFuture(loop=self)
        future.serial = self.next_id()
        return future

    def create_task(
        self,
        coro: Any,
        *,
        name: str | None = None,
        context: Context | None = None,
        eager_start: bool | None = None,
    ) -> SerialTask:
        """A task with a number."""
        self._check_open()
        if made_by_as_completed() or eager_start:
            coro.close()
            why = "an eager task" if eager_start else "as_completed on coroutines (give it tasks)"
            raise self.refuse(why)
        task = SerialTask(coro, self, self.next_id(), name=name, context=context)
        self._tasks.append(ref(task))
        if len(self._tasks) > self._prune_at:
            self._tasks = [ref(each) for each in self.tasks() if not each.done() or each.failed]
            self._prune_at = PRUNE_FROM + 2 * len(self._tasks)
        return task

    def tasks(self) -> list[SerialTask]:
        """Tasks that somebody still knows, in the order in which they were made."""
        return [task for each in self._tasks if (task := each()) is not None]

    def set_task_factory(self, factory: Any) -> None:
        """Tasks are made by the loop alone."""
        if factory is not None:
            raise self.refuse("set_task_factory")

    def get_task_factory(self) -> None:
        """There is none."""

    def run_in_executor(
        self, executor: Any, func: Callable[[*Args], Result], *args: *Args
    ) -> asyncio.Future[Result]:
        """Run it inline, as a step; what it does takes no time."""
        future = self.create_future()
        self.call_soon(_run_inline, future, func, args)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """There is none."""

    # ---- connections

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any
    ) -> Any:
        """Through `network`."""
        if self.network is None:
            raise self.refuse("create_connection without a network")
        return await self.network.create_connection(protocol_factory, host, port, **options)

    async def create_server(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any
    ) -> Any:
        """On `network`."""
        if self.network is None:
            raise self.refuse("create_server without a network")
        return await self.network.create_server(protocol_factory, host, port, **options)

    # ---- async generators

    def _generator_began(self, generator: Any) -> None:
        self._generators[generator] = None

    def _generator_dropped(self, generator: Any) -> None:
        self._generators.pop(generator, None)
        if not self._closed:
            self._unheld[generator] = None
            self.call_soon(self._begin_to_close, generator)

    def _begin_to_close(self, generator: Any) -> None:
        self.create_task(self._close_dropped(generator))

    async def _close_dropped(self, generator: Any) -> None:
        # Cancelled before it begins, this leaves the generator to `shutdown_asyncgens`. A bare
        # `aclose()` would be thrown into, of which CPython 3.13 makes something else than 3.11.
        self._unheld.pop(generator, None)
        await generator.aclose()

    async def shutdown_asyncgens(self) -> None:
        """Close what is open, one after the other: who was dropped, in that order, and the others
        in the order in which they began."""
        while self._unheld or self._generators:
            waiting = self._unheld or self._generators
            generator = next(iter(waiting.keys()))
            del waiting[generator]
            try:
                await generator.aclose()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
                self.fail("an async generator failed as it was closed", error)

    # ---- the run

    def run_until_complete(self, future: Any) -> Any:
        """Run until it is done. Raises `RunFailedError` when something else failed meanwhile."""
        known = len(self.failures)
        task = self._awaited = asyncio.ensure_future(future, loop=self)
        task.add_done_callback(self._over)
        try:
            self.run_forever()
        finally:
            task.remove_done_callback(self._over)
            self._awaited = None
        if len(self.failures) > known:
            ended = task.done() and not task.cancelled()
            raise RunFailedError(self.failures[known:]) from (task.exception() if ended else None)
        if not task.done():
            raise RuntimeError("Event loop stopped before Future completed.")
        return task.result()

    def _over(self, ended: Any) -> None:
        if ended is self._awaited:  # A run that failed leaves this behind for the next one.
            self.stop()

    def waiting(self) -> str:
        """Who has not ended and where it waits, in words."""
        pending = [each.where() for each in self.tasks() if not each.done()]
        more = f"; and {len(pending) - NAMED} more" if len(pending) > NAMED else ""
        return ("; ".join(pending[:NAMED]) or "no task is left") + more

    def shutdown(self) -> None:
        """End everything, in order; see the module's docstring. Raises nothing: look at
        `failures`."""
        self._ending = True
        self.until = self._now + round(2e6 * SHUTDOWN_SECONDS * SHUTDOWN_ROUNDS)
        for _ in range(SHUTDOWN_ROUNDS):
            pending = [each for each in self.tasks() if not each.done()]
            if not pending:
                break
            for task in pending:
                task.cancel()
            self._drive(_ended(pending))
        for task in self.tasks():
            if not task.done():
                self.fail(f"does not end when it is cancelled: {task.where()}", None)
        self._drive(self.shutdown_asyncgens())
        for task in self.tasks():
            error = task.failed
            if error is not None:
                task.exception()
                self.fail(f"nobody asked what became of {task.get_name()}", error)

    def _drive(self, last: Any) -> None:
        """Run something of the end until it is done."""
        task = self._awaited = self.create_task(last)
        task.add_done_callback(self._over)
        try:
            while not task.done():
                self.run_forever()
        except (DeadlockError, LivelockError) as error:
            self.fail("the end does not come", error)

    def close(self) -> None:
        """It is over for good."""
        if self.is_running():
            raise RuntimeError("Cannot close a running event loop")
        if not self._closed:
            self._closed = True
            self._hold.release()
            self._timers.clear()
            while self._queue:
                self._queue.take()


async def _ended(tasks: list[SerialTask]) -> None:
    await asyncio.wait(tasks, timeout=SHUTDOWN_SECONDS)


def _run_inline(future: SerialFuture, func: Any, args: tuple[Any, ...]) -> None:
    if future.cancelled():
        return
    try:
        result = func(*args)
    except Exception as error:  # noqa: BLE001 - it is the caller's
        future.set_exception(error)
    else:
        future.set_result(result)
