"""The controller's commands: what may be in one that is asked for, and their bytes in the log.

A command is a value (`ottla.broker.turn.commands`, and `PlaceTopic` here) wherever it goes, and a
msgpack map in the log alone, where its `type` names its row in a table. `pack` writes what `logged`
reads. Its bytes are those of all versions before: a log goes on.

What is in a command is looked at twice, each time by a table of its fields:

* by `check`, before anything is proposed. Types say what a field holds, and a program that has a
  `Cluster` need not have read them; the log takes only sense.
* by `logged`, before it is applied. What lies in a log may have been put there by an older version,
  or by one with a fault. Every node reads the same entry by the same table, so all of them refuse
  it or none does; what is refused changes nothing, and is no reason for a node to stop.

In the log a little more is taken than is asked for today: what older versions let in, and could
apply (nodes written 1.0 or True, a config's value as a number). Were it refused, the partitions
that come after it would be counted differently than when they were created.
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
"""In one command of the log; a setting says how many are created."""
LONGEST_TEXT = 1 << 20


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
"""As asked for. Who asked is not among it: the ticket says so."""

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
        "unheard": optional(listing(_OLD_NODE), ()),
        "configs": mapping(_TEXT, _old_config),
        "assignments": optional(listing(_NODES, 1)),
    },
    "delete_topic": {"name": optional(_TEXT), "topic_id": optional(some_bytes(16))},
    "allocate_producer_ids": {"node": _NODE},
}
"""As they lie in the log."""
_BY = optional(record(_NODE, whole(0, INT64_MAX), whole(0, INT64_MAX)))


def check(command: Command) -> Command:
    """The command that was asked for, when each of its fields holds what it says. Raises
    `CommandError`, in a sentence."""
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
    """A command out of the log, ready to be applied. Raises `CommandError`."""
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
    """Raises `CommandError` where the replicas cannot be placed."""
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


def _fields_of_placement(command: PlaceTopic) -> dict[str, Unpacked]:
    fields: dict[str, Unpacked] = {
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
    """A config's value out of a snapshot, where an older version may have left a number."""
    try:
        return _old_config(value)
    except FieldError:
        return ""
