"""The controller's commands: one value each, and the tables by which they are read.

On its way to the controller, and in the log, a command is a msgpack map, whose `type` names its row
in a table. It becomes a value in two places, and everything behind these knows no maps:

* `submitted`, before anything is proposed. A peer may send anything, and so may a program that has
  a `Cluster`; the log takes only sense.
* `logged`, before it is applied. What lies in a log may have been put there by an older version, or
  by one with a fault. Every node reads the same entry by the same table, so all of them refuse it
  or none does; what is refused changes nothing, and is no reason for a node to stop.

`pack` writes what `logged` reads. Its bytes are those of all versions before: a log goes on.

In the log a little more is taken than is submitted today: what older versions let in, and could
apply (nodes written 1.0 or True, a config's value as a number). Were it refused, the partitions
that come after it would be counted differently than when they were created.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgpack

from ottla.broker.arguments.arguments import INT32_MAX, INT64_MAX
from ottla.broker.arguments.fields import (
    CommandError,
    Field,
    FieldError,
    Fields,
    listing,
    mapping,
    optional,
    read,
    record,
    some_bytes,
    text,
    truth,
    unpack,
    whole,
)
from ottla.broker.arguments.spelling import shown
from ottla.broker.topics.names import MAX_NAME_LENGTH
from ottla.broker.turn.tickets import Origin
from ottla.raft.types import NodeId

MOST_PARTITIONS = 1 << 20
"""In one command of the log; a setting says how many are created."""
LONGEST_TEXT = 1 << 20


@dataclass(frozen=True, slots=True)
class Position:
    """How much is applied here? Answered without the log."""


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """A topic as it is asked for: its name may be anything, and a count -1, the default."""

    name: str
    partitions: int
    replication_factor: int
    assignments: tuple[tuple[int, tuple[NodeId, ...]], ...]
    """Partition and its nodes; empty: the controller places."""
    configs: Mapping[str, str | None]
    validate_only: bool


@dataclass(frozen=True, slots=True)
class PlaceTopic:
    """A topic as the log creates it, resolved (`ottla.broker.controller.requests`): counts instead
    of defaults, and the nodes to choose from."""

    name: str
    partitions: int
    replication_factor: int
    nodes: tuple[NodeId, ...]
    """All nodes of the cluster when it was asked for."""
    configs: Mapping[str, str]
    unheard: tuple[NodeId, ...] = ()
    """Those among them on which nothing is placed while there are enough others."""
    assignments: tuple[tuple[NodeId, ...], ...] | None = None
    """Per partition its nodes; None: to be placed."""
    by: Origin | None = None


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


Submitted: TypeAlias = Position | CreateTopic | DeleteTopic | AllocateProducerIds
Logged: TypeAlias = PlaceTopic | DeleteTopic | AllocateProducerIds

_INT32 = whole(-INT32_MAX - 1, INT32_MAX)
_NODE = whole(0, INT32_MAX)
_TEXT = text(LONGEST_TEXT)


def _null_or(field: Field) -> Field:
    return lambda value: None if value is None else field(value)


SUBMITTED: Mapping[str, Fields] = {
    "create_topic": {
        "name": _TEXT,
        "partitions": optional(_INT32, -1),
        "replication_factor": optional(_INT32, -1),
        "assignments": optional(listing(record(_INT32, listing(_INT32)))),
        "configs": optional(mapping(_TEXT, _null_or(_TEXT)), {}),
        "validate_only": optional(truth, False),
    },
    "delete_topic": {"name": optional(_TEXT), "topic_id": optional(some_bytes(16))},
    "allocate_producer_ids": {"node": _NODE},
    "position": {},
}
"""As asked for."""

_OLD_NODE = whole(1, INT32_MAX, loose=True)
_NODES = listing(_OLD_NODE, 1, distinct=True)


def _old_config(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(whole()(value)) if isinstance(value, int) else str(_TEXT(value))


LOGGED: Mapping[str, Fields] = {
    "create_topic": {
        "name": text(MAX_NAME_LENGTH),
        "partitions": whole(1, MOST_PARTITIONS, loose=True),
        "replication_factor": whole(1, INT32_MAX, loose=True),
        "nodes": _NODES,
        "unheard": optional(listing(_OLD_NODE), []),
        "configs": mapping(_TEXT, _old_config),
        "assignments": optional(listing(_NODES, 1)),
    },
    "delete_topic": SUBMITTED["delete_topic"],
    "allocate_producer_ids": SUBMITTED["allocate_producer_ids"],
}
"""As they lie in the log."""
_BY = optional(record(_NODE, whole(0, INT64_MAX), whole(0, INT64_MAX)))


def submitted(command: Any) -> Submitted:
    """A command as it was asked for, with its defaults. Raises `CommandError`, in a sentence."""
    kind = command.get("type", "") if isinstance(command, Mapping) else command
    if not isinstance(kind, str) or kind not in SUBMITTED:
        raise CommandError(f"There is no controller command {shown(kind)}.")
    try:
        taken = read(command, SUBMITTED[kind])
    except CommandError as error:
        raise CommandError(f"The controller command {kind!r} is none: {error}.") from error
    if kind == "create_topic":
        lists = taken["assignments"] or ()
        taken["assignments"] = tuple((partition, tuple(nodes)) for partition, nodes in lists)
        return CreateTopic(**taken)
    if kind == "delete_topic":
        if taken["name"] is None and taken["topic_id"] is None:
            raise CommandError(f"The controller command {kind!r} says no name or topic_id.")
        return DeleteTopic(**taken)
    return Position() if kind == "position" else AllocateProducerIds(**taken)


def logged(payload: bytes) -> Logged:
    """A command out of the log, ready to be applied. Raises `CommandError`."""
    command = unpack(payload)
    kind = command.get("type") if isinstance(command, Mapping) else None
    if not isinstance(kind, str) or kind not in LOGGED:
        raise CommandError(f"its type is {shown(kind)}")
    taken = {**read(command, LOGGED[kind]), **read(command, {"by": _BY})}
    if taken["by"] is not None:
        taken["by"] = tuple(taken["by"])
    if kind == "create_topic":
        return _placed(taken)
    if kind == "delete_topic":
        if taken["name"] is None and taken["topic_id"] is None:
            raise CommandError("it has no name or topic_id")
        return DeleteTopic(**taken)
    return AllocateProducerIds(**taken)


def _placed(taken: dict[str, Any]) -> PlaceTopic:
    """Raises `CommandError` where the replicas cannot be placed."""
    for name in ("nodes", "unheard"):
        taken[name] = tuple(taken[name])
    if taken["assignments"] is not None:
        taken["assignments"] = tuple(tuple(nodes) for nodes in taken["assignments"])
    command = PlaceTopic(**taken)
    nodes, factor = command.nodes, command.replication_factor
    if not command.name:
        raise CommandError("it has an empty name")
    if command.assignments is not None:
        return command
    if factor > len(nodes):
        raise CommandError(f"it wants {factor} replicas on {len(nodes)} nodes")
    if all(node in command.unheard for node in nodes):
        raise CommandError(f"none of its {len(nodes)} nodes is heard of")
    return command


def pack(command: Logged) -> bytes:
    """The bytes of a command in the log, for `logged`."""
    fields = _FIELDS[type(command)](command)
    if command.by is not None:
        fields["by"] = command.by
    packed: bytes = msgpack.packb(fields)
    return packed


def _fields_of_placement(command: PlaceTopic) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "type": "create_topic",
        "name": command.name,
        "configs": dict(command.configs),
        "partitions": command.partitions,
        "replication_factor": command.replication_factor,
        "nodes": command.nodes,
    }
    if command.assignments is None:  # who names the nodes leaves none to be chosen
        fields["unheard"] = command.unheard
    fields["assignments"] = command.assignments
    return fields


def _fields_of_deletion(command: DeleteTopic) -> dict[str, Any]:
    return {"type": "delete_topic", "name": command.name, "topic_id": command.topic_id}


def _fields_of_allocation(command: AllocateProducerIds) -> dict[str, Any]:
    return {"type": "allocate_producer_ids", "node": command.node}


_FIELDS: Mapping[type, Callable[[Any], dict[str, Any]]] = {
    PlaceTopic: _fields_of_placement,
    DeleteTopic: _fields_of_deletion,
    AllocateProducerIds: _fields_of_allocation,
}


def stored_config(value: Any) -> str:
    """A config's value out of a snapshot, where an older version may have left a number."""
    try:
        return _old_config(value)
    except FieldError:
        return ""
