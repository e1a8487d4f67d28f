"""Clients that may never learn a partition's leader, at the end of a run in which not all is
healed.

If a node names only itself, and not the leader, a client that asks it may ask the same node again.
Two kinds of nodes answer so. One is cut off and leads another partition, whose only replica it has:
clients of that partition must find it. The other hears a majority, but no node of that majority
hears the leader, which was not healed either (seed 14014895). No other node that is up excuses a
client by itself. A node that hears a majority hears of a healed leader from a healed node
(sim-S68), or leaves itself out while it does not know all topics (sim-S65). A node that hears no
majority sends clients to others.

Clients must not keep to healed nodes instead, because another node may lead a partition
(docs/decisions/0042). Seeds that need this module: `tests/sim/ending/test_probes.py`.

Java's clients prefer the connections that they have. Two nodes that are cut off, each by itself,
send their clients to each other, because either may be well for all that the other hears (seed
8027330). A client that is connected to both, and to no other node, asks them in turn. So does a
client with two nodes of which one leads another partition, as above. A broker of Kafka's that is
cut off also sends its clients to the nodes that it heard last, until KIP-1102 makes them start
again. Nodes that hear each other know better, and excuse no client (sim-S64).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ottla.broker.node.node import HEARD_TIMEOUTS
from ottla.raft.types import NodeId
from ottla.sim.clients.base import Client
from ottla.sim.clients.worker import MS
from ottla.sim.world.frames import TOPIC
from ottla.sim.world.life import awake
from ottla.sim.world.world import World


class _Told(NamedTuple):
    """What a node answers to clients that ask for all partitions, and which nodes it hears."""

    named: list[NodeId]
    leaders: list[NodeId]
    """Of the run's own topic, by partition."""
    leading: bool
    """Whether it says of any topic that it leads a partition."""
    heard: list[NodeId]

    def leads_to(self, partition: int, leader: NodeId) -> bool:
        """Whether clients learn that this node leads the partition."""
        return self.leaders[partition : partition + 1] == [leader] and leader in self.named


def lost(world: World, client: Client, partition: int, core: Collection[NodeId]) -> str:
    """Which nodes a client may ask for ever, and why; empty: it must find the partition's leader.
    `core`: the nodes that were healed."""
    life, by, reached = awake(world.leader(partition)), client.view.told_by, client.reached()
    if life is None or by in core:
        return ""
    if _misleads(world, by, partition, life.node_id, core):
        return f"node {by}, which is not healed, names itself and knows no leader of this"
    if any(each in core for each in reached):
        return ""
    if _astray(world, reached, partition, life.node_id, core):
        return f"the nodes {sorted(reached)} in turn, which are not healed and know of no leader"
    return ""


def _misleads(
    world: World, node: NodeId, partition: int, leader: NodeId, core: Collection[NodeId]
) -> bool:
    """Whether a node that is up names itself to this partition's clients and not its `leader`. It
    hears no majority and leads another partition; or it hears a majority that need not hear of a
    leader outside the healed nodes. A node that is down or frozen soon has no clients."""
    told = _told(world, node)
    if told is None or node not in told.named or told.leads_to(partition, leader):
        return False
    if 2 * len(told.heard) > len(world.nodes):
        return leader not in core
    return told.leading


def _astray(
    world: World,
    nodes: Sequence[NodeId],
    partition: int,
    leader: NodeId,
    core: Collection[NodeId],
) -> bool:
    """Whether none of these nodes names the `leader`, and each makes its clients ask one of them
    again: itself, if it misleads, or another one that misleads or that it does not hear."""
    misleading = [each for each in nodes if _misleads(world, each, partition, leader, core)]
    for node in nodes:
        told = _told(world, node)
        if told is None or told.leads_to(partition, leader):
            return False
        again = [each for each in nodes if each in misleading or each not in told.heard]
        if node not in misleading and (
            node in told.named or not any(each in told.named for each in again)
        ):
            return False
    return bool(nodes)


def _told(world: World, node: NodeId) -> _Told | None:
    """None: the node is down or frozen."""
    life = world.lives.get(node)
    if life is None or life.frozen:
        return None
    within = HEARD_TIMEOUTS * world.config.election_timeout_ms * MS
    topic = life.node.topics().get(TOPIC)
    groups = [] if topic is None else [each.group for each in topic.partitions]
    # Clients ask for all topics: those beside the run's own count.
    every = [each.group for image in life.node.topics().values() for each in image.partitions]
    leaders = {group: life.node.leader(group).leader for group in every}
    return _Told(
        named=[each.node for each in life.node.brokers(every)],
        leaders=[leaders[each] for each in groups],
        leading=node in leaders.values(),
        heard=[each for each in world.nodes if life.view.hears(each, within)],
    )
