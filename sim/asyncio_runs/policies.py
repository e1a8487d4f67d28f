"""Which step runs next: the ready queue of the deterministic loop, by four policies.

asyncio promises that callbacks run in the order in which they were scheduled, and real programs
rely on that: protocols, `call_soon`, callbacks of futures. It promises nothing about which of two
ready tasks goes first. So every policy keeps the plain callbacks in order, as one lane of their
own, and chooses between the tasks, and between a task and that lane.

| policy | which goes next |
|---|---|
| `fifo` | the one that has waited longest, as in asyncio |
| `shuffled` | any; 0 is the one that has waited longest, so an empty tape is nearly `fifo` |
| `pct(depth)` | the highest priority; drawn per lane, lowered at `depth - 1` steps of the run |
| `starving` | as `fifo`, but one lane waits until no other is ready; another every `STARVED_FOR` |

`pct` is Burckhardt and others, ASPLOS 2010: a bug that needs `depth` ordered events is found with a
probability of at least 1 / (tasks * horizon ** (depth - 1)), if the run has about `horizon` steps.

With `pct` and `starving`, a task that polls (`while not ready: await sleep(0)`) could keep all
others from running for ever. When time has stood still for long, the loop calls `weary`, and all
lanes take turns until it calls `rested`.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Protocol, TypeAlias

from ottla.sim.asyncio_runs.steps import Step
from ottla.sim.chance.choices import Stream

PRIORITIES = 1 << 30
STARVED_FOR = 256
"""Steps for which one lane is starved."""


class Queue(Protocol):
    """The steps that are ready."""

    def push(self, step: Step) -> None:
        """A step is ready."""

    def take(self) -> Step:
        """Remove and return the next step; there must be one."""

    def weary(self) -> None:
        """Time stands still for too long: be fair from now on."""

    def rested(self) -> None:
        """Time has moved on."""

    def __len__(self) -> int: ...


Policy: TypeAlias = Callable[[Stream], Queue]


class _Fifo(deque[Step]):
    push = deque[Step].append
    take = deque[Step].popleft

    def weary(self) -> None: ...

    def rested(self) -> None: ...


class _Shuffled:
    def __init__(self, stream: Stream):
        self._below = stream.below
        self._tasks: list[Step] = []
        self._calls: deque[Step] = deque()

    def __len__(self) -> int:
        return len(self._tasks) + len(self._calls)

    def push(self, step: Step) -> None:
        (self._tasks if step.lane else self._calls).append(step)

    def take(self) -> Step:
        tasks, calls = self._tasks, self._calls
        if not calls:
            return tasks.pop(self._below(len(tasks)) if len(tasks) > 1 else 0)
        if not tasks:
            return calls.popleft()
        drawn = self._below(len(tasks) + 1)
        # The callbacks are one candidate, before or after the task that has waited longest.
        place = 0 if calls[0].serial < tasks[0].serial else 1
        if drawn == place:
            return calls.popleft()
        return tasks.pop(drawn - (drawn > place))

    def weary(self) -> None: ...

    def rested(self) -> None: ...


class _Pct:
    def __init__(self, stream: Stream, depth: int, horizon: int):
        self._below = stream.below
        self._changes: list[int] = []
        """Steps of the run before which the next lane is lowered, in order."""
        for drawn in range(depth - 1):
            # One of the steps that are left: drawing until a new one comes up would never end on an
            # empty tape.
            at = stream.below(horizon - drawn)
            for taken in self._changes:
                at += at >= taken
            insort(self._changes, at)
        self._taken = 0
        self._floor = 0
        """Lowered priorities are below this, and so below all drawn ones."""
        self._weary = False
        self._priority: dict[int, int] = {}
        self._tasks: list[tuple[int, int, Step]] = []
        self._calls: deque[Step] = deque()

    def __len__(self) -> int:
        return len(self._tasks) + len(self._calls)

    def _of(self, lane: int) -> int:
        found = self._priority.get(lane)
        if found is None:
            found = self._priority[lane] = 1 + self._below(PRIORITIES)
        return found

    def push(self, step: Step) -> None:
        if step.lane:
            heappush(self._tasks, (-self._of(step.lane), step.serial, step))
        else:
            self._calls.append(step)

    def take(self) -> Step:
        changes, self._taken = self._changes, self._taken + 1
        if changes and changes[0] < self._taken:
            del changes[0]
            self._lower(self._calls_first())
        calls_first = self._calls_first()
        step = self._calls.popleft() if calls_first else heappop(self._tasks)[2]
        if self._weary:
            self._floor -= 1
            self._priority[step.lane] = self._floor
        return step

    def _calls_first(self) -> bool:
        """Whether the callbacks' lane has the highest priority of all that is ready."""
        if not self._calls or not self._tasks:
            return bool(self._calls)
        return self._of(0) > -self._tasks[0][0]

    def _lower(self, calls: bool) -> None:
        """The lane that would go next goes after all others from now on."""
        self._floor -= 1
        if calls:
            self._priority[0] = self._floor
            return
        _, serial, step = heappop(self._tasks)
        self._priority[step.lane] = self._floor
        heappush(self._tasks, (-self._floor, serial, step))

    def weary(self) -> None:
        self._weary = True

    def rested(self) -> None:
        self._weary = False


class _Starving:
    def __init__(self, stream: Stream):
        self._below = stream.below
        self._others: deque[Step] = deque()
        self._starved: deque[Step] = deque()
        self._victim = -1
        """The lane that starves; -1: none."""
        self._left = 0
        self._weary = False

    def __len__(self) -> int:
        return len(self._others) + len(self._starved)

    def push(self, step: Step) -> None:
        (self._starved if step.lane == self._victim else self._others).append(step)

    def take(self) -> Step:
        if not self._left:
            self._left = STARVED_FOR
            self._choose()
        self._left -= 1
        return self._others.popleft() if self._others else self._starved.popleft()

    def _choose(self) -> None:
        """Choose another lane to starve."""
        self._release()
        if not self._weary:
            waiting = list(self._others)
            self._victim = waiting[self._below(len(waiting))].lane
            self._others = deque(each for each in waiting if each.lane != self._victim)
            self._starved = deque(each for each in waiting if each.lane == self._victim)

    def _release(self) -> None:
        """No lane starves."""
        self._victim = -1
        self._others.extendleft(reversed(self._starved))
        self._starved.clear()

    def weary(self) -> None:
        self._weary = True
        self._release()

    def rested(self) -> None:
        if self._weary:
            self._weary = False
            self._left = 0


def fifo(_: Stream) -> Queue:
    """As asyncio does it."""
    return _Fifo()


def shuffled(stream: Stream) -> Queue:
    """Any ready task goes next."""
    return _Shuffled(stream)


def pct(depth: int = 3, horizon: int = 10_000) -> Policy:
    """Priorities with `depth - 1` changes in the first `horizon` steps."""
    if not 1 <= depth <= horizon:
        raise ValueError(f"depth {depth} must be 1 to {horizon}, the horizon")
    return lambda stream: _Pct(stream, depth, horizon)


def starving(stream: Stream) -> Queue:
    """One lane at a time goes last."""
    return _Starving(stream)
