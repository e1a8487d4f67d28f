"""Looks: how much of their batches the replicas of a node look into before others have their turn.

**Theory.** Looking into a batch may take seconds, and all nodes of a process share one event loop.
So a node has an allowance for each time the loop comes around (`SLICE`, counted in records, never
in time), which its replicas work off in their turns. A replica that is not through says so
(`wait`), and looks on in a turn that the driver gives it when the loop has been around. The other
inputs of that replica, and all of the others, are taken in between.

Who had to wait without a look at all goes first in the next slice: one huge batch holds up only
what comes behind it in its own partition.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.log.record_walk import SLICE, Allowance
from ottla.raft.types import GroupId

AT_LEAST = 256
"""What each batch gets when it comes, however much of the slice is used up, in plain records:
enough for nearly every batch, so that it does not wait for others."""


def _nobody() -> None:
    """No driver asked."""


class Looks(Allowance):
    """The allowance of a node, and who waits for the next one. Endless without a driver."""

    __slots__ = ("_next", "_worked", "plan", "waiting")

    def __init__(self) -> None:
        super().__init__()
        self._next: dict[GroupId, None] = {}
        self._worked: dict[GroupId, None] = {}
        self.plan: Callable[[], None] = _nobody
        """The driver's: see that there is a next slice."""
        self.waiting = False
        """Somebody waits; the driver asks after each pump."""

    def drive(self, plan: Callable[[], None]) -> None:
        """There is a driver: the first slice begins, and `plan` sees that there is a next one."""
        self.left, self.plan = SLICE, plan

    def use(self, records: int) -> None:
        """A replica has looked into so many."""
        self.left -= records

    def wait(self, group: GroupId, worked: bool) -> None:
        """The replica is not through; `worked`: it had a part of this slice."""
        (self._worked if worked else self._next)[group] = None
        self.waiting = True

    def refill(self) -> list[GroupId]:
        """Begin a slice; returns who waits for it, in order."""
        waiting = [*self._next, *self._worked]
        self._next.clear()
        self._worked.clear()
        self.left, self.waiting = SLICE, False
        return waiting
