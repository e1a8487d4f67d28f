"""`WatchedPoints`: the points of turns, watched by the probe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.raft.types import NodeId
from ottla.sim.world.points import Points, Trap


class WatchedPoints(Points):
    """The points of a world, watched: they are always armed."""

    __slots__ = ("_watcher",)

    def __init__(self, watcher: Callable[[NodeId, str, Any], None]):
        self._watcher = watcher
        super().__init__()
        self.armed = True

    def reached(self, node: NodeId, point: str, detail: Any) -> None:
        """As `Points.reached`."""
        self._watcher(node, point, detail)
        super().reached(node, point, detail)

    def lift(self, trap: Trap) -> bool:
        """As `Points.lift`."""
        there = super().lift(trap)
        self.armed = True
        return there

    def clear(self) -> None:
        """As `Points.clear`."""
        super().clear()
        self.armed = True
