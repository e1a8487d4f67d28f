"""Answers are decoded as kio decodes them, and each field is found where it lies.

kio is the independent decoder: fields of random answers must be the same, for every version of
every API that a case may ask.
"""

from dataclasses import fields as fields_of
from datetime import datetime, timedelta
from enum import Enum
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_entities import values_of
from ottla.broker.errors import ErrorCode, FrameError
from ottla.broker.wire.codec import known_versions, response_schema
from ottla.broker.wire.guard import nested_entity
from ottla.compare.fields import KEYS, decode
from ottla.log.build import build_batch

APIS = (0, 1, 2, 3, 10, 18, 19, 20, 21, 22, 23, 60)
ANSWERS = [(key, version) for key in APIS for version in known_versions(key)]


def plain(value):
    """A value of kio's as a case writes it."""
    if isinstance(value, Enum):
        return value.name.upper()
    if isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    return value.hex() if isinstance(value, bytes) else value


def flat(entity, path=""):
    """The fields of an entity by path, as `decode` orders them."""
    found: dict[str, object] = {}
    for item in fields_of(type(entity)):
        value, here = getattr(entity, item.name), f"{path}{item.name}"
        kind = item.metadata.get("kafka_type")
        if kind == "records" or "tag" in item.metadata:
            continue
        if isinstance(value, tuple):
            found[f"{here}.length"] = len(value)
            for number, each in enumerate(sorted(value, key=by_key)):
                if nested_entity(item.type)[0]:
                    found |= flat(each, f"{here}[{number}].")
                else:
                    found[f"{here}[{number}]"] = plain(each)
        elif nested_entity(item.type)[0] is not None and value is not None:
            found |= flat(value, f"{here}.")
        elif kind == "uuid":
            found[here] = str(UUID(int=0) if value is None else value)
        elif kind == "datetime_i64":
            found[here] = -1 if value is None else plain(value)
        else:
            found[here] = plain(value)
    return found


def by_key(element):
    if not hasattr(element, "__dataclass_fields__"):
        return 0, ""
    value = next((getattr(element, key) for key in KEYS if hasattr(element, key)), None)
    return (value, "") if isinstance(value, int) else (0, str(value or ""))


@pytest.mark.slow
@pytest.mark.parametrize(("key", "version"), ANSWERS)
def test_it_is_what_kio_reads(key, version):
    schema = response_schema(key, version)

    @settings(max_examples=3, deadline=None, database=None)
    @given(values_of(schema.cls), st.just(0))
    def check(values, _):
        entity = schema.build(**values)
        body = schema.write(entity)
        found = decode(schema.cls, b"\0" * 8 + body, 8)
        told = {path: each.value for path, each in found.items() if ".records" not in path}
        expected = {path: each for path, each in flat(entity).items() if ".records" not in path}
        assert told == expected
        assert all(8 <= each.start <= each.end <= 8 + len(body) for each in found.values())

    check()


def produce_answer(**partition):
    schema = response_schema(0, 9)
    known = {
        "index": 0,
        "error_code": ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        "base_offset": -1,
        "log_append_time": -1,
        "log_start_offset": 3,
        "record_errors": [],
        "error_message": None,
    }
    topic = {"name": "t", "partition_responses": [known | partition]}
    return schema, schema.write(schema.build(responses=[topic], throttle_time=0))


def test_a_field_is_where_its_bytes_are():
    schema, body = produce_answer()
    found = decode(schema.cls, body, 0)
    code = found["responses[0].partition_responses[0].error_code"]
    assert code.value == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert body[code.start : code.end] == (45).to_bytes(2)


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_cut_answer_is_told(cut):
    schema, body = produce_answer()
    with pytest.raises(FrameError):
        decode(schema.cls, body[:-cut], 0)


def test_an_answer_cut_within_an_id_is_told():
    """It ended in a traceback."""
    schema = response_schema(0, 13)
    topic = {"topic_id": bytes(range(16)), "partition_responses": []}
    body = schema.write(schema.build(responses=[topic], throttle_time=0))
    for length in range(len(body)):
        with pytest.raises(FrameError):
            decode(schema.cls, body[:length], 0)


def test_elements_are_in_order_of_their_numbers():
    schema = response_schema(0, 9)
    parts: list[dict[str, object]] = [
        {"index": index, "error_code": ErrorCode.NONE, "base_offset": index, "log_append_time": -1}
        | {"log_start_offset": 0, "record_errors": [], "error_message": None}
        for index in (10, 2, 1)
    ]
    topic = {"name": "t", "partition_responses": parts}
    body = schema.write(schema.build(responses=[topic], throttle_time=0))
    found = decode(schema.cls, body, 0)
    indexes = [found[f"responses[0].partition_responses[{n}].index"].value for n in range(3)]
    assert indexes == [1, 2, 10]


def test_batches_of_a_fetch_are_fields():
    schema = response_schema(1, 11)
    batches = build_batch([b"a", b"b"], producer_id=7, producer_epoch=1, base_sequence=2)
    batches += build_batch([b"c"])[:-2]
    partition = {
        "partition_index": 0,
        "error_code": ErrorCode.NONE,
        "high_watermark": 2,
        "last_stable_offset": 2,
        "log_start_offset": 0,
        "aborted_transactions": None,
        "preferred_read_replica": -1,
        "records": batches,
    }
    topic = {"topic": "t", "partitions": [partition]}
    body = schema.write(
        schema.build(throttle_time=0, error_code=ErrorCode.NONE, session_id=0, responses=[topic])
    )
    found = decode(schema.cls, body, 0)
    told = {path.rpartition("partitions[0].")[2]: each.value for path, each in found.items()}
    assert told["records.length"] == 1
    assert told["records[0].producer_id"] == 7
    assert told["records[0].base_sequence"] == 2
    assert told["records[0].values"] == ["a", "b"]
    assert told["records.rest"] == len(build_batch([b"c"])) - 2
