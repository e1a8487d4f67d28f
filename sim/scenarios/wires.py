"""What a script can do to the links between nodes, and to messages on their way.

One method per command; `script.py` has the language. Messages are identified by their class, and
only those of the topic count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.raft.describe import describe_message
from ottla.raft.types import NodeId
from ottla.sim.scenarios.stage import Stage
from ottla.sim.world.network import LinkName
from ottla.sim.world.world import World


class Wires:
    """Part of a `Script`; see the module's docstring."""

    def __init__(self, stage: Stage):
        self._stage = stage
        self._kept: list[tuple[NodeId, NodeId, Any]] = []

    def begin(self) -> None:
        """An act begins: no message is kept."""
        self._kept = []

    def _links(self, words: tuple[str, ...]) -> list[LinkName]:
        found: list[LinkName] = []
        for word in words:
            left, right = (int(each) for each in word.replace("-", ">").split(">"))
            found.append((left, right))
            if "-" in word:
                found.append((right, left))
        return found

    def do_cut(self, *links: str) -> None:
        """Lose what is sent there."""
        self._stage.world.network.cut(self._links(links))

    def do_isolate(self, *nodes: str) -> None:
        """Cut nodes off from all others."""
        for node in nodes:
            self._stage.world.network.isolate(int(node))

    def do_mend(self, *links: str) -> None:
        """Links work again."""
        if not links:
            self._stage.world.network.mend(self._stage.world.nodes)
        for name in self._links(links):
            self._stage.world.network.links[name].cut = False

    def do_clog(self, *links: str) -> None:
        """Keep what is sent there."""
        for name in self._links(links):
            self._stage.world.network.clog(name)

    def do_release(self, *links: str) -> None:
        """Let it go on."""
        for name in self._links(links):
            self._stage.world.network.release(name)

    def do_drop(self, kind: str, link: str = "", count: str = "1") -> None:
        """The next messages of a kind are lost."""
        self._catch(
            kind,
            link,
            int(count),
            lambda _, __, each: self._stage.say(f"lost: {describe_message(each)}"),
        )

    def do_keep(self, kind: str, link: str = "", count: str = "1") -> None:
        """The next messages of a kind wait."""

        def keep(sender: NodeId, to: NodeId, message: Any) -> None:
            self._stage.say(f"kept: {describe_message(message)}")
            self._kept.append((sender, to, message))

        self._catch(kind, link, int(count), keep)

    def do_deliver(self) -> None:
        """What was kept goes on."""
        kept, self._kept = self._kept, []
        for sender, to, message in kept:
            self._stage.say(f"delivered: {describe_message(message)}")
            self._stage.world.network.send(sender, to, message)

    def _catch(
        self, kind: str, link: str, count: int, caught: Callable[[NodeId, NodeId, Any], None]
    ) -> None:
        left = count
        names = self._links((link,)) if link else None

        def passes(sender: NodeId, to: NodeId, message: Any) -> bool:
            nonlocal left
            if not left or type(message).__name__ != kind or is_foreign(self._stage.world, message):
                return True
            if names is not None and (sender, to) not in names:
                return True
            left -= 1
            caught(sender, to, message)
            return False

        self._stage.world.network.filters.append(passes)


def is_foreign(world: World, message: Any) -> bool:
    """Whether a message is of no partition of the topic."""
    groups = {each.group for each in world.replicas(0).values()}
    return getattr(message, "group", None) not in groups
