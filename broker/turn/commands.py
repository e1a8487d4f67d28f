"""What may be asked of the controller: one value per command.

Whoever asks (a handler, a node, a cluster, the simulator) builds one; it goes to the controller's
leader as it is, in a `ControlTicket`, from node to node too. The leader checks what is in it, and
it becomes bytes in one place, where it enters the controller's log
(`ottla.broker.controller.commands`). In the log a creation is a `PlaceTopic`, which names all that
was left open here.
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
"""What makes a controller command the same when it is sent again: the node that asks, its life
(`incarnation`), and the number it has there."""
THE_DEFAULT = -1
"""For a count: as many as the cluster's settings say."""


@dataclass(frozen=True, slots=True)
class Position:
    """How much is applied here? Answered without the log."""


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """A topic as it is asked for; its name may be anything."""

    name: str
    partitions: int = THE_DEFAULT
    replication_factor: int = THE_DEFAULT
    assignments: tuple[tuple[int, tuple[NodeId, ...]], ...] = ()
    """Partition and its nodes; empty: the controller places."""
    configs: Mapping[str, str | None] = field(default_factory=dict)
    validate_only: bool = False

    @classmethod
    def of(cls, topic: Topic, nodes: int, default_factor: int) -> CreateTopic:
        """What creates `topic` on a cluster of `nodes` nodes."""
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
    """A topic goes, named in one of two ways."""

    name: str | None = None
    topic_id: bytes | None = None
    by: Origin | None = None
    """Who asked, in the log only: whose command may come again, and must not be done again."""


@dataclass(frozen=True, slots=True)
class AllocateProducerIds:
    """A block of producer ids for a node."""

    node: NodeId
    by: Origin | None = None
    """As above."""


Command: TypeAlias = Position | CreateTopic | DeleteTopic | AllocateProducerIds
Decided: TypeAlias = Callable[[ErrorCode, dict[str, Unpacked]], None]
"""Called once with how a command ended, and the fields of its answer."""
Control: TypeAlias = Callable[[Command, Decided, Micros], None]
"""Has the controller decide a command, wherever it leads, until a deadline."""
