"""Wires: every message of a run with both its ends, passed to a watcher.

A history says what nodes wrote and what clients were told, not what was on its way between them.
The network between nodes has watchers; `ToldConnection` replaces the plain one of clients. Each
message is told when it leaves and when it arrives. That makes no choice and adds no event, so a run
that is watched has the same digest.

Heartbeats and controller commands are left out: they carry no entry and decide no batch.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol, get_args

from ottla.raft.messages import Message
from ottla.raft.types import NodeId
from ottla.sim.world.frames import Frame
from ottla.sim.world.tcp import Connection
from ottla.sim.world.world import World

RAFT: tuple[type, ...] = get_args(Message)


class Watcher(Protocol):
    """Gets every message. A message is the same object at both ends."""

    def sent(self, sender: NodeId, to: NodeId, message: Any, *, lost: bool) -> None:
        """A message leaves a node; `lost`: it never arrives."""

    def received(self, to: NodeId, message: Any) -> None:
        """It arrives; a second time if the network duplicates it."""

    def asked(self, client: int, node: NodeId, request: Any) -> None:
        """A client writes a request."""

    def arrived(self, client: int, node: NodeId, request: Any) -> None:
        """The node has it."""

    def answered(self, client: int, node: NodeId, answer: Any) -> None:
        """The node writes an answer."""

    def heard(self, client: int, node: NodeId, answer: Any) -> None:
        """The client has it."""


class _OfRaft:
    """Passes on the messages of Raft."""

    def __init__(self, watcher: Watcher):
        self._watcher = watcher

    def sent(self, sender: NodeId, to: NodeId, message: Any, *, lost: bool) -> None:
        """See `NetworkWatcher`."""
        if isinstance(message, RAFT):
            self._watcher.sent(sender, to, message, lost=lost)

    def received(self, to: NodeId, message: Any) -> None:
        """See `NetworkWatcher`."""
        if isinstance(message, RAFT):
            self._watcher.received(to, message)


class ToldConnection(Connection):
    """A client's connection, watched. See the module's docstring."""

    __slots__ = ("_watcher",)

    def __init__(self, watcher: Watcher, *arguments: Any):
        super().__init__(*arguments)
        self._watcher = watcher

    def send(self, request: Frame) -> None:
        """As `Connection.send`."""
        if self.open:
            self._watcher.asked(self.client, self.node, request.value)
        super().send(request)

    def answer(self, answer: Frame) -> None:
        """As `Connection.answer`."""
        if self.open:
            self._watcher.answered(self.client, self.node, answer.value)
        super().answer(answer)

    def _reach(self, request: Frame) -> None:
        if self.served is not None:
            self._watcher.arrived(self.client, self.node, request.value)
        super()._reach(request)

    def _deliver(self, answer: Frame) -> None:
        if self.open:
            self._watcher.heard(self.client, self.node, answer.value)
        super()._deliver(answer)


def watch_wires(world: World, watcher: Watcher) -> None:
    """Let `watcher` get every message of a world that is not booted yet."""
    world.network.watchers.append(_OfRaft(watcher))
    world.clients.make = partial(ToldConnection, watcher)
