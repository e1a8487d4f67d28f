"""The faults of a cluster: of its nodes, their links, their clients' connections and their disks.

`AsyncCluster` owns one `ClusterFaults`, whose methods have the same names as its own.
`ottla.Cluster` documents each with an example. A fault takes effect before its method returns, and
is noted in the events.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from ottla.broker.arguments.arguments import choice
from ottla.broker.cluster.events import EventLog
from ottla.broker.cluster.nodes import ClusterNodes
from ottla.broker.errors import NodeStateError
from ottla.broker.node.disks import Disks
from ottla.broker.transport.in_process import Network
from ottla.log.errors import DiskFullError, StoreError


class DiskFault(StrEnum):
    """How a disk fails, from its next sync on."""

    STALLED = "stalled"
    """Syncs hang. After `sync_stall_ms` the node's leaders resign (promise-R5)."""
    FAILED = "failed"
    """A sync ends in an input/output error, and the node stops."""
    FULL = "full"
    """A sync finds no room, and the node stops."""


FaultName = Literal["stalled", "failed", "full"]


def _sync_error(fault: DiskFault) -> StoreError | None:
    """The error of a sync on a disk with this fault; None: the sync never ends."""
    if fault is DiskFault.STALLED:
        return None
    if fault is DiskFault.FULL:
        return DiskFullError("no room on the disk")
    return StoreError("input/output error")


class ClusterFaults:
    """See the module's docstring."""

    def __init__(self, nodes: ClusterNodes, network: Network, disks: Disks, events: EventLog):
        self._nodes = nodes
        self._network = network
        self._disks = disks
        self._events = events

    def check_successor(self, node: int) -> int:
        """Check that no fault keeps this node from becoming leader; returns its number. Raises
        `NodeStateError`."""
        life = self._nodes.alive(node)
        node = life.node
        hint = ""
        if life.runner.paused:
            hint = f"is paused; resume({node}) first"
        elif self._network.isolated(node):
            hint = f"is isolated; heal({node}) first"
        elif self._disks.hangs(node):
            hint = f"has a disk that hangs; mend_disk({node}) first"
        if hint:
            raise NodeStateError(f"node {node} cannot lead: it {hint}")
        return node

    async def kill(self, node: int) -> None:
        """Signal 9."""
        life = self._nodes.life(node)
        node = life.node
        life.stop()
        del self._nodes.lives[node]
        self._events.note("kill", node)
        await self._disks.crash(node)

    def pause(self, node: int) -> None:
        """SIGSTOP."""
        life = self._nodes.alive(node)
        node = life.node
        if life.runner.paused:
            raise NodeStateError(f"node {node} is paused already")
        life.pause()
        self._events.note("pause", node)

    def resume(self, node: int) -> None:
        """SIGCONT."""
        life = self._nodes.alive(node)
        node = life.node
        if not life.runner.paused:
            raise NodeStateError(f"node {node} is not paused")
        self._events.note("resume", node)
        life.resume()

    def isolate(self, node: int) -> None:
        """Cut a node off from its peers."""
        node = self._nodes.alive(node).node
        self._network.isolate(node)
        self._events.note("isolate", node)

    def heal(self, node: int | None = None) -> None:
        """End the isolation of `node`, or of all."""
        if node is None:
            self._nodes.check_ours()
        else:
            node = self._nodes.check(node)
        asked = self._nodes.ids if node is None else (node,)
        healed = [each for each in asked if self._network.isolated(each)]
        self._network.heal(node)
        for each in healed:
            self._events.note("heal", each)

    def cut_connections(self, node: int) -> int:
        """Drop every client connection of a node."""
        return self._nodes.life(node).server.cut_connections()

    def break_disk(self, node: int, fault: DiskFault | FaultName) -> None:
        """From its next sync on, a node's disk hangs or fails; only for logs in memory."""
        how = choice("fault", fault, DiskFault)
        node = self._nodes.alive(node).node
        self._disks.break_(node, _sync_error(how))
        self._events.note(f"disk {how}", node)

    def mend_disk(self, node: int) -> None:
        """Syncs that hang go on, and later syncs no longer fail."""
        node = self._nodes.alive(node).node
        self._disks.mend(node)
        self._events.note("disk mended", node)
