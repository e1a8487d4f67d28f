"""The faults of a cluster: what can be done to its nodes, their links, clients and disks.

`AsyncCluster` is a `ClusterFaults`; `ottla.Cluster` documents each method with an example. Each
takes effect before it returns, and is noted in the events.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Literal

from ottla.broker.arguments.arguments import as_whole, choice
from ottla.broker.arguments.spelling import shown
from ottla.broker.cluster.events import EventLog
from ottla.broker.errors import NodeStateError
from ottla.broker.event_loop.lifecycle import Lifecycle
from ottla.broker.node.disks import Disks
from ottla.broker.node.folders import left_out
from ottla.broker.node.node import Node
from ottla.broker.transport.in_process import Network
from ottla.log.errors import DiskFullError, StoreError


class DiskFault(StrEnum):
    """How a disk breaks, from its next sync on."""

    STALLED = "stalled"
    """Syncs hang. After `sync_stall_ms` the node's leaders resign (promise-R5)."""
    FAILED = "failed"
    """A sync ends in an input/output error, and the node stops."""
    FULL = "full"
    """A sync finds no room, and the node stops."""


FaultName = Literal["stalled", "failed", "full"]


def _sync_error(fault: DiskFault) -> StoreError | None:
    """What a sync on a disk that is broken so ends with; None: it does not end."""
    if fault is DiskFault.STALLED:
        return None
    if fault is DiskFault.FULL:
        return DiskFullError("no room on the disk")
    return StoreError("input/output error")


class ClusterFaults:
    """See the module's text."""

    events: EventLog
    network: Network
    _ids: Sequence[int]
    _without: Sequence[int]
    _lives: dict[int, Node]
    _disks: Disks
    _lifecycle: Lifecycle

    def node(self, node: int) -> Node:
        """One node's present life, for whoever must look inside. Raises when it is dead."""
        node = self._check(node)
        life = self._lives.get(node)
        if life is None:
            self._check_running()
            raise NodeStateError(f"node {node} is dead; restart({node}) brings it back")
        return life

    def _check_running(self) -> None:
        """Raises `NodeStateError` when the cluster has not been started, or was stopped."""
        if not self._lifecycle.begun:
            raise NodeStateError("the cluster is not running: start it first")

    def _check(self, node: Any) -> int:
        """The number of a node that there is. Raises `NodeStateError`."""
        number = as_whole(node)
        if number is None or number not in self._ids:
            raise NodeStateError(f"there is no node {shown(node)}; nodes are 1 to {len(self._ids)}")
        if number in self._without:
            raise NodeStateError(left_out(number))
        return number

    def _alive(self, node: int) -> Node:
        """One node's present life, unless it has stopped by itself."""
        life = self.node(node)
        node = life.node
        if life.failed is not None:
            raise NodeStateError(f"node {node} has failed; restart({node}) brings it back")
        return life

    def _check_successor(self, node: int) -> int:
        """The number of a node that could come to lead now, as far as its faults tell."""
        life = self._alive(node)
        node = life.node
        hint = ""
        if life.runner.paused:
            hint = f"is paused; resume({node}) first"
        elif self.network.isolated(node):
            hint = f"is isolated; heal({node}) first"
        elif self._disks.hangs(node):
            hint = f"has a disk that hangs; mend_disk({node}) first"
        if hint:
            raise NodeStateError(f"node {node} cannot lead: it {hint}")
        return node

    async def kill(self, node: int) -> None:
        """Signal 9."""
        life = self.node(node)
        node = life.node
        life.stop()
        del self._lives[node]
        self.events.note("kill", node)
        await self._disks.crash(node)

    def pause(self, node: int) -> None:
        """SIGSTOP."""
        life = self._alive(node)
        node = life.node
        if life.runner.paused:
            raise NodeStateError(f"node {node} is paused already")
        life.pause()
        self.events.note("pause", node)

    def resume(self, node: int) -> None:
        """SIGCONT."""
        life = self._alive(node)
        node = life.node
        if not life.runner.paused:
            raise NodeStateError(f"node {node} is not paused")
        self.events.note("resume", node)
        life.resume()

    def isolate(self, node: int) -> None:
        """Cut a node off from its peers."""
        node = self._alive(node).node
        self.network.isolate(node)
        self.events.note("isolate", node)

    def heal(self, node: int | None = None) -> None:
        """End the isolation of `node`, or of all."""
        if node is not None:
            node = self._check(node)
        asked = self._ids if node is None else (node,)
        healed = [each for each in asked if self.network.isolated(each)]
        self.network.heal(node)
        for each in healed:
            self.events.note("heal", each)

    def cut_connections(self, node: int) -> int:
        """Drop every client connection of a node."""
        return self.node(node).server.cut_connections()

    def break_disk(self, node: int, fault: DiskFault | FaultName) -> None:
        """From its next sync on, a node's disk hangs or fails; only logs in memory have such."""
        how = choice("fault", fault, DiskFault)
        node = self._alive(node).node
        self._disks.break_(node, _sync_error(how))
        self.events.note(f"disk {how}", node)

    def mend_disk(self, node: int) -> None:
        """What hangs goes on, what would have failed does not."""
        node = self._alive(node).node
        self._disks.mend(node)
        self.events.note("disk mended", node)
