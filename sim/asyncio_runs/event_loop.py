"""A deterministic asyncio event loop: virtual time, and an order that follows only from the seed.

It runs real asyncio programs (the broker's server, real Python clients) so that a run can be
repeated: in another process, with another PYTHONHASHSEED, another heap, after other runs.

**Time and steps** are the engine's (`ottla.sim.asyncio_runs.engine`).

**Order** is decided only by a policy (`ottla.sim.asyncio_runs.policies`), which draws from the
stream "schedule" of the run's choices. So tasks and futures are numbered
(`ottla.sim.asyncio_runs.tasks`), async generators are kept in the order in which they began, and
with `collect_every` the garbage collector runs after so many steps, not when memory is short.

**No error is lost.** Whatever asyncio would only log stops the run, and `run_until_complete` raises
`RunFailedError`. If no step is ready and no timer is set, it raises a `DeadlockError` that says
which task waits where. If time does not move for a million steps, or passes `until`, it raises a
`LivelockError`.

**What no seed decides** is refused (`ottla.sim.asyncio_runs.refusals`). Executors run their calls
inline, as a step. `network`, if there is one, makes connections.

**The end** is `shutdown`: tasks are cancelled in the order in which they were made, then async
generators are closed in the order in which they began, then exceptions that nobody retrieved are
reported. `ottla.sim.asyncio_runs.run` does all of it, from seed to digest.
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
"""In virtual time: how long a cancelled task may take to end."""
SHUTDOWN_ROUNDS = 3
NAMED = 10
"""How many tasks an error names."""


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
        """Makes connections and servers; None: there is no network."""
        self._ids = 0
        self._tasks: list[ReferenceType[SerialTask]] = []
        self._prune_at = PRUNE_FROM
        self._generators: WeakKeyDictionary[Any, None] = WeakKeyDictionary()
        """Async generators that have begun."""
        self._unheld: dict[Any, None] = {}
        """Generators that only this dictionary still holds, until each begins to be closed."""
        self._awaited: Any = None
        """The future with whose end the loop stops."""
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
        """Tasks that are still referenced, in the order in which they were made."""
        return [task for each in self._tasks if (task := each()) is not None]

    def set_task_factory(self, factory: Any) -> None:
        """Refused: only the loop makes tasks."""
        if factory is not None:
            raise self.refuse("set_task_factory")

    def get_task_factory(self) -> None:
        """There is none."""

    def run_in_executor(
        self, executor: Any, func: Callable[[*Args], Result], *args: *Args
    ) -> asyncio.Future[Result]:
        """Run it inline, as a step; it takes no virtual time."""
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
        # If it is cancelled before it begins, this leaves the generator to `shutdown_asyncgens`. A
        # bare `aclose()` would get the exception, and CPython 3.13 treats that differently from
        # 3.11.
        self._unheld.pop(generator, None)
        await generator.aclose()

    async def shutdown_asyncgens(self) -> None:
        """Close open generators, one after the other: dropped ones in the order in which they were
        dropped, then the others in the order in which they began."""
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
        """Run until it is done. Raises `RunFailedError` if something else failed meanwhile."""
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
        if ended is self._awaited:  # a failed run leaves this callback behind for the next one
            self.stop()

    def waiting(self) -> str:
        """The tasks that have not ended, and where they wait, in words."""
        pending = [each.where() for each in self.tasks() if not each.done()]
        more = f"; and {len(pending) - NAMED} more" if len(pending) > NAMED else ""
        return ("; ".join(pending[:NAMED]) or "no task is left") + more

    def shutdown(self) -> None:
        """End everything, in order; see the module's docstring. Raises nothing: see `failures`."""
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
        """Run a part of the shutdown until it is done."""
        task = self._awaited = self.create_task(last)
        task.add_done_callback(self._over)
        try:
            while not task.done():
                self.run_forever()
        except (DeadlockError, LivelockError) as error:
            self.fail("the end does not come", error)

    def close(self) -> None:
        """Close it for good."""
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
