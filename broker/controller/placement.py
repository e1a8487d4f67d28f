"""Where the replicas of new partitions go: a pure function of what lies where already.

The first replica of a partition is its preferred leader. `PlacementCounts` counts, for each
replication factor, how many partitions every node leads and how many it holds. The next partition
is led by the node that leads least, and held besides by those that hold least; among equals a
follower is preferred that leads more already, because one that leads less must lead soon and be
loaded then.

While partitions are only added, no node leads, and no node holds, more than one partition more
than another of the same replication factor (the test walks all factors up to ten nodes). Counting
each factor by itself is what makes both possible at once: over all factors together, an alternation
of single and double replicas on two nodes would push one of the two sums ever further apart.
Between factors, ties go to the node with less in total, and at last to the lower node id.

Nodes that nobody hears of get a replica only where the others are fewer than the factor, and never
lead: as with Apache Kafka's fenced brokers (StripedReplicaPlacer). They count for nothing else, so
the balance above is that of the nodes heard of, and what a node missed it gets when it is back.
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
        """A partition with these replicas now exists."""
        self._change(replicas, 1)

    def remove(self, replicas: Replicas) -> None:
        """It exists no more."""
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
        """Replica lists for new partitions; nothing is counted until they are added.

        `nodes` are all there are, `1 <= factor <= len(nodes)`, and `unheard` those among them that
        come last. The answer depends on nothing but the arguments and the counts.
        """
        assert 1 <= factor <= len(nodes), f"{factor} replicas on {len(nodes)} nodes"
        assert len(unheard) < len(nodes), f"{len(unheard)} of {len(nodes)} nodes are unheard of"
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
