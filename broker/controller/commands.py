"""The controller's commands: checks of their fields, and their bytes in the log.

A command is a value (`ottla.broker.turn.commands`, and `PlaceTopic` here). Only in the log is it a
msgpack map, whose `type` names a row of a table. `pack` writes what `logged` reads. The bytes are
the same as in all earlier versions, so that their logs can be read.

Commands are checked twice, each time by a table of fields:

* by `check`, before they are proposed: a program may pass any value to a `Cluster`, and only valid
  commands may go into the log;
* by `logged`, before they are applied: an entry may be from an older or a faulty version. Every
  node reads the entry by the same table, so all nodes refuse it or none does. A refused entry
  changes nothing, and the node goes on.

The check of the log allows a little more than `check`: values that older versions accepted and
applied (a node id written as 1.0 or True, a number as a config's value). If they were refused now,
later partitions would get other group numbers than when they were created.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

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
from ottla.broker.turn.commands import (
    AllocateProducerIds,
    Command,
    CreateTopic,
    DeleteTopic,
    Origin,
    Position,
)
from ottla.log.types import Unpacked
from ottla.raft.types import Matched, NodeId

MOST_PARTITIONS = 1 << 20
"""Most partitions in one command of the log; a setting limits new topics further."""
LONGEST_TEXT = 1 << 20


@dataclass(frozen=True, slots=True)
class PlaceTopic:
    """A creation as it is in the log, resolved (`ottla.broker.controller.requests`): with counts
    instead of defaults, and the nodes to choose from."""

    name: str
    partitions: int
    replication_factor: int
    nodes: tuple[NodeId, ...]
    """All nodes of the cluster at the time of the request."""
    configs: Mapping[str, str]
    unheard: tuple[NodeId, ...] = ()
    """Nodes on which nothing is placed if there are enough others."""
    assignments: tuple[tuple[NodeId, ...], ...] | None = None
    """The nodes of each partition. None: `PlacementCounts` chooses them."""
    by: Origin | None = None


Logged: TypeAlias = PlaceTopic | DeleteTopic | AllocateProducerIds

_INT32 = whole(-INT32_MAX - 1, INT32_MAX)
_NODE = whole(0, INT32_MAX)
_TEXT = text(LONGEST_TEXT)


def _null_or(field: Field) -> Field:
    return lambda value: None if value is None else field(value)


ASKED: Mapping[type, Fields] = {
    Position: {},
    CreateTopic: {
        "name": _TEXT,
        "partitions": _INT32,
        "replication_factor": _INT32,
        "assignments": listing(record(_INT32, listing(_INT32))),
        "configs": mapping(_TEXT, _null_or(_TEXT)),
        "validate_only": truth,
    },
    DeleteTopic: {"name": _null_or(_TEXT), "topic_id": _null_or(some_bytes(16))},
    AllocateProducerIds: {"node": _NODE},
}
"""The fields of each class of command as it is asked for. The origin is in the ticket."""

_OLD_NODE = whole(1, INT32_MAX, loose=True)
_NODES = listing(_OLD_NODE, 1, distinct=True)


def _old_config(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(whole()(value)) if isinstance(value, int) else str(_TEXT(value))


LOGGED: Mapping[str, Fields] = {
    "create_topic": {
        "name": text(MAX_NAME_LENGTH),
        "partitions": whole(1, MOST_PARTITIONS, loose=True),
        "replication_factor": whole(1, INT32_MAX, loose=True),
        "nodes": _NODES,
        "unheard": optional(listing(_OLD_NODE, distinct=True), ()),
        "configs": mapping(_TEXT, _old_config),
        "assignments": optional(listing(_NODES, 1)),
    },
    "delete_topic": {"name": optional(_TEXT), "topic_id": optional(some_bytes(16))},
    "allocate_producer_ids": {"node": _NODE},
}
"""The fields of each type of command in the log."""
_BY = optional(record(_NODE, whole(0, INT64_MAX), whole(0, INT64_MAX)))


def check(command: Command) -> Command:
    """The command, with checked fields. Raises `CommandError`, whose text is a whole sentence, if a
    field is invalid."""
    kind = type(command)
    fields = ASKED.get(kind)
    if fields is None:
        raise CommandError(f"There is no controller command {shown(command)}.")
    try:
        taken = read({name: getattr(command, name) for name in fields}, fields)
    except CommandError as error:
        raise CommandError(f"The controller command {kind.__name__} is none: {error}.") from error
    if kind is DeleteTopic and taken["name"] is None and taken["topic_id"] is None:
        raise CommandError("The controller command DeleteTopic says no name or topic_id.")
    return kind(**taken)


def logged(payload: bytes) -> Logged:
    """Read a command of the log, to be applied. Raises `CommandError` if it is not valid."""
    command = unpack(payload)
    kind = command.get("type") if isinstance(command, Mapping) else None
    if not isinstance(kind, str) or kind not in LOGGED:
        raise CommandError(f"its type is {shown(kind)}")
    taken = {**read(command, LOGGED[kind]), **read(command, {"by": _BY})}
    if kind == "create_topic":
        return _placed(taken)
    if kind == "delete_topic":
        if taken["name"] is None and taken["topic_id"] is None:
            raise CommandError("it has no name or topic_id")
        return DeleteTopic(**taken)
    return AllocateProducerIds(**taken)


def _placed(taken: dict[str, Unpacked]) -> PlaceTopic:
    """The creation with these fields. Raises `CommandError` if its replicas cannot be placed."""
    command = PlaceTopic(**taken)
    nodes, factor = command.nodes, command.replication_factor
    if not command.name:
        raise CommandError("it has an empty name")
    if command.assignments is not None:
        return command
    if factor > len(nodes):
        raise CommandError(f"it wants {factor} replicas on {len(nodes)} nodes")
    if all(node in command.unheard for node in nodes):
        raise CommandError(f"none of its {len(nodes)} nodes has been heard from")
    return command


def pack(command: Logged) -> bytes:
    """The bytes of a command in the log, for `logged`."""
    fields = _FIELDS[type(command)](command)
    if command.by is not None:
        fields["by"] = command.by
    packed: bytes = msgpack.packb(fields)
    return packed


def _fields_of_placement(command: PlaceTopic) -> dict[str, Unpacked]:
    fields: dict[str, Unpacked] = {
        "type": "create_topic",
        "name": command.name,
        "configs": dict(command.configs),
        "partitions": command.partitions,
        "replication_factor": command.replication_factor,
        "nodes": command.nodes,
    }
    if command.assignments is None:  # with assignments no node is chosen
        fields["unheard"] = command.unheard
    fields["assignments"] = command.assignments
    return fields


def _fields_of_deletion(command: DeleteTopic) -> dict[str, Unpacked]:
    return {"type": "delete_topic", "name": command.name, "topic_id": command.topic_id}


def _fields_of_allocation(command: AllocateProducerIds) -> dict[str, Unpacked]:
    return {"type": "allocate_producer_ids", "node": command.node}


_FIELDS: Mapping[type, Callable[[Matched], dict[str, Unpacked]]] = {
    PlaceTopic: _fields_of_placement,
    DeleteTopic: _fields_of_deletion,
    AllocateProducerIds: _fields_of_allocation,
}


def stored_config(value: object) -> str:
    """A config's value in a snapshot; an older version may have stored a number."""
    try:
        return _old_config(value)
    except FieldError:
        return ""
