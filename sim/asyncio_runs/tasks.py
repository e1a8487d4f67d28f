"""Tasks and futures whose place in a set is their serial, not their address.

asyncio keeps tasks and futures in sets. What it does to all of them (a task group that aborts,
`asyncio.wait`, shutdown) it does in the order of the set. That follows the hash, which for most
objects is their address: another order in every process, whatever PYTHONHASHSEED is. This loop
numbers what it makes, and the number is the hash. So sets of these objects have the same order in
every process and on every CPython (SIM-SET-ORDER).

While such a loop is open, other objects that asyncio puts into sets are replaced (`Hold`):

| in asyncio | replaced by |
|---|---|
| the future of `gather` | one with a serial |
| `all_tasks` | in the order in which the tasks were made |
| `wait` on a future that has no serial | refused |
| `as_completed` on coroutines | refused: it makes a set of coroutines, which have no number |

Other loops of the process are not affected.
"""

from __future__ import annotations

import asyncio
import asyncio.tasks
import sys
from collections.abc import Collection, Coroutine, Iterator
from types import FrameType
from typing import Any, Protocol, TypeGuard

from ottla.sim.chance.outside import RefusedError


class Numbering(Protocol):
    """A loop that numbers its tasks and futures."""

    def next_id(self) -> int:
        """The next number, from 1."""

    def tasks(self) -> list[asyncio.Task[Any]]:
        """Its tasks, in the order in which they were made."""

    def refuse(self, what: str) -> RefusedError:
        """The exception to raise."""


class SerialFuture(asyncio.Future[Any]):
    """A future with a number. The loop sets it before any code sees the future."""

    __slots__ = ("serial",)

    serial: int

    def __hash__(self) -> int:
        return self.serial


class SerialTask(asyncio.Task[Any]):
    """A task with a number; asyncio asks for its hash while the task is being made."""

    __slots__ = ("serial",)

    def __init__(
        self,
        coro: Coroutine[Any, Any, Any],
        loop: asyncio.AbstractEventLoop,
        serial: int,
        *,
        name: str | None,
        context: Any,
    ):
        self.serial = serial
        # asyncio's own numbers count all tasks of the process.
        super().__init__(coro, loop=loop, name=name or f"Task-{serial}", context=context)

    def __hash__(self) -> int:
        return self.serial

    @property
    def failed(self) -> BaseException | None:
        """The exception that it ended with, if nobody has retrieved it; this does not count as
        retrieval."""
        return self._exception if self._log_traceback else None

    def where(self) -> str:
        """Its name, and where it waits, in words."""
        waits: Any = self.get_coro()
        name, place = getattr(waits, "__qualname__", "?"), "an unknown place"
        while waits is not None:
            frame = getattr(waits, "cr_frame", None)
            if frame is not None:
                place = f"{frame.f_code.co_filename}:{frame.f_lineno} in {waits.__qualname__}"
            waits = getattr(waits, "cr_await", None)
        return f"{self.get_name()} ({name}) at {place}"


class _InOrder(set[asyncio.Task[Any]]):
    """A set of tasks that iterates in the order in which they were made."""

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        return iter(sorted(super().__iter__(), key=hash))


_module: Any = asyncio.tasks
_wait = _module._wait  # noqa: SLF001 - the part of asyncio.wait after it has made a set
_Gathering = _module._GatheringFuture  # noqa: SLF001 - made without asking the loop
_all_tasks = asyncio.all_tasks


def _ours(loop: object) -> TypeGuard[Numbering]:
    return hasattr(loop, "next_id")


class _SerialGathering(_Gathering):  # type: ignore[misc, valid-type] # a private class
    def __init__(self, children: Any, *, loop: Any):
        self.serial = loop.next_id() if _ours(loop) else object.__hash__(self)
        super().__init__(children, loop=loop)

    def __hash__(self) -> int:
        return self.serial


async def _wait_in_order(fs: Collection[Any], timeout: Any, return_when: Any, loop: Any) -> Any:
    if _ours(loop) and len(fs) > 1 and not all(hasattr(each, "serial") for each in fs):
        what = "asyncio.wait on a future that the loop did not make (use loop.create_future)"
        raise loop.refuse(what)
    return await _wait(fs, timeout, return_when, loop)


def _tasks_in_order(loop: Any = None) -> set[asyncio.Task[Any]]:
    if loop is None:
        loop = asyncio.get_running_loop()
    if not _ours(loop):
        return _all_tasks(loop)
    return _InOrder(each for each in loop.tasks() if not each.done())


_INSTEAD = (
    (_module, "_wait", _wait, _wait_in_order),
    (_module, "_GatheringFuture", _Gathering, _SerialGathering),
    (_module, "all_tasks", _all_tasks, _tasks_in_order),
    (asyncio, "all_tasks", _all_tasks, _tasks_in_order),
)
_holds: list[Hold] = []


class Hold:
    """One open loop: the replacements of the module's docstring stay until the last one is
    closed."""

    def __init__(self) -> None:
        _holds.append(self)
        for place, name, _, instead in _INSTEAD:
            setattr(place, name, instead)

    def release(self) -> None:
        """The loop is closed."""
        if self in _holds:
            _holds.remove(self)
            if not _holds:
                for place, name, original, _ in _INSTEAD:
                    setattr(place, name, original)


def made_by_as_completed() -> bool:
    """Whether the task that is being made is for a coroutine given to `as_completed`."""
    # Skips this function and create_task.
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - documented, if underscored
    while frame is not None and frame.f_globals is _module.__dict__:
        if frame.f_code.co_qualname.startswith(("as_completed", "_AsCompletedIterator")):
            return True
        frame = frame.f_back
    return False
