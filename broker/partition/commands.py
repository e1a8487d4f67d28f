"""The commands in a partition's log: msgpack lists of a name and one argument.

    ["expire", [producer, ...]]    producers to forget, because they are idle or the table is full;
                                   each an id, or [id, epoch] if the profile has `epochs_apart`
    ["delete_records", offset]     a new log start offset

Commands are checked before they are applied; `ottla.broker.controller.commands` says why.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgpack

from ottla.broker.arguments.arguments import INT64_MAX
from ottla.broker.arguments.fields import (
    CommandError,
    Field,
    FieldError,
    listing,
    record,
    unpack,
    whole,
)
from ottla.broker.arguments.spelling import shown
from ottla.broker.partition.state import PartitionSettings
from ottla.idempotency.identity import MAX_EPOCH, NO_EPOCH
from ottla.log.types import Offset, Unpacked
from ottla.raft.types import LogIndex

log = logging.getLogger("ottla")

_ID = whole(0, INT64_MAX)
_ID_AND_EPOCH = record(_ID, whole(NO_EPOCH, MAX_EPOCH))


def _producer(value: object) -> object:
    return _ID_AND_EPOCH(value) if isinstance(value, list | tuple) else _ID(value)


COMMANDS: Mapping[str, Field] = {
    "expire": listing(_producer),
    "delete_records": whole(0, INT64_MAX),
}
"""By name: the type of the argument."""


def encode_command(name: str, argument: object) -> bytes:
    """A command as it is stored in the log."""
    packed: bytes = msgpack.packb([name, argument])
    return packed


def sound_command(
    payload: bytes, end: Offset, settings: PartitionSettings, index: LogIndex
) -> tuple[str, Unpacked]:
    """Name and argument of the command at log `index`, where the log end offset is `end`. If the
    payload is not a valid command, the name is empty, and the broker's log says why."""
    try:
        return _decode(payload, end)
    except CommandError as why:
        log.warning(
            "node %d, group %d: the command at log index %d is refused, and changes nothing: %s",
            settings.node,
            settings.group,
            index,
            why,
        )
        return "", None


def _decode(payload: bytes, end: Offset) -> tuple[str, Unpacked]:
    command = unpack(payload)
    if not isinstance(command, list) or len(command) != 2:
        raise CommandError(f"it is {shown(command)}, not a name and an argument")
    name, argument = command
    field = COMMANDS.get(name) if isinstance(name, str) else None
    if field is None:
        raise CommandError(f"its name is {shown(name)}")
    try:
        argument = field(argument)
    except FieldError as wanted:
        raise CommandError(f"{name} of {shown(argument)}; {wanted} is wanted") from wanted
    if name == "delete_records" and argument > end:
        raise CommandError(f"delete_records up to {argument}, but the log ends at {end} there")
    return name, argument
