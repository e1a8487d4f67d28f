"""Checks the arguments of the raw client before a request is written.

The raw client sends exactly what its caller asks for, so it must not guess. An unknown API or
field, a version that the codec does not know, or a value that does not fit raises `ConfigError`,
which says what is possible. A request may contain fields that only another version of the API has;
the codec leaves them out (`codec.build`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields as dataclass_fields

from ottla.broker.arguments.arguments import items, text, whole
from ottla.broker.arguments.spelling import listed, no_such, shown
from ottla.broker.errors import ConfigError
from ottla.broker.wire.api.table import BY_KEY
from ottla.broker.wire.codec import API_NAMES, field_names, known_versions, request_schema
from ottla.broker.wire.guard import Entity, nested_entity

API_KEYS: dict[str, int] = {name: key for key, name in API_NAMES.items()}
DEEPEST = 10
"""How deep lists and entities may be nested; no request has more than seven levels."""
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def api_key(api: object) -> int:
    """The key of an API by its name: `create_topics`, or `CreateTopics` as Kafka writes it."""
    name = text("api", api)
    key = API_KEYS.get(_CAPITAL.sub("_", name).lower())
    if key is None:
        raise ConfigError(f"api: there is no {no_such(name, API_KEYS, all_of_them=True)}")
    return key


def chosen_version(key: int, version: object) -> int:
    """`version`, if the codec knows it; for None the highest version that Ottla serves. Raises
    `ConfigError`."""
    if version is None and key in BY_KEY:
        return BY_KEY[key].served[1]
    known = known_versions(key)
    if version is None:
        return known[-1]
    chosen = whole("version", version)
    if chosen not in known:
        possible = f"{known[0]} to {known[-1]} are possible"
        raise ConfigError(f"version is {shown(version)}; of {API_NAMES[key]} {possible}")
    return chosen


def check_fields(key: int, version: int, fields: Mapping[str, object]) -> None:
    """Raise `ConfigError` if a field exists in no version of the API, or if a list or a text has
    another type."""
    named = set(_named(fields))
    cls = request_schema(key, version).cls
    if not named <= field_names(cls):
        _check_names(key, named)
    _check_values(cls, fields)


def _check_names(key: int, named: set[str]) -> None:
    known: set[str] = set()
    for each in known_versions(key):
        known |= field_names(request_schema(key, each).cls)
    for name in sorted(named - known):
        raise ConfigError(f"{API_NAMES[key]} has no field {no_such(name, sorted(known))}")


def _check_values(cls: type[Entity], values: Mapping[str, object], inside: str = "") -> None:
    """Raise `ConfigError` if a list or a text has another type: the codec would take a text for a
    list of letters, and bytes for a text."""
    for item in dataclass_fields(cls):
        value, where = values.get(item.name), f"{inside}{item.name}"
        nested, is_array = nested_entity(item.type)
        if is_array:
            value = _members(where, value)
        is_text = item.metadata.get("kafka_type") == "string"
        for place, each in enumerate(value if isinstance(value, list | tuple) else [value]):
            at = f"{where}[{place}]" if is_array else where
            if is_text and isinstance(each, bytes | bytearray):
                raise ConfigError(f"{at} is {shown(each)}; a text is wanted")
            if nested is not None and isinstance(each, Mapping):
                _check_values(nested, each, f"{at}.")


def _members(where: str, value: object) -> object:
    """The members of an array, at most as many as an argument may have. A value that is no
    collection is returned as it is. Raises `ConfigError`."""
    if isinstance(value, list | tuple) or not isinstance(value, Iterable):
        return value
    if isinstance(value, str | bytes | bytearray | Mapping | Iterator):
        raise ConfigError(f"{where} is {shown(value)}; a list is wanted")
    return items(where, value, "values", ordered=True)


def _named(value: object, depth: int = DEEPEST) -> Iterator[str]:
    """Every field name in a request, at most `depth` levels deep: a value may contain itself."""
    if not depth:
        return
    if isinstance(value, Mapping):
        yield from map(str, value)
    if isinstance(value, list | tuple | Mapping):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _named(each, depth - 1)


def unfit(key: int, version: int, error: Exception) -> ConfigError:
    """The error to raise if the codec cannot make a request of these values."""
    names = listed(request_schema(key, version).shape)
    why = f"{type(error).__name__}: {shown(str(error))}"
    return ConfigError(f"{API_NAMES[key]} {version} of {names}: a value does not fit ({why})")
