"""What there is to see of a cluster: its addresses, and the state of everything in it.

Nothing here changes the cluster, and each answer is of the moment at which it is given.
`AsyncCluster` is a `ClusterViews`; `ottla.Cluster` documents each with an example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ottla.broker.cluster.description import (
    ClusterDescription,
    describe_configs,
    describe_node,
    describe_topics,
    hosted_replicas_of,
    leading_hosted,
)
from ottla.broker.cluster.reach import Reach
from ottla.broker.counters import Counters
from ottla.broker.driver.hosted import HostedReplica
from ottla.broker.errors import NodeStateError
from ottla.broker.event_loop.lifecycle import Lifecycle
from ottla.broker.images import PartitionImage
from ottla.broker.node.node import Node
from ottla.broker.transport.in_process import Network
from ottla.raft.types import Micros


class ClusterViews:
    """See the module's text."""

    cluster_id: str
    counters: Counters
    network: Network
    _ids: Sequence[int]
    _lives: dict[int, Node]
    _now: Callable[[], Micros]
    _lifecycle: Lifecycle
    _reach: Reach
    _without: Sequence[int]
    _why_dead: dict[int, str]
    """Why a node has no life, where that is not because it was killed."""

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of every node as it is advertised, comma-separated. Raises `NodeStateError`
        before the start."""
        return self._reach.bootstrap_servers()

    @property
    def addresses(self) -> Mapping[int, tuple[str, int]]:
        """Host and port at which each node listens, for clients on this machine. Raises
        `NodeStateError` before the start."""
        return self._reach.listening()

    @property
    def advertised(self) -> Mapping[int, tuple[str, int]]:
        """Host and port of each node as clients are told."""
        return dict(self._reach.told)

    def _state(self, node: int) -> str:
        """Running, paused (it may be isolated too), isolated, failed, dead or left out."""
        life = self._lives.get(node)
        if life is None or not life.joined:
            return "left out" if node in self._without else "dead"
        if life.failed is not None:
            return "failed"
        if life.runner.paused:
            return "paused"
        return "isolated" if self.network.isolated(node) else "running"

    def _running(self) -> list[Node]:
        """Nodes that can take part now; at least one. Raises `NodeStateError`."""
        running = [life for node, life in self._lives.items() if self._state(node) == "running"]
        if not running:
            raise NodeStateError("no node is running; restart, resume or heal one first")
        return running

    def describe(self) -> ClusterDescription:
        """Everything there is to see."""
        self._reach.check()
        nodes = {
            node: describe_node(
                node, self._lives.get(node), self._state(node), self._why_dead.get(node, "")
            )
            for node in self._ids
        }
        controller, topics = describe_topics(self._lives, self._leading_hosted, self._now())
        return ClusterDescription(
            self.cluster_id,
            controller,
            nodes,
            topics,
            self.counters.as_dict(),
            self.network.delivered,
            self.network.dropped,
            describe_configs(self._lives),
        )

    def _leading_hosted(self, image: PartitionImage) -> tuple[int, HostedReplica] | None:
        """The replica that serves a partition; a paused node serves nobody."""
        hosted_replicas = hosted_replicas_of(image, self._lives)
        awake = [each for each in hosted_replicas if not self._lives[each[0]].runner.paused]
        return leading_hosted(awake)
