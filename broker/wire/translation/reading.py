"""Translates kio's entities to request values (`ottla.broker.wire.requests`).

One rule serves all APIs: a field of the value is the attribute of that name of kio's entity, or the
field's default if the version does not have it. Durations become microseconds, topic ids 16 bytes.
Arrays of entities become collections that are translated while they are iterated, because a request
may name thousands of topics, and each takes a microsecond.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from operator import attrgetter
from types import UnionType
from typing import Union, get_args, get_origin, get_type_hints

from ottla.broker.wire import requests
from ottla.broker.wire.answers import Lazily
from ottla.broker.wire.codec import id_bytes
from ottla.broker.wire.guard import Entity, nested_entity

Translate = Callable[[Entity], Entity]

REQUESTS: dict[int, type[Entity]] = {
    0: requests.ProduceRequest,
    1: requests.FetchRequest,
    2: requests.ListOffsetsRequest,
    3: requests.MetadataRequest,
    8: requests.OffsetCommitRequest,
    9: requests.OffsetFetchRequest,
    10: requests.FindCoordinatorRequest,
    11: requests.GroupRequest,
    12: requests.GroupRequest,
    13: requests.GroupRequest,
    14: requests.GroupRequest,
    15: requests.DescribeGroupsRequest,
    16: requests.GroupRequest,
    18: requests.ApiVersionsRequest,
    19: requests.CreateTopicsRequest,
    20: requests.DeleteTopicsRequest,
    21: requests.DeleteRecordsRequest,
    22: requests.InitProducerIdRequest,
    23: requests.OffsetForLeaderEpochRequest,
    42: requests.DeleteGroupsRequest,
    47: requests.OffsetDeleteRequest,
    60: requests.DescribeClusterRequest,
    68: requests.ConsumerGroupHeartbeatRequest,
    69: requests.ConsumerGroupDescribeRequest,
}
"""API key to the class of its request values."""

RENAMED = {"index": "partition"}
"""Kafka's field names that are methods of a tuple, and the names used here."""

_MICROSECOND = timedelta(microseconds=1)


def translator(value: type[Entity], entity: type[Entity]) -> Translate:
    """The function that makes a `value` from an `entity`."""
    types = {RENAMED.get(each.name, each.name): each for each in fields(entity)}
    hints = get_type_hints(value)
    named = [name for name in value._fields if name in types]
    converters = [(name, _converter(types[name], hints[name])) for name in named]
    names = [types[name].name for name in named]
    if any(convert is not None for _, convert in converters):
        return _converting(value, names, converters)
    if len(names) > 1 and named == list(value._fields[: len(names)]):
        take = attrgetter(*names)
        return lambda found: value(*take(found))
    both = list(zip(named, names, strict=True))
    return lambda found: value(**{name: getattr(found, kio_name) for name, kio_name in both})


def _converting(
    value: type[Entity],
    names: list[str],
    converters: list[tuple[str, Callable[[Entity], Entity] | None]],
) -> Translate:
    steps = [(name, *each) for name, each in zip(names, converters, strict=True)]

    def translate(found: Entity) -> Entity:
        values = {}
        for kio_name, name, convert in steps:
            plain = getattr(found, kio_name)
            values[name] = plain if convert is None else convert(plain)
        return value(**values)

    return translate


def _converter(field: Entity, hint: Entity) -> Callable[[Entity], Entity] | None:
    """The function that converts one field; None: the field is taken as it is."""
    kafka_type = field.metadata.get("kafka_type")
    if kafka_type == "timedelta_i32":
        return _micros
    if kafka_type == "uuid":
        return id_bytes
    nested, _ = nested_entity(field.type)
    if nested is None:
        return None
    translate = translator(_item(hint), nested)
    return lambda found: None if found is None else Lazily(found, translate)


def _micros(duration: timedelta) -> int:
    return duration // _MICROSECOND


def _item(hint: Entity) -> type[Entity]:
    """The item class of a field that is a collection, or a collection or None."""
    if get_origin(hint) in {Union, UnionType}:
        hint = next(each for each in get_args(hint) if each is not type(None))
    item: type[Entity] = get_args(hint)[0]
    return item
