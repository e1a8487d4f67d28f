"""Chooses the nodes of new partitions, by the partitions that each node has already.

The first replica of a partition is its preferred leader. `PlacementCounts` counts, for each
replication factor, how many partitions every node leads and how many replicas it holds. The node
that leads least becomes the leader of the next partition; the nodes that hold least become
followers. If two nodes hold the same number, the one that leads more is chosen as follower, because
the other one will soon become a leader.

As long as partitions are only added, the numbers of two nodes differ by at most one, both for
leaders and for replicas of the same replication factor (a test checks all factors up to ten nodes).
This needs a separate count for each factor: over all factors together, alternating topics with one
and two replicas on two nodes would make one of the two numbers differ more and more. Ties are
decided by the totals over all factors, then by the lower node id.

A node that is not heard gets a replica only if there are too few others, and never leads, as Apache
Kafka's fenced brokers (StripedReplicaPlacer). So the balance above holds among the nodes that are
heard. A node that comes back gets more of the next partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ottla.raft.types import NodeId

Replicas = tuple[NodeId, ...]


@dataclass(slots=True)
class _Counts:
    leads: dict[NodeId, int] = field(default_factory=dict)
    holds: dict[NodeId, int] = field(default_factory=dict)

    def add(self, replicas: Replicas, by: int) -> None:
        leader = replicas[0]
        self.leads[leader] = self.leads.get(leader, 0) + by
        for node in replicas:
            self.holds[node] = self.holds.get(node, 0) + by

    def copy(self) -> _Counts:
        return _Counts(dict(self.leads), dict(self.holds))


class PlacementCounts:
    """How many partitions each node leads and holds, by replication factor and in total."""

    __slots__ = ("_by_factor", "_total")

    def __init__(self) -> None:
        self._total = _Counts()
        self._by_factor: dict[int, _Counts] = {}

    def add(self, replicas: Replicas) -> None:
        """Count a new partition with these replicas."""
        self._change(replicas, 1)

    def remove(self, replicas: Replicas) -> None:
        """Uncount a deleted partition with these replicas."""
        self._change(replicas, -1)

    def leads(self, node: NodeId) -> int:
        """How many partitions prefer this node as leader."""
        return self._total.leads.get(node, 0)

    def holds(self, node: NodeId) -> int:
        """How many partitions this node has a replica of."""
        return self._total.holds.get(node, 0)

    def place(
        self,
        nodes: Sequence[NodeId],
        partitions: int,
        factor: int,
        unheard: Sequence[NodeId] = (),
    ) -> tuple[Replicas, ...]:
        """The replicas of new partitions. They are not counted until they are added.

        `nodes`: all nodes; `factor`: from 1 to their number; `unheard`: those of them that are used
        last. The result depends only on the arguments and the counts.
        """
        assert 1 <= factor <= len(nodes), f"{factor} replicas on {len(nodes)} nodes"
        assert not set(nodes) <= set(unheard), f"none of {len(nodes)} nodes has been heard from"
        return tuple(self._choose(sorted(nodes), partitions, factor, unheard))

    def _change(self, replicas: Replicas, by: int) -> None:
        self._total.add(replicas, by)
        self._by_factor.setdefault(len(replicas), _Counts()).add(replicas, by)

    def _choose(
        self, nodes: list[NodeId], partitions: int, factor: int, unheard: Sequence[NodeId]
    ) -> Iterator[Replicas]:
        like = self._by_factor.get(factor, _Counts()).copy()
        total = self._total.copy()

        def leader_rank(node: NodeId) -> tuple[int, ...]:
            return (
                like.leads.get(node, 0),
                like.holds.get(node, 0),
                total.leads.get(node, 0),
                total.holds.get(node, 0),
                node,
            )

        def follower_rank(node: NodeId) -> tuple[int, ...]:
            return (
                node in unheard,
                like.holds.get(node, 0),
                -like.leads.get(node, 0),
                total.holds.get(node, 0),
                node,
            )

        heard = [node for node in nodes if node not in unheard]
        for _ in range(partitions):
            leader = min(heard, key=leader_rank)
            others = sorted((node for node in nodes if node != leader), key=follower_rank)
            replicas = (leader, *others[: factor - 1])
            like.add(replicas, 1)
            total.add(replicas, 1)
            yield replicas
