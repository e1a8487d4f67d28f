"""What `Cluster.describe()` shows: plain values, printable and ready for JSON.

`str()` of a description is the page to read in an incident. It has one line per node, then one per
partition, with its leader, its leader epoch, its offsets, and how far each replica is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, cast

from ottla.broker.arguments.addresses import join, reachable
from ottla.broker.config import ClusterConfig
from ottla.broker.images import PartitionImage
from ottla.broker.node.inspection import ReplicaView
from ottla.broker.node.node import Node
from ottla.broker.topics.configs import Effect, has_effect
from ottla.log.types import Unpacked
from ottla.raft.types import Micros

SERVED: str = Effect.SERVED.value
NO_EFFECT: str = Effect.NONE.value
FEW = 5
"""Partitions that an error message lists."""


class NodeDescription(NamedTuple):
    """One node: `state` is running, paused, isolated, dead, failed or left out (without_nodes).

    `error` says why it has failed, was left out, or could not be restarted."""

    node: int
    address: str
    state: str
    connections: int = 0
    leads: int = 0
    """Partitions it leads."""
    turns: int = 0
    syncs: int = 0
    error: str = ""


class ReplicaDescription(NamedTuple):
    """One replica of a partition: Raft's view (indexes) and Kafka's (offsets)."""

    node: int
    role: str
    term: int
    last_index: int
    commit_index: int
    applied_index: int
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    producers: int


class PartitionDescription(NamedTuple):
    """One partition: its leader (0: nobody serves it) as of the highest term seen."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    log_start_offset: int
    high_watermark: int
    members: dict[int, ReplicaDescription]


class ConfigDescription(NamedTuple):
    """A config that a topic was created with; `effect` is *served* or *no effect here*."""

    value: str
    effect: str


class ClusterDescription(NamedTuple):
    """Nodes by id, topics by name, counters since the start, and statistics of the links.
    `configs`, by topic and name, are those that topics were created with."""

    cluster_id: str
    controller: int
    nodes: dict[int, NodeDescription]
    topics: dict[str, list[PartitionDescription]]
    counters: dict[str, int]
    messages_delivered: dict[str, int]
    messages_dropped: dict[str, int]
    configs: dict[str, dict[str, ConfigDescription]]

    def as_dict(self) -> dict[str, Unpacked]:
        """Nested plain values, for `json.dumps`."""
        return cast(dict[str, Unpacked], _plain(self))

    def __str__(self) -> str:
        lines = self._node_lines()
        for name, partitions in self.topics.items():
            lines.extend(_config_lines(name, self.configs.get(name, {})))
            lines.extend(_partition_line(each) for each in partitions)
        return "\n".join(lines)

    def in_short(self, about: str = "") -> str:
        """The nodes and one partition (`orders-0`), for error messages. If no partition is named,
        or it is unknown, it shows some partitions that no node serves. The length does not grow
        with the number of topics."""
        there = [each for partitions in self.topics.values() for each in partitions]
        found = [each for each in there if f"{each.topic}-{each.partition}" == about]
        if not found:
            found = [each for each in there if not each.leader]
        lines = [*self._node_lines(), *map(_partition_line, found[:FEW])]
        if len(found) > FEW:
            lines.append(f"  and {len(found) - FEW} more partitions that nobody serves")
        return "\n".join(lines)

    def _node_lines(self) -> list[str]:
        lines = [f"cluster {self.cluster_id}, controller on node {self.controller}"]
        for node in self.nodes.values():
            tail = f": {node.error}" if node.error else f", leads {node.leads}"
            lines.append(f"  node {node.node} at {node.address} is {node.state}{tail}")
        return lines


def _plain(value: object) -> object:
    """A description as nested dicts and lists."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _config_lines(topic: str, configs: Mapping[str, ConfigDescription]) -> list[str]:
    """The configs that a topic was created with, in one line; no line if there are none."""
    said = [
        f"{name}={each.value}" + (" (no effect here)" if each.effect == NO_EFFECT else "")
        for name, each in configs.items()
    ]
    return [f"  topic {topic} with {', '.join(said)}"] if said else []


def _partition_line(partition: PartitionDescription) -> str:
    members = ", ".join(
        f"{each.node}:{each.role[0]}{each.term} {each.applied_index}/{each.last_index}"
        for each in partition.members.values()
    )
    return (
        f"  {partition.topic}-{partition.partition} leader {partition.leader} "
        f"epoch {partition.leader_epoch} offsets {partition.log_start_offset}.."
        f"{partition.high_watermark} in sync {list(partition.in_sync)} "
        f"(node:role+term applied/last: {members})"
    )


Found: TypeAlias = tuple[int, ReplicaView]
"""A replica of a partition, and the node that it is on."""


def replicas_of(image: PartitionImage, lives: Mapping[int, Node]) -> list[Found]:
    """The replicas of a partition on the nodes that are alive, with their nodes."""
    there = ((node, lives.get(node)) for node in image.replicas)
    found = ((node, life.inspect().replica(image.group)) for node, life in there if life)
    return [(node, replica) for node, replica in found if replica is not None]


def serving_of(replicas: Sequence[Found]) -> Found | None:
    """The replica that leads in the highest term and serves, with its node."""
    leading = [
        (replica.soft.term, node, replica)
        for node, replica in replicas
        if replica.leads and replica.of_partition().serves
    ]
    if not leading:
        return None
    _, node, replica = max(leading, key=lambda each: each[:2])
    return node, replica


def describe_node(
    number: int, node: Node | None, state: str, why_dead: str = ""
) -> NodeDescription:
    """A node in its present life; if it has none (`node` is None), `why_dead` says why."""
    if node is None:
        return NodeDescription(number, "", state, error=why_dead)
    host, port = node.server.address
    return NodeDescription(
        number,
        join((reachable(host), port)),
        state,
        connections=node.server.connections,
        leads=sum(each.leads for each in node.inspect().replicas() if each.group),
        turns=node.runner.turns,
        syncs=node.runner.syncs,
        error="" if node.failed is None else str(node.failed),
    )


def describe_topics(
    lives: Mapping[int, Node],
    serving: Callable[[PartitionImage], Found | None],
    now: Micros,
) -> tuple[int, dict[str, list[PartitionDescription]]]:
    """Controller and topics, as known to the node that has applied most of the controller's log."""
    freshest = _freshest(lives)
    if freshest is None:
        return 0, {}
    topics = {
        name: [
            describe_partition(name, each, replicas_of(each, lives), serving(each), now)
            for each in topic.partitions
        ]
        for name, topic in freshest.topics().items()
    }
    return freshest.controller(), topics


def describe_configs(lives: Mapping[int, Node]) -> dict[str, dict[str, ConfigDescription]]:
    """Configs of topics, as known to the node that has applied most of the controller's log."""
    freshest = _freshest(lives)
    if freshest is None:
        return {}
    return {
        name: {
            config: ConfigDescription(value, _effect(config, topic.configs, freshest.config))
            for config, value in topic.configs.items()
        }
        for name, topic in freshest.topics().items()
    }


def _effect(config: str, configs: Mapping[str, str], settings: ClusterConfig) -> str:
    return SERVED if has_effect(config, configs, settings) else NO_EFFECT


def _freshest(lives: Mapping[int, Node]) -> Node | None:
    """The node that has applied most of the controller's log; None when all are dead."""
    return max(lives.values(), key=lambda each: each.inspect().decisions_applied, default=None)


def describe_partition(
    topic: str,
    image: PartitionImage,
    replicas: Sequence[Found],
    leader: Found | None,
    now: Micros,
) -> PartitionDescription:
    """Describe a partition from its living replicas and the one that serves, if any."""
    members = {node: describe_replica(node, replica) for node, replica in replicas}
    if leader is None:
        last = max((each.log_start_offset for each in members.values()), default=0)
        return PartitionDescription(
            topic, image.partition, 0, -1, image.replicas, (), last, last, members
        )
    node, replica = leader
    served = replica.of_partition()
    return PartitionDescription(
        topic,
        image.partition,
        node,
        replica.soft.term,
        image.replicas,
        served.in_sync(now),
        served.log_start_offset,
        served.high_watermark,
        members,
    )


def describe_replica(node: int, replica: ReplicaView) -> ReplicaDescription:
    """One replica of a partition."""
    partition = replica.of_partition()
    return ReplicaDescription(
        node,
        replica.role.name.lower(),
        replica.term,
        replica.last_index,
        replica.commit,
        partition.applied,
        partition.log_start_offset,
        partition.high_watermark,
        partition.log_end_offset,
        partition.producers,
    )
