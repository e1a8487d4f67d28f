"""Valid requests and answers of all APIs and versions served, with real content, from a seed.

Values are chosen so that a request gets far: topics that exist and some that do not, partitions,
offsets, valid batches, with and without compression. No request leaves anything behind: topics are
validated and not created, and names to be deleted do not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from random import Random
from struct import Struct
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin

from fuzz_java import Java, Spot
from ottla.broker.errors import ErrorCode
from ottla.broker.wire.api.table import TABLE
from ottla.broker.wire.codec import Schema, build, request_schema, response_schema
from ottla.log.build import Codec, NewRecord, build_batch

FRAME = Struct(">ihhih")
SERVED = [(row.key, v) for row in TABLE for v in range(row.served[0], row.served[1] + 1)]
PRODUCE = 0
DELETE_TOPICS = 20
TOPIC = "t"
PARTITIONS = 3
"""What the broker under fire should have."""


class Frame(NamedTuple):
    """A request, with the size in front, and the places of its lengths and counts."""

    data: bytes
    spots: tuple[Spot, ...]
    batch: tuple[int, int] | None = None
    """Where its first record batch lies."""


def request(rng: Random, key: int, version: int) -> Frame:
    """A valid request."""
    schema = request_schema(key, version)
    head = head_of(key, version, rng)
    body = schema.write(entity(schema.cls, rng))
    data = head + (b"\0" if schema.header_tags else b"") + body
    reader = Java(data, len(data) - len(body))
    reader.entity(schema.cls)
    length = Spot(12, 2, "short")
    tags = [Spot(len(head), 1, "varint")] if schema.header_tags else []
    framed = FRAME.pack(len(data) - 4, *FRAME.unpack_from(data)[1:]) + data[FRAME.size :]
    batch = _batch_in(framed) if key == PRODUCE else None
    return Frame(framed, (length, *tags, *reader.spots), batch)


def head_of(key: int, version: int, rng: Random) -> bytes:
    """A header without tagged fields, with room for the size."""
    client_id = rng.choice([None, b"", b"fuzz"])
    length = -1 if client_id is None else len(client_id)
    return FRAME.pack(0, key, version, rng.randrange(1, 2**30), length) + (client_id or b"")


def _batch_in(data: bytes) -> tuple[int, int] | None:
    """Magic 2 stands 16 bytes behind the beginning of a batch, whose length is known from it."""
    for at in range(FRAME.size, len(data) - 61):
        size = int.from_bytes(data[at + 8 : at + 12], "big") + 12
        if data[at + 16] == 2 and 61 < size <= len(data) - at and data[at : at + 8] == bytes(8):
            return at, at + size
    return None


def answer(rng: Random, key: int, version: int) -> tuple[Schema, bytes, tuple[Spot, ...]]:
    """The body of a valid answer, and where its lengths lie."""
    schema = response_schema(key, version)
    body = schema.write(entity(schema.cls, rng))
    reader = Java(body)
    reader.entity(schema.cls)
    return schema, body, tuple(reader.spots)


def entity(cls: type[Any], rng: Random) -> Any:
    """A value of a schema or of a part of it."""
    requested: dict[str, tuple[Any, ...]] = {}
    if "Request" in cls.__header_schema__.__name__:
        requested = REQUESTED | (DELETED if cls.__api_key__ == DELETE_TOPICS else {})
    return build(cls, **{each.name: _field(each, rng, requested) for each in fields(cls)})


def _field(field: Any, rng: Random, requested: dict[str, tuple[Any, ...]]) -> Any:
    kind = field.type
    if NoneType in get_args(kind):
        if rng.random() < 0.2 and field.name != "records" and "tag" not in field.metadata:
            return None
        kind = next(each for each in get_args(kind) if each is not NoneType)
    is_array = get_origin(kind) is tuple
    item = get_args(kind)[0] if is_array else kind
    if hasattr(item, "__flexible__"):

        def one() -> Any:
            return entity(item, rng)
    elif field.name in requested:

        def one() -> Any:
            return rng.choice(requested[field.name])

    else:

        def one() -> Any:
            return ANYTHING[field.metadata["kafka_type"]](rng)

    return [one() for _ in range(rng.choice([0, 1, 1, 2, 3]))] if is_array else one()


def batch(rng: Random) -> bytes:
    """A good record batch."""
    count = rng.choice([1, 1, 2, 5, 70])
    values = [
        NewRecord(rng.randbytes(rng.randrange(12)), key=rng.choice([None, b"k"]))
        for _ in range(count)
    ]
    return build_batch(values, codec=rng.choice(CODECS))


CODECS = [Codec.NONE, Codec.NONE, Codec.NONE, *Codec]
NAMES = (TOPIC, TOPIC, TOPIC, "not-there", "ümlaut", "")

REQUESTED: dict[str, tuple[Any, ...]] = {
    "name": NAMES,
    "topic": NAMES,
    "topic_names": ("not-there", "ümlaut", ""),
    "topic_id": (None,),
    "transactional_id": (None,),
    "cluster_id": (None,),
    "index": tuple(range(PARTITIONS)),
    "partition": tuple(range(PARTITIONS)),
    "partition_index": tuple(range(PARTITIONS)),
    "partitions": tuple(range(PARTITIONS)),
    "broker_ids": (1,),
    "acks": (-1, 1, 1, 0),
    "timeout": (0, 100, 1000),
    "max_wait": (0, 1),
    "min_bytes": (0, 1),
    "max_bytes": (1 << 16,),
    "partition_max_bytes": (1 << 12,),
    "fetch_offset": tuple(range(3)),
    "offset": (0,),
    "timestamp": (-1, -2, -3, 0, 1_700_000_000_000),
    "replica_id": (-1,),
    "session_id": (0,),
    "session_epoch": (-1,),
    "current_leader_epoch": (-1,),
    "isolation_level": (0, 1),
    "num_partitions": (1,),
    "replication_factor": (1, -1),
    "validate_only": (True,),
    "allow_auto_topic_creation": (False,),
    "producer_id": (-1,),
    "producer_epoch": (-1,),
    "value": ("delete", "1000", "true"),
    "client_software_name": ("fuzz",),
    "client_software_version": ("1.0",),
    "endpoint_type": (1,),
}
"""By the name of the field, in requests."""
DELETED = {"name": REQUESTED["topic_names"]}

ANYTHING: dict[str, Callable[[Random], Any]] = {
    "bool": lambda rng: rng.random() < 0.5,
    "int8": lambda rng: rng.randrange(-3, 100),
    "int16": lambda rng: rng.randrange(-3, 1000),
    "int32": lambda rng: rng.choice([-1, 0, 1, 300, 70_000, 2**31 - 1]),
    "int64": lambda rng: rng.choice([-1, 0, 1, 300, 70_000, 2**63 - 1]),
    "string": lambda rng: rng.choice(["", "x", "name", "ümlaut", "long" * 40]),
    "records": batch,
    "uuid": lambda rng: rng.randbytes(16),
    "timedelta_i32": lambda rng: rng.choice([0, 17, 100_000]),
    "timedelta_i64": lambda rng: timedelta(milliseconds=rng.choice([-1, 0, 100_000])),
    "bytes": lambda rng: rng.randbytes(rng.randrange(5)),
    "datetime_i64": lambda rng: rng.choice([-1, 0, 1_700_000_000_000]),
    "error_code": lambda rng: rng.choice([ErrorCode.NONE, ErrorCode.NOT_CONTROLLER]),
}
"""By its type, where nothing else is asked for."""
