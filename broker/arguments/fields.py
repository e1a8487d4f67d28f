"""Fields of a command: which values each accepts, and how a table of fields reads a command.

A field is a function. It takes a value from a request or a log and returns it in the form that the
rest of the code wants. If the value is wrong, it raises `FieldError`, which says what is wanted. A
command is described by a table of fields by name. `read` takes exactly those fields; its error
names the first bad one. The tables of the controller's commands are in
`ottla.broker.controller.commands`, those of a partition's in `ottla.broker.partition.commands`. No
other code checks the types of what came in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import call
from typing import TypeAlias

import msgpack

from ottla.broker.arguments.arguments import INT64_MAX, as_whole
from ottla.broker.arguments.spelling import shown
from ottla.log.types import Unpacked

Field: TypeAlias = Callable[[object], Unpacked]
Fields: TypeAlias = Mapping[str, Field]


class FieldError(ValueError):
    """A field does not accept this value; the message says what is wanted."""


class CommandError(ValueError):
    """This is not a valid command; the message says why."""


MISSING: Unpacked = object()
"""Stands for a field that a command does not have."""


def unpack(payload: bytes) -> Unpacked:
    """The values in the payload of a log entry. Raises `CommandError` if it is not msgpack."""
    try:
        return msgpack.unpackb(payload)
    except (ValueError, TypeError, OverflowError, msgpack.UnpackException) as error:
        raise CommandError(f"its {len(payload)} bytes are not msgpack ({error})") from error


def read(command: Mapping[str, object], fields: Fields) -> dict[str, Unpacked]:
    """The fields of a command, each as its row in the table returns it. Fields that the table does
    not name are left out. Raises `CommandError`."""
    taken = {}
    for name, field in fields.items():
        value = command.get(name, MISSING)
        try:
            taken[name] = field(value)
        except FieldError as wanted:
            said = f"has no {name}" if value is MISSING else f"has {name} {shown(value)}"
            raise CommandError(f"it {said}; {wanted} is wanted") from wanted
    return taken


def whole(least: int = -INT64_MAX - 1, most: int = INT64_MAX, *, loose: bool = False) -> Field:
    """A whole number. `loose`: accept 2.0 for 2, which older versions wrote."""

    def field(value: object) -> int:
        if value.__class__ is int and least <= value <= most:
            return value  # the usual case, first: wide topics have thousands of numbers
        if loose and isinstance(value, float) and value.is_integer():
            value = int(value)
        number = int(value) if isinstance(value, bool) and loose else as_whole(value)
        if number is None or not least <= number <= most:
            raise FieldError(f"a whole number from {least} to {most}")
        return number

    return field


def text(most: int) -> Field:
    """A text of at most `most` characters."""

    def field(value: object) -> str:
        if not isinstance(value, str) or len(value) > most:
            raise FieldError(f"a text of at most {most} characters")
        return str.__str__(value)

    return field


def truth(value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise FieldError("True or False")
    return value


def some_bytes(size: int) -> Field:
    """Exactly `size` bytes."""

    def field(value: object) -> bytes:
        if not isinstance(value, bytes) or len(value) != size:
            raise FieldError(f"{size} bytes")
        return value

    return field


def optional(field: Field, default: object = None) -> Field:
    """The same field, or `default` if it is missing or None."""
    return lambda value: default if value is MISSING or value is None else field(value)


def listing(field: Field, least: int = 0, *, distinct: bool = False) -> Field:
    """A list of at least `least` such fields, as a tuple; `distinct`: no two of them equal."""

    def taken(value: object) -> tuple[object, ...]:
        if not isinstance(value, list | tuple) or len(value) < least:
            raise FieldError(f"a list of at least {least}")
        members = tuple(map(field, value))
        if distinct and len(dict.fromkeys(members)) < len(members):
            raise FieldError("a list without repetitions")
        return members

    return taken


def record(*fields: Field) -> Field:
    """A list with one member for each of these fields, in this order, as a tuple."""

    def taken(value: object) -> tuple[object, ...]:
        if not isinstance(value, list | tuple) or len(value) != len(fields):
            raise FieldError(f"a list of {len(fields)}")
        return tuple(map(call, fields, value))

    return taken


def mapping(key: Field, field: Field) -> Field:
    """A map with such keys and values."""

    def taken(value: object) -> dict[object, object]:
        if not isinstance(value, Mapping):
            raise FieldError("a map")
        return {key(name): field(each) for name, each in value.items()}

    return taken
