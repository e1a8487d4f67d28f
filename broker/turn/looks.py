"""`Looks`: how much checking of records the replicas of a node may do in one iteration of the loop.

**Theory.** Checking the records of a batch may take seconds, and all nodes of a process share one
event loop. So a node has an allowance for each iteration of the loop (`SLICE`, counted in records,
never in time), which its replicas use in their turns. A replica whose check is not finished calls
`wait`; the driver gives it another turn in the next iteration. Other inputs of that replica, and
all other replicas, are handled in between.

In the next slice, replicas that had no part of the last one come first. So one huge batch delays
only what is produced to its own partition.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.log.record_walk import SLICE, Allowance
from ottla.raft.types import GroupId

AT_LEAST = 256
"""The allowance, in plain records, that each batch gets when it arrives, even if the slice is used
up. It is enough for nearly every batch, so that most batches do not wait for others."""


def _nobody() -> None:
    """Without a driver there is nothing to plan."""


class Looks(Allowance):
    """The allowance of a node, and the groups that wait for the next slice. Without a driver the
    allowance is unlimited."""

    __slots__ = ("_next", "_worked", "plan", "waiting")

    def __init__(self) -> None:
        super().__init__()
        self._next: dict[GroupId, None] = {}
        self._worked: dict[GroupId, None] = {}
        self.plan: Callable[[], None] = _nobody
        """A function of the driver that plans the next slice."""
        self.waiting = False
        """Whether a group waits for the next slice; the driver reads it after each pump."""

    def drive(self, plan: Callable[[], None]) -> None:
        """A driver takes over: begin the first slice. `plan` must plan the next one."""
        self.left, self.plan = SLICE, plan

    def use(self, records: int) -> None:
        """A replica has checked records: take them from the allowance."""
        self.left -= records

    def wait(self, group: GroupId, worked: bool) -> None:
        """The check of this group's replica is not finished. `worked`: it used a part of this
        slice."""
        (self._worked if worked else self._next)[group] = None
        self.waiting = True

    def refill(self) -> list[GroupId]:
        """Begin a slice. Returns the groups that wait for it, in order."""
        waiting = [*self._next, *self._worked]
        self._next.clear()
        self._worked.clear()
        self.left, self.waiting = SLICE, False
        return waiting
