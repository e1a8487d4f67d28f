"""Answers encoded item by item are, byte for byte, what kio's own writer makes of the same values.

Every schema of every answer that is served is held to that, with values of every kind of field:
a large answer is encoded in slices, and a client must not notice.
"""

from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.api.encoding import PIECE_BYTES, Lazily, encode
from ottla.broker.wire.api.table import TABLE
from ottla.broker.wire.codec import response_schema
from ottla.broker.wire.guard import nested_entity

ANSWERS = [
    (row.key, version) for row in TABLE for version in range(row.served[0], row.served[1] + 1)
]
INT = st.integers(-(2**31), 2**31 - 1)
PLAIN = {
    "bool": st.booleans(),
    "int8": st.integers(-128, 127),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": INT,
    "int64": st.integers(-(2**63), 2**63 - 1),
    "string": st.text(max_size=20),
    "bytes": st.binary(max_size=20),
    "records": st.binary(max_size=20),
    "uuid": st.binary(min_size=16, max_size=16),
    "error_code": st.sampled_from(ErrorCode),
    "timedelta_i32": st.integers(0, 2**31 - 1),
    "datetime_i64": st.integers(-1, 10**12),
    "float64": st.floats(allow_nan=False),
}


def values_of(cls):
    """Plain values of an entity, some fields left out where the schema has a default."""
    found = {each.name: value_of(each) for each in fields(cls)}
    tagged = [each.name for each in fields(cls) if "tag" in each.metadata]
    always = {name: value for name, value in found.items() if name not in tagged}
    return st.fixed_dictionaries(always, optional={name: found[name] for name in tagged})


def value_of(field):
    nested, is_array = nested_entity(field.type)
    one = values_of(nested) if nested else PLAIN[field.metadata["kafka_type"]]
    if is_array or str(field.type).startswith("tuple"):
        return st.lists(one, max_size=3)
    return one


def encoded(cls, values):
    """The bytes, and what they were in units."""
    pieces: list[bytes] = []
    units = len(list(encode(cls, values, pieces)))
    return b"".join(pieces), units


@pytest.mark.parametrize(("key", "version"), ANSWERS)
@settings(max_examples=10)
@given(data=st.data())
def test_an_answer_is_what_the_codec_makes_of_it(key, version, data):
    schema = response_schema(key, version)
    values = data.draw(values_of(schema.cls))
    body, _ = encoded(schema.cls, values)
    assert body == schema.write(schema.build(**values))


def test_items_are_described_one_by_one_and_each_is_a_step():
    made = []

    def describe(number):
        made.append(number)
        return {"partition_index": number, "error_code": ErrorCode.NONE, "low_watermark": number}

    schema = response_schema(21, 2)
    topics = [{"name": "t", "partitions": Lazily(range(100), describe)}]
    pieces: list[bytes] = []
    steps = encode(schema.cls, {"throttle_time": 0, "topics": topics}, pieces)
    for number in range(50):
        assert (next(steps), len(made)) == (1, number + 1)
    assert sum(steps) == 51  # and the topic
    whole = [{"name": "t", "partitions": [describe(number) for number in range(100)]}]
    assert b"".join(pieces) == schema.write(schema.build(throttle_time=0, topics=whole))


def test_each_item_of_a_nested_array_is_a_step_beside_tagged_fields_nobody_gave():
    """Thirty configs of a topic were one step, and an answer about 10,000 topics 150 ms a turn."""
    schema = response_schema(19, 7)
    config = {"name": "n", "value": "v", "read_only": False, "config_source": 5}
    topic = {
        "name": "t",
        "topic_id": bytes(16),
        "error_code": ErrorCode.NONE,
        "error_message": None,
        "num_partitions": 1,
        "replication_factor": 1,
        "configs": [config | {"is_sensitive": False}] * 30,
    }
    _, units = encoded(schema.cls, {"throttle_time": 0, "topics": [topic] * 2})
    assert units == 62


def test_a_large_answer_is_cut_into_pieces():
    schema = response_schema(21, 2)
    part = {"error_code": ErrorCode.NONE, "low_watermark": 0}
    topic = {
        "name": "t",
        "partitions": Lazily(range(10_000), lambda n: {**part, "partition_index": n}),
    }
    pieces: list[bytes] = []
    units = list(encode(schema.cls, {"throttle_time": 0, "topics": [topic]}, pieces))
    assert len(units) == 10_001
    assert len(pieces) > 2
    assert max(map(len, pieces)) < PIECE_BYTES + 100
