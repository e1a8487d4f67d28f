"""The raw client: what it remembers, what it expects, what it shows.

`Exchange` is tested without I/O, `Client` against the fake node. What a request is decoded as on
the other side is the broker's tests' business.
"""

import asyncio
from typing import Any

import pytest

from broker_wire import default_host, run
from ottla.broker.client import (
    MAX_ANSWER_BYTES,
    Client,
    Exchange,
    Fetched,
    NoAnswerError,
    Produced,
    Producer,
    split_batches,
)
from ottla.broker.errors import ConfigError, ErrorCode, FrameError
from ottla.broker.wire.client_requests import API_KEYS
from ottla.broker.wire.codec import response_schema
from ottla.log.build import NewRecord, build_batch

PRODUCE: dict[str, Any] = {"transactional_id": None, "timeout": 1, "topic_data": []}
EMPTY_V0 = b"\0\0\0\0\0\0"


def framed(correlation_id, body):
    return (4 + len(body)).to_bytes(4, "big") + correlation_id.to_bytes(4, "big") + body


def test_each_answer_is_read_by_what_its_request_was():
    exchange = Exchange()
    first, _ = exchange.request(18, 0, {})
    second, _ = exchange.request(0, 7, PRODUCE | {"acks": 1})
    schema = response_schema(0, 7)
    produced = schema.write(schema.build(responses=[], throttle_time=3))
    data = framed(second, produced) + framed(first, EMPTY_V0)
    answers = [answer for at in range(len(data)) for answer in exchange.received(data[at : at + 1])]
    assert [number for number, _ in answers] == [second, first]
    assert [type(answer).__name__ for _, answer in answers] == [
        "ProduceResponse",
        "ApiVersionsResponse",
    ]
    assert len(exchange) == 0


def test_no_answer_is_expected_to_acks_0():
    exchange = Exchange()
    silent, _ = exchange.request(0, 9, PRODUCE | {"acks": 0})
    loud, _ = exchange.request(0, 9, PRODUCE | {"acks": 1})
    assert (exchange.expects(silent), exchange.expects(loud), len(exchange)) == (False, True, 1)
    with pytest.raises(FrameError, match=f"request {silent}, which expects none"):
        exchange.received(framed(silent, b"\0\1\0\0\0\0\0"))


def test_an_answer_nobody_asked_for_is_an_error():
    with pytest.raises(FrameError, match="request 5"):
        Exchange().received(framed(5, b""))


@pytest.mark.parametrize("client_id", [None, "", "x"])
def test_the_header_of_every_api(client_id):
    for version, tail in [(0, b""), (3, b"\0\2n\2s\0")]:
        fields = {"client_software_name": "n", "client_software_version": "s"}
        _, data = Exchange(client_id).request(18, version, fields)
        name = b"\xff\xff" if client_id is None else b"\0" + bytes([len(client_id)]) + b"x"
        name = name if client_id else name[:2]
        assert data[4:] == b"\0\x12\0" + bytes([version]) + bytes(4) + name + tail


def test_batches_are_split_and_a_cut_one_is_left():
    batches = [build_batch([bytes([n])]) for n in range(3)]
    assert [b.data for b in split_batches(b"".join(batches))] == batches
    assert [b.data for b in split_batches(b"".join(batches)[:-1])] == batches[:2]
    assert split_batches(b"") == []
    with pytest.raises(FrameError, match="magic"):
        split_batches(batches[0][:16] + b"\x05" + batches[0][17:])


def test_the_everyday_calls():
    async def test(wire):
        client = await wire.client()
        producer = await client.init_producer_id()
        assert (producer.epoch, producer.sequence) == (0, 0)
        answer = await client.produce("t", 1, [b"a", NewRecord(b"b", key=b"k")], producer=producer)
        assert answer == Produced(ErrorCode.NONE, 0, 0)
        stored = wire.host.replicas["t", 1].entries[0].payload
        assert Producer(stored.producer_id, stored.producer_epoch, stored.base_sequence) == producer
        assert await client.produce("t", 1, [b"c"], acks=0) is None
        assert await client.list_offset("t", 1) == 3
        assert await client.list_offset("t", 1, -2) == 0
        found = await client.fetch("t", 1, 0)
        assert (found.error, found.high_watermark, len(found.batches)) == (ErrorCode.NONE, 3, 2)
        assert await client.fetch("t", 9, 0) == Fetched(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, []
        )
        names = [topic.name for topic in (await client.metadata()).topics]
        assert names == ["t"]
        assert (await client.metadata(["new"], create=True)).topics[0].error_code == ErrorCode.NONE

    run(test)


def test_an_end_of_the_connection_reaches_everyone_who_waits():
    async def test(wire):
        client = await wire.client()
        waiting = [client.send_batch("t", 0, build_batch([b"v"])) for _ in range(3)]
        while len(wire.host.held) < 3:
            await wire.tick()
        wire.server.cut_connections()
        await client.closed
        for future in waiting:
            with pytest.raises(ConnectionResetError):
                await future
        with pytest.raises(ConnectionResetError):
            client.send("api_versions", 0)

    run(test, default_host(hold=True))


def test_a_version_the_broker_does_not_know_is_told_in_version_0():
    exchange = Exchange()
    number, _ = exchange.request(
        API_KEYS["api_versions"], 4, {"client_software_name": "n", "client_software_version": "s"}
    )
    body = b"\0\x23" + b"\0\0\0\1" + b"\0\x12\0\0\0\3"
    ((_, answer),) = exchange.received(framed(number, body))
    assert (answer.error_code, answer.api_keys[0].max_version) == (35, 3)


@pytest.mark.parametrize("size", [3, 0, -1, MAX_ANSWER_BYTES + 1, 2**31 - 1, -(2**31)])
def test_a_frame_of_impossible_size_is_an_error_at_once(size):
    """Sizes below 4 were waited for until the memory was full."""
    with pytest.raises(FrameError, match=f"a frame of {size} bytes"):
        Exchange().received((size % 2**32).to_bytes(4, "big"))


HOSTILE = {
    "a count of 2**33 - 1": b"\0\0" + b"\xff\xff\xff\xff\x1f",
    "cut off": b"\0\0\2",
    "an unknown code": b"\x03\xe7\1\0\0\0\0\0",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_who_waits_for_an_answer_hears_that_it_is_none(body):
    """A broker could end the process of the client by five bytes."""

    async def main() -> None:
        async def serve(reader, writer):
            head = await reader.readexactly(12)
            writer.write(framed(int.from_bytes(head[8:], "big"), body))
            await reader.read()  # until the client hangs up
            writer.close()  # from Python 3.12 on a server waits for its connections

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            client = await Client.connect(*server.sockets[0].getsockname())
            software = {"client_software_name": "n", "client_software_version": "1"}
            asked = [client.send("api_versions", 3, **software) for _ in range(2)]
            for each in asked:
                with pytest.raises(FrameError):
                    await each
            await asyncio.wait_for(client.closed, 5)

    asyncio.run(main())


VERSIONS = b"\0\0" + b"\0\0\0\1" + b"\0\x12\0\0\0\3"
NO_ANSWERS = {
    "a body that is cut off": framed(1, b"\0\0"),
    "a frame of 3 bytes": b"\0\0\0\3abc",
    "to what nobody asked": framed(99, VERSIONS),
    "the same once more": framed(0, VERSIONS),
    "a hostile count": framed(1, b"\0\0" + b"\x7f\xff\xff\xff"),
}


@pytest.mark.parametrize("malformed", NO_ANSWERS.values(), ids=NO_ANSWERS)
@pytest.mark.parametrize("pieces", [1, 3])
def test_good_answers_before_a_malformed_one_are_delivered(malformed, pieces):
    """Read together with it they were lost: whoever asked heard of the other's fault."""

    async def main() -> None:
        async def serve(reader, writer):
            await reader.readexactly(2 * (4 + 8 + 2 + len("ottla")))
            sent = framed(0, VERSIONS) + malformed
            for n in range(pieces):
                writer.write(sent[len(sent) * n // pieces : len(sent) * (n + 1) // pieces])
                await asyncio.sleep(0.01)
            await reader.read()
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            client = await Client.connect(*server.sockets[0].getsockname())
            first, second = (client.send("api_versions", 0) for _ in range(2))
            assert (await first).api_keys[0].max_version == 3
            with pytest.raises(FrameError):
                await second
            await asyncio.wait_for(client.closed, 5)

    asyncio.run(main())


def test_an_exchange_says_which_answers_came_before_the_malformed_one():
    exchange = Exchange()
    for _ in range(3):
        exchange.request(API_KEYS["api_versions"], 0, {})
    with pytest.raises(NoAnswerError, match="a frame of 3 bytes") as caught:
        exchange.received(framed(0, VERSIONS) + framed(2, VERSIONS) + b"\0\0\0\3abc")
    assert [number for number, _ in caught.value.behind] == [0, 2]


@pytest.mark.parametrize("wrong", [5, b"me", "\ud800", "x" * 32_768])
def test_a_client_id_that_no_request_can_have_is_refused_at_once(wrong):
    """It connected, and the first call raised AttributeError or UnicodeEncodeError."""
    with pytest.raises(ConfigError, match="client_id"):
        Exchange(wrong)


def test_a_host_that_is_no_text_of_utf_8_is_refused():
    with pytest.raises(ConfigError, match="host"):
        asyncio.run(Client.connect("\ud800", 9))
