"""Where the probe watches: the points of turns, and the network between nodes.

Each replaces the world's own before it boots, tells the watcher, and then does as ever. They make
no choice and add no event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ottla.raft.types import NodeId
from ottla.sim.world.network import Receive, SimNetwork
from ottla.sim.world.points import Points, Trap
from ottla.sim.world.world import World


class Hearer(Protocol):
    """Gets every message of a run."""

    def leaves(self, to: NodeId, message: Any) -> None:
        """A message leaves a node, or a link that held it up."""

    def heard(self, to: NodeId, message: Any) -> None:
        """A node takes in a message; a second time if the network duplicates it."""


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


class WatchedNetwork(SimNetwork):
    """The network between nodes, watched."""

    def __init__(self, world: World, hearer: Hearer):
        super().__init__(world.kernel, world.choices, world.config)
        self._lives = world.lives
        self._hearer = hearer

    def attach(self, node: NodeId, receive: Receive) -> None:
        """As `SimNetwork.attach`."""
        lives, hearer = self._lives, self._hearer

        def received(sender: NodeId, message: Any) -> None:
            life = lives.get(node)
            if life is not None and life.frozen:
                life.enter(hearer.heard, node, message)  # when it goes on
            else:
                hearer.heard(node, message)
            receive(sender, message)

        super().attach(node, received)

    def send(self, sender: NodeId, to: NodeId, message: Any) -> None:
        """As `SimNetwork.send`."""
        self._hearer.leaves(to, message)
        super().send(sender, to, message)
