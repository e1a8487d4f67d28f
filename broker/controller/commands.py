"""The controller's commands, by table: what each consists of, as it is submitted and in the log.

A command is a msgpack map; `type` names its row. It is looked at twice:

* `submitted`, before anything is proposed. A peer may send anything, and so may a program that has
  a `Cluster`; the log takes only sense.
* `logged`, before it is applied. What lies in a log may have been put there by an older version, or
  by one with a fault. Every node reads the same entry by the same table, so all of them refuse it
  or none does; what is refused changes nothing, and is no reason for a node to stop.

In the log a little more is taken than is submitted today: what older versions let in, and could
apply (nodes written 1.0 or True, a config's value as a number). Were it refused, the partitions
that come after it would be counted differently than when they were created.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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

MOST_PARTITIONS = 1 << 20
"""In one command of the log; a setting says how many are created."""
LONGEST_TEXT = 1 << 20
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
}
"""As asked for: a name may be anything, and a count -1, the default."""

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
"""Resolved (`ottla.broker.controller.requests`): counts instead of defaults, and the nodes to
choose from."""
_BY = optional(record(_NODE, whole(0, INT64_MAX), whole(0, INT64_MAX)))


def submitted(command: Any) -> dict[str, Any]:
    """A command as it was asked for, with its defaults. Raises `CommandError`, in a sentence."""
    kind = command.get("type", "") if isinstance(command, Mapping) else command
    if not isinstance(kind, str) or kind not in SUBMITTED:
        raise CommandError(f"There is no controller command {shown(kind)}.")
    try:
        taken = read(command, SUBMITTED[kind])
    except CommandError as error:
        raise CommandError(f"The controller command {kind!r} is none: {error}.") from error
    if kind == "delete_topic" and taken["name"] is None and taken["topic_id"] is None:
        raise CommandError(f"The controller command {kind!r} says no name or topic_id.")
    return {"type": kind, **taken}


def logged(payload: bytes) -> dict[str, Any]:
    """A command out of the log, ready to be applied. Raises `CommandError`."""
    command = unpack(payload)
    kind = command.get("type") if isinstance(command, Mapping) else None
    if not isinstance(kind, str) or kind not in LOGGED:
        raise CommandError(f"its type is {shown(kind)}")
    taken = {"type": kind, **read(command, LOGGED[kind]), **read(command, {"by": _BY})}
    if kind == "create_topic":
        _check_placement(taken)
    elif kind == "delete_topic" and taken["name"] is None and taken["topic_id"] is None:
        raise CommandError("it has no name or topic_id")
    return taken


def _check_placement(command: Mapping[str, Any]) -> None:
    """Whether the replicas can be placed. Raises `CommandError`."""
    nodes, factor = command["nodes"], command["replication_factor"]
    if not command["name"]:
        raise CommandError("it has an empty name")
    if command["assignments"] is not None:
        return
    if factor > len(nodes):
        raise CommandError(f"it wants {factor} replicas on {len(nodes)} nodes")
    if all(node in command["unheard"] for node in nodes):
        raise CommandError(f"none of its {len(nodes)} nodes is heard of")


def stored_config(value: Any) -> str:
    """A config's value out of a snapshot, where an older version may have left a number."""
    try:
        return _old_config(value)
    except FieldError:
        return ""
