"""Clients that may never hear who leads a partition, at the end of a run where not all is healed.

A client that is told by a node of this node itself and not of the leader may ask the same node
again. So does one that is cut off and leads another partition, of which it is the only replica: it
must be found by clients of that; and one that hears a majority of which nobody hears the leader,
which was not healed either (seed 14014895). No other node that is up excuses anybody by itself: who
hears a majority hears of a leader that was healed from one that was, too (sim-S68), or leaves
itself out while it does not know all topics (sim-S65), and who hears none sends clients to others.

Clients must not keep to healed nodes instead: a partition may be led by another
(docs/decisions/0042). Seeds that need this module: `tests/sim/ending/test_probes.py`.

Java's clients prefer the connections they have. Two nodes that are cut off, each by itself, send
their clients to one another, for either may be well for all that the other hears (seed 8027330); a
client that is connected to both and to nobody else asks them in turn; so does one of whose two
nodes one leads another partition, as above. A broker of Kafka's that is
cut off sends its clients to whom it last heard of, too, until KIP-1102 has them begin anew. Nodes
that hear each other know better, and excuse nobody (sim-S64).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ottla.broker.node.node import HEARD_TIMEOUTS
from ottla.raft.types import NodeId
from ottla.sim.clients.base import MS, Client
from ottla.sim.world.frames import TOPIC
from ottla.sim.world.world import World, awake


class _Told(NamedTuple):
    """What a node says to clients that ask for all partitions, and whom it hears."""

    named: list[NodeId]
    leaders: list[NodeId]
    heard: list[NodeId]

    def leads_to(self, partition: int, leader: NodeId) -> bool:
        """Whether clients learn that this node leads the partition."""
        return self.leaders[partition : partition + 1] == [leader] and leader in self.named


def lost(world: World, client: Client, partition: int, core: Collection[NodeId]) -> str:
    """Whom it may ask for ever, and why; empty if it must come to who leads the partition. `core`:
    the nodes that were healed."""
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
    """Whether a node that is up names itself to this partition's clients and not its `leader`: as
    one that hears no majority and leads another partition, or a majority that need not hear of a
    leader outside of what was healed. Who is down or frozen has none for long."""
    told = _told(world, node)
    if told is None or node not in told.named or told.leads_to(partition, leader):
        return False
    if 2 * len(told.heard) > len(world.nodes):
        return leader not in core
    return node in told.leaders


def _astray(
    world: World,
    nodes: Sequence[NodeId],
    partition: int,
    leader: NodeId,
    core: Collection[NodeId],
) -> bool:
    """Whether none of these nodes leads to the `leader`, and each has its clients ask one of them
    again: itself, if it misleads, or another that does, or that it does not hear."""
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
    """None of a node that is down or frozen."""
    life = world.lives.get(node)
    if life is None or life.frozen:
        return None
    within = HEARD_TIMEOUTS * world.config.election_timeout_ms * MS
    topic = life.node.topics().get(TOPIC)
    groups = [] if topic is None else [each.group for each in topic.partitions]
    return _Told(
        named=[each.node for each in life.node.brokers(groups)],
        leaders=[life.node.leader(each).leader for each in groups],
        heard=[each for each in world.nodes if life.view.hears(each, within)],
    )
