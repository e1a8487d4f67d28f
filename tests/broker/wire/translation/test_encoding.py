"""Answers encoded item by item are, byte for byte, what kio's own writer makes of the same values.

Every schema of every answer that is served is held to that, with values of every kind of field:
a large answer is encoded in slices, and a client must not notice.
"""

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_entities import values_of
from ottla.broker.errors import ErrorCode
from ottla.broker.wire.answers import (
    ConfigCreated,
    CreateTopicsAnswer,
    DeleteRecordsAnswer,
    Lazily,
    RecordsDeleted,
    TopicCreated,
    TopicRecordsDeleted,
)
from ottla.broker.wire.api.table import TABLE
from ottla.broker.wire.codec import response_schema
from ottla.broker.wire.translation.encoding import PIECE_BYTES, encode
from ottla.broker.wire.translation.packing import Piece

ANSWERS = [
    (row.key, version) for row in TABLE for version in range(row.served[0], row.served[1] + 1)
]


def attributes(value):
    """The same as a handler's answer has it: by attribute, in it and in the items of its arrays."""
    values = {
        name: list(map(attributes, each)) if _of_entities(each) else each
        for name, each in value.items()
    }
    return SimpleNamespace(**values)


def _of_entities(value):
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def encoded(cls, value):
    """The bytes, and what they were in units."""
    pieces: list[Piece] = []
    units = len(list(encode(cls, value, pieces)))
    return b"".join(pieces), units


@pytest.mark.slow
@pytest.mark.parametrize(("key", "version"), ANSWERS)
@settings(max_examples=10)
@given(data=st.data())
def test_an_answer_is_what_the_codec_makes_of_it(key, version, data):
    schema = response_schema(key, version)
    values = data.draw(values_of(schema.cls))
    body, _ = encoded(schema.cls, attributes(values))
    assert body == schema.write(schema.build(**values))


def test_items_are_described_one_by_one_and_each_is_a_step():
    made = []

    def describe(number):
        made.append(number)
        return RecordsDeleted(number, number)

    schema = response_schema(21, 2)
    topics = [TopicRecordsDeleted("t", Lazily(range(100), describe))]
    pieces: list[Piece] = []
    steps = encode(schema.cls, DeleteRecordsAnswer(topics), pieces)
    for number in range(50):
        assert (next(steps), len(made)) == (1, number + 1)
    assert sum(steps) == 51  # and the topic
    parts = [
        {"partition_index": number, "error_code": ErrorCode.NONE, "low_watermark": number}
        for number in range(100)
    ]
    whole = schema.build(throttle_time=0, topics=[{"name": "t", "partitions": parts}])
    assert b"".join(pieces) == schema.write(whole)


def test_each_item_of_a_nested_array_is_a_step_beside_tagged_fields():
    """Thirty configs of a topic were one step, and an answer about 10,000 topics 150 ms a turn."""
    config = ConfigCreated("n", "v", False, 5, False)
    topic = TopicCreated("t", num_partitions=1, replication_factor=1, configs=[config] * 30)
    _, units = encoded(response_schema(19, 7).cls, CreateTopicsAnswer([topic] * 2))
    assert units == 62


def test_a_large_answer_is_cut_into_pieces():
    topic = TopicRecordsDeleted("t", Lazily(range(10_000), RecordsDeleted))
    pieces: list[Piece] = []
    units = list(encode(response_schema(21, 2).cls, DeleteRecordsAnswer([topic]), pieces))
    assert len(units) == 10_001
    assert len(pieces) > 2
    assert max(map(len, pieces)) < PIECE_BYTES + 100
