"""The checks of the controller's leader before a command goes into the log.

`resolve` returns the command that goes into the log, or the outcome that refuses it. Settings, the
nodes of the cluster, and which of them are heard are used only here. The resolved command contains
everything, so that `Catalog.apply` depends only on the log. Names in use are checked again when the
command is applied, because another command may have changed them: of two creations at the same
time, the second is answered TOPIC_ALREADY_EXISTS.

The order of checks and the codes are as in Apache Kafka (ReplicationControlManager.createTopics;
K-CREATE-TOPICS): the metadata log 42, name 17, exists 36, collision 17, configs 40, then
assignments 42 and 39, or counts 38 and 37.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ottla.broker.config import ClusterConfig
from ottla.broker.controller.catalog import Catalog
from ottla.broker.controller.commands import Logged, PlaceTopic
from ottla.broker.controller.outcomes import Outcome, refused
from ottla.broker.errors import ErrorCode
from ottla.broker.topics.configs import refusal as config_refusal
from ottla.broker.topics.names import METADATA_LOG, name_refusal
from ottla.broker.turn.commands import AllocateProducerIds, CreateTopic, DeleteTopic
from ottla.raft.types import NodeId


def resolve(
    command: CreateTopic | DeleteTopic | AllocateProducerIds,
    catalog: Catalog,
    nodes: Sequence[NodeId],
    config: ClusterConfig,
    unheard: Sequence[NodeId] = (),
) -> Logged | Outcome:
    """The command that goes into the log, or its refusal. See the module's docstring.

    `unheard`: those of `nodes` on which nothing is placed unless there are too few others.
    """
    if isinstance(command, CreateTopic):
        return _resolve_creation(command, catalog, nodes, config, unheard)
    if isinstance(command, DeleteTopic):
        topic = catalog.find(command.name, command.topic_id)
        return topic if isinstance(topic, Outcome) else command
    return command


@dataclass(frozen=True, slots=True)
class _Shape:
    """The number of partitions and of replicas, and their nodes if the request names them."""

    partitions: int
    replication_factor: int
    assignments: tuple[tuple[NodeId, ...], ...] | None = None


def _resolve_creation(
    command: CreateTopic,
    catalog: Catalog,
    nodes: Sequence[NodeId],
    config: ClusterConfig,
    unheard: Sequence[NodeId],
) -> PlaceTopic | Outcome:
    name, configs = command.name, command.configs
    if name == METADATA_LOG:
        text = f"Creation of internal topic {name} is prohibited."
        return refused(ErrorCode.INVALID_REQUEST, text)
    why = name_refusal(name)
    if why:
        return refused(ErrorCode.INVALID_TOPIC_EXCEPTION, why)
    taken = catalog.name_refused(name)
    if taken is not None:
        return taken
    why = config_refusal(configs, config)
    if why:
        return refused(ErrorCode.INVALID_CONFIG, why)
    shape = _assigned(command, nodes) if command.assignments else _counted(command, nodes, config)
    if isinstance(shape, Outcome):
        return shape
    if shape.partitions > config.max_partitions_per_topic:
        text = (
            f"A topic can have at most {config.max_partitions_per_topic} partitions, "
            f"{shape.partitions} were requested."
        )
        return refused(ErrorCode.INVALID_PARTITIONS, text)
    return PlaceTopic(
        name,
        shape.partitions,
        shape.replication_factor,
        tuple(sorted(nodes)),
        {each: value for each, value in configs.items() if value is not None},
        tuple(sorted(unheard)) if shape.assignments is None else (),
        shape.assignments,
    )


def _counted(
    command: CreateTopic, nodes: Sequence[NodeId], config: ClusterConfig
) -> _Shape | Outcome:
    factor, partitions = command.replication_factor, command.partitions
    if factor == -1:
        factor = max(1, min(config.default_replication_factor, len(nodes)))
    if partitions == -1:
        partitions = max(1, config.default_partitions)
    if factor < 1:
        text = "Replication factor must be larger than 0, or -1 to use the default value."
        return refused(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    if partitions < 1:
        text = "Number of partitions was set to an invalid non-positive value."
        return refused(ErrorCode.INVALID_PARTITIONS, text)
    if factor > len(nodes):
        text = (
            f"Unable to replicate the partition {factor} time(s): The target replication factor of "
            f"{factor} cannot be reached because only {len(nodes)} broker(s) are registered."
        )
        return refused(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    return _Shape(partitions, factor)


def _assigned(command: CreateTopic, nodes: Sequence[NodeId]) -> _Shape | Outcome:
    counts = (
        (command.replication_factor, "replication factor"),
        (command.partitions, "numPartitions"),
    )
    for count, what in counts:
        if count != -1:
            text = f"A manual partition assignment was specified, but {what} was not set to -1."
            return refused(ErrorCode.INVALID_REQUEST, text)
    lists: dict[int, tuple[NodeId, ...]] = {}
    looked_at: dict[tuple[NodeId, ...], str] = {}  # many partitions have the same replicas
    factor = len(command.assignments[0][1])
    for partition, replicas in command.assignments:
        why = looked_at.get(replicas)
        if why is None:
            why = looked_at[replicas] = _assignment_refusal(replicas, factor, nodes)
        if partition in lists:
            why = f"Found multiple manual partition assignments for partition {partition}"
        if why:
            return refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
        lists[partition] = replicas
    if sorted(lists) != list(range(len(lists))):
        text = "partitions should be a consecutive 0-based integer sequence"
        return refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    return _Shape(len(lists), factor, tuple(lists[partition] for partition in range(len(lists))))


def _assignment_refusal(replicas: Sequence[NodeId], factor: int, nodes: Sequence[NodeId]) -> str:
    start = "The manual partition assignment includes"
    if not replicas:
        return f"{start} an empty replica list."
    for place, node in enumerate(replicas):
        if node not in nodes:
            return f"{start} broker {node}, but no such broker is registered."
        if place and node in replicas[:place]:
            return f"{start} the broker {node} more than once."
    if len(replicas) != factor:
        return (
            f"{start} a partition with {len(replicas)} replica(s), but this is not consistent "
            f"with previous partitions, which have {factor} replica(s)."
        )
    return ""
