"""Points: places in a turn at which something can be made to happen (`life.py` lists them).

A *trap* waits at a point for its moment: the n-th time that a node (or any) reaches it with a
detail that fits. Then it acts, once, and is gone. Traps are how a script or the nemesis hits the
gap between a write and its sync, or between a vote and its answer, which no random time ever hits
(SIM-MOMENTS).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.raft.types import NodeId

if TYPE_CHECKING:
    from ottla.sim.world.life import Life

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
    """Acts when `point` is reached for the `count`-th time as `node` and `fits` say."""

    point: str
    act: Callable[[Life], None]
    node: NodeId | None = None
    """None: whichever comes first."""
    count: int = 1
    fits: Callable[[Any], bool] | None = None
    """What the point's detail must be like."""


class Points:
    """The traps that are set."""

    __slots__ = ("_traps", "armed")

    def __init__(self) -> None:
        self.armed = False
        """Whether any trap is set: all that a point costs while none is."""
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

    def reached(self, life: Life, point: str, detail: Any) -> None:
        """A node has come to a point."""
        for trap in tuple(self._traps):
            if trap.point != point or trap.node not in {None, life.node_id}:
                continue
            if trap.fits is not None and not trap.fits(detail):
                continue
            trap.count -= 1
            if trap.count == 0:
                self.lift(trap)
                trap.act(life)
