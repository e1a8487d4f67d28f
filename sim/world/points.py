"""Points: places in a turn at which something can be made to happen (`life.py` lists them).

A *trap* waits at a point until a node (one, or any) reaches it for the n-th time with a detail that
fits. Then it acts once and is removed. With traps a script or the nemesis can hit the gap between a
write and its sync, or between a vote and its answer, which random times practically never hit
(SIM-MOMENTS).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.raft.messages import AppendEntries
from ottla.raft.types import GroupId, NodeId

NAMES = (
    "append",
    "appended",
    "voted",
    "sync",
    "synced",
    "send",
    "sent",
    "answer",
    "answered",
)


@dataclass(slots=True, eq=False)
class Trap:
    """Acts when `point` is reached for the `count`-th time, counting only what `node` and `fits`
    allow."""

    point: str
    act: Callable[[NodeId], None]
    """Called with the node that reached the point."""
    node: NodeId | None = None
    """None: any node."""
    count: int = 1
    fits: Callable[[Any], bool] | None = None
    """What the point's detail must satisfy; None: anything."""


def sends_entries(group: GroupId) -> Callable[[Any], bool]:
    """Fits, at *send* and *sent*, entries that a leader sends in a group."""
    return lambda message: (
        isinstance(message, AppendEntries) and bool(message.entries) and message.group == group
    )


class Points:
    """The traps that are set."""

    __slots__ = ("_traps", "armed")

    def __init__(self) -> None:
        self.armed = False
        """Whether any trap is set: while none is, a point costs only this check."""
        self._traps: list[Trap] = []

    def set(self, trap: Trap) -> Trap:
        """Set a trap."""
        assert trap.point in NAMES, f"no point {trap.point!r}"
        self._traps.append(trap)
        self.armed = True
        return trap

    def lift(self, trap: Trap) -> bool:
        """Take a trap away; False if it has acted already."""
        if trap not in self._traps:
            return False
        self._traps.remove(trap)
        self.armed = bool(self._traps)
        return True

    def clear(self) -> None:
        """No trap is set any more."""
        self._traps.clear()
        self.armed = False

    def reached(self, node: NodeId, point: str, detail: Any) -> None:
        """A node has reached a point."""
        for trap in tuple(self._traps):
            if trap.point != point or trap.node not in {None, node}:
                continue
            if trap.fits is not None and not trap.fits(detail):
                continue
            trap.count -= 1
            if trap.count == 0:
                self.lift(trap)
                trap.act(node)
