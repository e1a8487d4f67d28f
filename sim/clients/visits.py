"""Visits: clients that a plugin adds, beside the producers and consumers of a run.

The function of a plugin is called with a `Visit` when the load begins. It asks what it likes, now
and later, and says in the history what came of it, so that an invariant can judge that. Its choices
come from a stream of its own: what other clients and faults draw does not change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.raft.types import Micros, NodeId
from ottla.sim.plugins.own import OwnClient, added
from ottla.sim.world.frames import Frame
from ottla.sim.world.world import World

VISITOR = 5_000_000
"""The number of the first one, as a client."""


class Visit:
    """What a client of a plugin has of a run: the `world`, a `stream` of choices, and what follows.
    `number` is its place in the history's column `client`."""

    def __init__(self, world: World, id_: str, number: int):
        self.world = world
        self.stream = world.choices.stream(f"plugin {id_}")
        self.number = number

    def later(self, span: Micros, call: Callable[..., None], *arguments: object) -> None:
        """Do it in `span` microseconds."""
        self.world.kernel.after(span, call, *arguments)

    def ask(self, node: NodeId, request: Any, heard: Callable[[Any], None]) -> None:
        """Send a request of `ottla.broker.wire.requests` to a node, on a connection of its own.
        `heard` is called with the answer (`ottla.broker.wire.answers`); if the connection breaks
        before, with nothing, never."""

        def come(answer: Frame) -> None:
            connection.close()
            heard(answer.value)

        connection = self.world.clients.connect(self.number, node, come, lambda _: None)
        connection.send(Frame(1, request))

    def note(self, code: str, node: NodeId | None = None, **columns: int) -> None:
        """A row of kind *fault*, in which a run says what was done on purpose."""
        self.world.fault(code, node, client=self.number, **columns)


def begin_visits(world: World) -> None:
    """Let the clients of a run's plugins begin."""
    for place, each in enumerate(added(world.config.plugins, OwnClient)):
        each.function(Visit(world, each.id, VISITOR + place))
