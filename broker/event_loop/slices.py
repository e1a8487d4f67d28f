"""`Slices`: work that is too long for one turn of the loop, done over several turns.

All nodes of a process share one event loop, with their elections and all clients. Work that takes
seconds would keep all of them waiting. One request may name thousands of topics and partitions, and
each costs some microseconds. So the work for each is written as *steps*: a generator that does a
little, yields the cost of that in *units* of about 10 us, and goes on when it is asked to.

**At once, or in turns.** `run` takes the first steps at once. A small job ends there, at no extra
cost. The rest of a larger job queues. Once per turn of the loop, the jobs in the queue take slices
of `SLICE_UNITS`, one after the other and round again, until `TURN_UNITS` are used up. So many large
jobs do not make a turn longer, and each job makes progress.

**One budget for all.** The first steps of a job spend `left`, whichever connection it came from.
Each turn sets `left` to `TURN_UNITS` again. When nothing is left, jobs queue from their first step
on, and a caller that wants to begin something waits for the next turn (`take`). Nothing is
scheduled on the loop before the budget is used up: while requests are few and small, one budget
lasts for many turns.

**What is small comes first.** A request of at most `SMALL_UNITS` would wait several turns (to be
decoded, worked on and answered), each time behind large requests of others. So a turn has
`SMALL_TURN_UNITS` more, for the first steps of small jobs when nothing is left.

Units are counted, not measured: the same requests are cut in the same places on every machine, and
in the simulator's loop.

**Owners.** A job belongs to a node. The jobs of a paused node wait until it goes on. Those of a
stopped node are dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from ottla.broker.event_loop.collecting import nothing_collected

TURN_UNITS = 300
"""Units in a turn of the loop: as many for jobs that begin, and as many for jobs in the queue."""
SMALL_UNITS = 10
"""A job of at most these units may begin even when nothing is left."""
SMALL_TURN_UNITS = 100
"""Units in a turn for such small jobs."""
SLICE_UNITS = 60
"""Units of one slice; then the next job has its slice."""


class Job(Protocol):
    """Something that is done in steps."""

    owner: object
    """The node whose work it is."""
    steps: Iterator[int]
    """Each item does a little of the work, and is the cost of that in units."""

    def wanted(self) -> bool:
        """Whether anybody still waits for it; asked before each slice."""

    def ended(self, error: Exception | None) -> None:
        """Called when the job is done, or no longer wanted, or a step raised `error`."""


class Slices:
    """See the module's docstring. One per event loop; `call_soon` is the loop's."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]):
        self._call_soon = call_soon
        self._queue: deque[Job] = deque()
        self._held: dict[object, list[Job]] = {}
        """Jobs of owners that are paused."""
        self._waiting: deque[Callable[[], None]] = deque()
        self._planned = False
        self.left = TURN_UNITS
        """Units that may still begin in this turn; below 0 where one step was more than was left.
        """
        self.small_left = SMALL_TURN_UNITS
        """The same for small jobs."""

    def run(self, job: Job) -> bool:
        """Take the first steps of `job` now, the others in turns to come. True: it has ended."""
        if (self.left > 0 or self.small_left > 0) and job.owner not in self._held:
            small = self.left <= 0
            spent, over = _advance(job, SMALL_UNITS if small else min(SLICE_UNITS, self.left))
            if small:
                self.small_left -= spent
                self._plan()
            else:
                self.left -= spent
            if over:
                return True
        self._enqueue(job)
        return False

    def take(self, units: int, call: Callable[[], None]) -> bool:
        """Take `units` for something that begins now. False: there is no room in this turn. Then
        `call()` comes when the caller may try again; it must not raise.

        If something costs more than is left, it gets the next turn before all others, while that
        turn's budget is still whole.
        """
        if units <= SMALL_UNITS and self.left < units <= self.small_left:
            self.small_left -= units
            self._plan()
            return True
        if self.left <= 0:
            self._waiting.append(call)
        elif self.left < units and self.left < TURN_UNITS:
            self._waiting.appendleft(call)
        else:
            self.left -= units
            return True
        self._plan()
        return False

    def hold(self, owner: object) -> None:
        """The owner is paused: its jobs wait for `release`."""
        self._held.setdefault(owner, [])

    def release(self, owner: object) -> None:
        """The owner goes on."""
        for job in self._held.pop(owner, ()):
            self._enqueue(job)

    def drop(self, owner: object) -> None:
        """The owner has ended: drop all its jobs."""
        self._held.pop(owner, None)
        self._queue = deque(job for job in self._queue if job.owner is not owner)

    def _enqueue(self, job: Job) -> None:
        held = self._held.get(job.owner)
        if held is not None:
            held.append(job)
            return
        self._queue.append(job)
        self._plan()

    def _plan(self) -> None:
        if not self._planned:
            self._planned = True
            self._call_soon(self._turn)

    def _turn(self) -> None:
        self._planned = False
        self.left, self.small_left = TURN_UNITS, SMALL_TURN_UNITS
        waiting, self._waiting = self._waiting, deque()
        if self._queue:
            with nothing_collected(aged=True):
                self._go_round()
        for call in waiting:
            call()
        if self._queue:
            self._plan()

    @property
    def busy(self) -> bool:
        """Whether jobs wait for their next slice."""
        return bool(self._queue)

    def _go_round(self) -> None:
        """A slice for each job in the queue, round and round, until the turn's room is used up."""
        room = TURN_UNITS
        while room > 0 and self._queue:
            job = self._queue.popleft()
            if job.owner in self._held:
                self._enqueue(job)
                continue
            spent, over = _advance(job, min(SLICE_UNITS, room))
            room -= max(spent, 1)  # even a job without a step costs its end
            if not over:
                self._enqueue(job)


def _advance(job: Job, units: int) -> tuple[int, bool]:
    """Take steps worth `units`, or a little more. Returns what they cost, and whether the job is
    over. If a step raises, the job's `ended` gets the error.
    """
    spent, error = 0, None
    if job.wanted():
        try:
            for cost in job.steps:
                spent += cost
                if spent >= units:
                    return spent, False
        except Exception as raised:  # noqa: BLE001 - other jobs are no less well for it
            error = raised
    job.ended(error)
    return spent, True
