"""`NodeFactory`: makes the nodes of a running cluster, at its start and for each restart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ottla.broker.arguments.addresses import Address
from ottla.broker.config import ClusterConfig
from ottla.broker.counters import Counters
from ottla.broker.event_loop.clockwork import MakeClockwork, election_jitter
from ottla.broker.event_loop.scheduler import Scheduler
from ottla.broker.node.disks import Disks
from ottla.broker.node.node import Node
from ottla.broker.node.replica_factory import ReplicaFactory
from ottla.broker.transport.in_process import Network
from ottla.broker.wire.server import Server
from ottla.raft.types import NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFactory:
    """What all nodes of a cluster share, from its start to its stop."""

    config: ClusterConfig
    nodes: Sequence[NodeId]
    cluster_id: str
    addresses: Mapping[NodeId, Address]
    """The address of each node that clients are told."""
    disks: Disks
    network: Network
    counters: Counters
    scheduler: Scheduler
    clockwork: MakeClockwork

    async def make(self, node: NodeId) -> Node:
        """A new `Node` on the node's disk, which has not joined yet. Raises as `Disks.open`
        does."""
        clockwork = self.clockwork(self.disks.writer(node))
        store = await self.disks.opened(node, clockwork)
        jitter = election_jitter(self.config.seed, node)
        return Node(
            node,
            self.config,
            cluster_id=self.cluster_id,
            nodes=self.nodes,
            addresses=self.addresses,
            store=store,
            network=self.network,
            scheduler=self.scheduler,
            listen=Server,
            clockwork=clockwork,
            factory=ReplicaFactory(
                node, self.config, store=store, counters=self.counters, jitter=jitter
            ),
        )
