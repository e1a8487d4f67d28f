"""Values that Kafka takes and no client sends: answered as Apache Kafka 4.3.1 does, not cut off.

Seen from outside, over TCP; how each is read stands in `test_wire_guard`.
"""

import pytest

from broker_wire import SIZE, frame, produce_frame, run
from ottla.broker.client import Exchange
from ottla.broker.errors import ErrorCode as E
from ottla.broker.wire.codec import response_schema
from ottla.log.build import build_batch

AUTHORIZED = {
    "allow_auto_topic_creation": True,
    "include_cluster_authorized_operations": False,
    "include_topic_authorized_operations": False,
}


def refused_name(name, version):
    return frame("metadata", version, topics=[{"name": name, "topic_id": bytes(16)}], **AUTHORIZED)


def with_bytes(data, text, raw):
    """The frame with these bytes in place of an ASCII text of the same length."""
    assert len(raw) == len(text)
    assert data.count(text) == 1
    return data.replace(text, raw)


async def answer_to(wire, data, key, version):
    raw = await wire.raw()
    raw.write(data)
    got = await raw.frame()
    schema = response_schema(key, version)
    return schema.read(got, 4 + schema.header_tags)


@pytest.mark.parametrize("version", range(13))
def test_metadata_of_a_name_that_is_not_utf_8_is_answered_17(version):
    async def test(wire):
        data = with_bytes(refused_name("oldname", version), b"oldname", b"old\xff\xed\xa0\x80")
        topic = (await answer_to(wire, data, 3, version)).topics[0]
        assert (topic.error_code, topic.name) == (E.INVALID_TOPIC_EXCEPTION, "old\ufffd\ufffd")

    run(test)


@pytest.mark.parametrize("version", range(3, 13))
def test_produce_to_a_name_that_is_not_utf_8_is_answered_3(version):
    async def test(wire):
        data = with_bytes(produce_frame(version, topic="oldname"), b"oldname", b"old\xffame")
        for _ in range(3):  # also by way of the short cut
            topic = (await answer_to(wire, data, 0, version)).responses[0]
            assert topic.name == "old\ufffdame"
            assert topic.partition_responses[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION

    run(test)


@pytest.mark.parametrize("byte", [2, 0x7F, 0x80, 0xFF])
@pytest.mark.parametrize("version", range(3))
def test_describe_cluster_with_a_boolean_that_is_not_0_or_1(version, byte):
    async def test(wire):
        fields = {"include_cluster_authorized_operations": True, "include_fenced_brokers": False}
        data = bytearray(frame("describe_cluster", version, **fields))
        at = len(data) - len(request_body(version, fields))
        assert data[at] == 1
        data[at] = byte
        answer = await answer_to(wire, bytes(data), 60, version)
        assert answer.error_code == E.NONE

    run(test)


def request_body(version, fields):
    exchange = Exchange(None)
    return exchange.request(60, version, fields)[1][14 + 1 :]


def test_an_unknown_tagged_field_in_a_produce_request_and_in_its_header():
    async def test(wire):
        good = produce_frame(9, records=build_batch([b"value"]))
        head = good.index(b"ottla") + 5
        tag = b"\1\x63\2xy"
        for data in (
            good[4:head] + tag + good[head + 1 :],
            good[4:-1] + tag,
            good[4:head] + tag + good[head + 1 : -1] + tag,
        ):
            answer = await answer_to(wire, SIZE.pack(len(data)) + data, 0, 9)
            assert answer.responses[0].partition_responses[0].error_code == E.NONE
        assert wire.host.submitted == 3

    run(test)
