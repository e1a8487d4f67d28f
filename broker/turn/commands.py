"""The commands of the controller: one class per command.

A handler, a node, a cluster or the simulator makes a command. The command goes to the controller's
leader in a `ControlTicket`, if need be from node to node. The leader checks it and encodes it for
the controller's log (`ottla.broker.controller.commands`). In the log a creation is a `PlaceTopic`,
which states everything that a `CreateTopic` leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ottla.broker.errors import ErrorCode
from ottla.broker.topics.topic import Topic
from ottla.log.types import Unpacked
from ottla.raft.types import Micros, NodeId

Origin: TypeAlias = tuple[NodeId, int, int]
"""Identifies a controller command that may be sent again: the node that asks, that node's
incarnation, and the command's number there."""
THE_DEFAULT = -1
"""A count with this value means the default of the cluster's settings."""


@dataclass(frozen=True, slots=True)
class Position:
    """Asks up to which log index the controller's leader has applied its log. Not in the log."""


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """Create a topic as a client asks for it. Nothing of it is checked yet, not even the name."""

    name: str
    partitions: int = THE_DEFAULT
    replication_factor: int = THE_DEFAULT
    assignments: tuple[tuple[int, tuple[NodeId, ...]], ...] = ()
    """For each partition its number and its nodes. Empty: the controller chooses the nodes."""
    configs: Mapping[str, str | None] = field(default_factory=dict)
    validate_only: bool = False

    @classmethod
    def of(cls, topic: Topic, nodes: int, default_factor: int) -> CreateTopic:
        """The command that creates `topic` in a cluster of `nodes` nodes."""
        configs = {name: str(value) for name, value in topic.configs.items()}
        if topic.assignment is not None:
            placed = tuple((place, tuple(each)) for place, each in enumerate(topic.assignment))
            return cls(topic.name, assignments=placed, configs=configs)
        factor = topic.replication_factor
        if factor is None:
            factor = min(default_factor, nodes)
        return cls(topic.name, topic.partitions, factor, configs=configs)


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """Delete a topic, given by its name or by its id."""

    name: str | None = None
    topic_id: bytes | None = None
    by: Origin | None = None
    """Only in the log: who asked. So a command that is sent again is not carried out again."""


@dataclass(frozen=True, slots=True)
class AllocateProducerIds:
    """Give a block of producer ids to a node."""

    node: NodeId
    by: Origin | None = None
    """As in `DeleteTopic`."""


Command: TypeAlias = Position | CreateTopic | DeleteTopic | AllocateProducerIds
Decided: TypeAlias = Callable[[ErrorCode, dict[str, Unpacked]], None]
"""Called once with the outcome of a command and the fields of its answer."""
Control: TypeAlias = Callable[[Command, Decided, Micros], None]
"""Sends a command to the controller's leader, whichever node that is, with a deadline."""
