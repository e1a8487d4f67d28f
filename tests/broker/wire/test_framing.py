"""Frames, versions and the order of answers, as measured on Apache Kafka 4.3.1 (K-FRAME).

Real TCP, a fake node behind it; answers with acks=0 (promise-P1, P2) are here too, because they
are a matter of order.
"""

import asyncio
import struct

import pytest

from broker_wire import api_versions, default_host, frame, outcome, produce_frame, run
from ottla.broker.client import Exchange
from ottla.broker.errors import ErrorCode
from ottla.broker.wire.half_frames import PLAIN_FRAME_BYTES
from ottla.broker.wire.server import REFUSALS_TOLD
from ottla.log.build import build_batch

E = ErrorCode
I4 = struct.Struct(">i")
LIMIT = 104_857_600


def header(key, version, correlation_id=9, client=b"\xff\xff"):
    body = struct.pack(">hhi", key, version, correlation_id) + client
    return I4.pack(len(body)) + body


def sized(body):
    return I4.pack(len(body)) + body


CLOSING = {
    "length above the limit": I4.pack(LIMIT + 1),
    "length negative": I4.pack(-1),
    "length 0": I4.pack(0),
    "length 4 with half a header": I4.pack(4) + b"\0\x12\0\0",
    "garbage": b"GET / HTTP/1.1\r\n\r\n",
    "client id longer than the frame": sized(b"\0\x12\0\0\0\0\0\0\0\x63abc"),
    "unknown key 999": header(999, 0),
    "unknown key -1": header(-1, 0),
    "key not served": header(8, 2),
    "Metadata 99": header(3, 99),
    "Metadata -1": header(3, -1),
    "Fetch 0": header(1, 0),
    "Fetch 99": header(1, 99),
    "ListOffsets 0": header(2, 0),
    "CreateTopics 1": header(19, 1),
    "InitProducerId 99": header(22, 99),
    "Produce 2": header(0, 2),
    "Produce 14": header(0, 14),
    "tags cut off": header(3, 9),
    "produce body cut short": sized(produce_frame()[4:-20]),
    "produce body cut in its head": sized(produce_frame()[4:30]),
    "old produce body cut short": sized(produce_frame(7)[4:-20]),
    "metadata body cut short": sized(frame("metadata", 4, topics=[{"name": "t"}])[4:-3]),
}


@pytest.mark.parametrize("data", CLOSING.values(), ids=CLOSING)
def test_what_is_no_request_closes_that_connection_only(data):
    async def test(wire):
        other, raw = await wire.raw(), await wire.raw()
        raw.write(data)
        assert await raw.is_closed()
        other.write(api_versions())
        assert len(await other.frame()) > 20
        assert wire.server.connections == 1

    run(test)


@pytest.mark.parametrize("data", CLOSING.values(), ids=CLOSING)
def test_the_close_comes_after_the_answers_to_everything_before(data):
    async def test(wire):
        raw = await wire.raw()
        raw.write(produce_frame() + api_versions() + data + api_versions())
        await wire.tick()
        while not wire.host.held:
            await wire.tick()
        wire.host.complete(wire.host.held[0])
        assert b"t" in await raw.frame()
        assert len(await raw.frame()) > 20
        assert await raw.is_closed()

    run(test, default_host(hold=True))


def test_a_frame_of_exactly_the_limit_waits_for_its_bytes():
    async def test(wire):
        raw = await wire.raw()
        raw.write(I4.pack(LIMIT) + b"\0\0\0\x09\0\0\0\0\xff\xff")
        assert not await raw.is_closed(within=0.1)

    run(test)


@pytest.mark.parametrize("key", [1, 3, 18, 20])
def test_without_records_a_frame_is_much_smaller(key, caplog):
    """90 MB of names took the codec 430 ms of one turn."""

    async def test(wire):
        fits, too_large = await wire.raw(), await wire.raw()
        rest = struct.pack(">hhih", key, 1, 0, -1)
        fits.write(I4.pack(PLAIN_FRAME_BYTES) + rest)
        too_large.write(I4.pack(PLAIN_FRAME_BYTES + 1) + rest)
        assert await too_large.is_closed()
        assert not await fits.is_closed(within=0.05)
        size, limit = PLAIN_FRAME_BYTES + 1, PLAIN_FRAME_BYTES
        told = f"API {key}: a frame of {size} bytes without records, limit {limit}"
        assert told in caplog.text

    run(test)


@pytest.mark.parametrize("version", [5, 99, -1, -32768, 32767])
def test_an_unknown_version_of_apiversions_is_answered_in_version_0(version):
    async def test(wire):
        raw = await wire.raw()
        for _ in range(2):
            raw.write(header(18, version, client=b"\xff\xff" + b"\0" * (version > 3)))
            answer = await raw.frame()
            assert answer == struct.pack(">ihihhh", 9, E.UNSUPPORTED_VERSION, 1, 18, 0, 4)

    run(test)


@pytest.mark.parametrize("version", [5, 32767])
def test_an_unknown_version_of_apiversions_needs_the_tagged_fields_of_its_header(version):
    """`ottla compare` showed it: Kafka closes the connection, and it was answered."""

    async def test(wire):
        raw = await wire.raw()
        raw.write(header(18, version))
        assert await raw.is_closed()

    run(test)


@pytest.mark.parametrize("version", range(5))
def test_apiversions_answers_with_the_table(version):
    async def test(wire):
        client = await wire.client()
        for _ in range(2):
            answer = await client.call(
                "api_versions", version, client_software_name="n", client_software_version="1"
            )
            keys = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
            assert (answer.error_code, keys[0], keys[18]) == (E.NONE, (0, 12), (0, 4))
            groups = [8, 9, 10, 11, 12, 13, 14, 15, 16, 42, 47, 68, 69]
            assert sorted(keys) == sorted([0, 1, 2, 3, 18, 19, 20, 21, 22, 23, 60, *groups])
            assert not getattr(answer, "finalized_features", ())

    run(test)


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    ("name", "software"), [("", "1"), ("a b", "1"), ("-a", "1"), ("a", ""), ("a", "1-")]
)
def test_odd_names_of_client_software(version, name, software):
    async def test(wire):
        client = await wire.client()
        fields = {"client_software_name": name, "client_software_version": software}
        answer = await client.call("api_versions", version, **fields)
        assert (answer.error_code, answer.api_keys) == (E.INVALID_REQUEST, ())
        fine = {"client_software_name": "a.b-c", "client_software_version": "1.0"}
        assert (await client.call("api_versions", version, **fine)).error_code == E.NONE

    run(test)


@pytest.mark.parametrize("client", [b"\xff\xff", b"\xff\xfe", b"\x80\0", b"\0\1\xff"])
def test_a_client_id_that_is_null_of_any_negative_length_or_not_utf_8_is_fine(client):
    """Kafka reads any negative length as null, and replaces what is not UTF-8."""

    async def test(wire):
        raw = await wire.raw()
        raw.write(header(18, 0, client=client))
        assert len(await raw.frame()) > 20

    run(test)


def test_the_log_says_why_a_connection_closes_and_does_not_flood(caplog):
    """A pipe that nobody reads is full after some hundred lines, and stops who writes to it."""

    async def test(wire):
        for _ in range(70):
            raw = await wire.raw()
            raw.write(header(3, 1) + b"\0\0\0\x0e\0\3\0\1\0\0\0\1\xff\xff\x7f\xff\xff\xff")
            assert await raw.is_closed()

    run(test)
    told = [record.message for record in caplog.records]
    assert len(told) == REFUSALS_TOLD + 2
    assert "127.0.0.1:" in told[0]
    assert "(1 so far): MetadataRequest: cut off" in told[0]
    assert "(64 so far)" in told[-1]


@pytest.mark.parametrize("pieces", [1, 3, 7, 1000])
def test_frames_may_come_in_any_pieces(pieces):
    async def test(wire):
        raw = await wire.raw()
        data = b"".join([produce_frame(), api_versions(3), produce_frame(7), produce_frame()])
        for at in range(0, len(data), pieces):
            raw.write(data[at : at + pieces])
            await asyncio.sleep(0)
            await raw.writer.drain()
        sizes = [len(await raw.frame()) for _ in range(4)]
        assert sizes[0] == sizes[3]
        assert wire.host.replicas["t", 0].high_watermark == 3

    run(test)


@pytest.mark.parametrize("size", [200_000, 262_144, 1_000_000, 5_000_000])
def test_large_frames_come_through_unharmed_and_between_small_ones(size):
    async def test(wire):
        client = await wire.client()
        payload = bytes(range(256)) * (size // 256)
        batches = [build_batch([payload]), build_batch([b"small"]), build_batch([payload[:-1]])] * 2
        futures = [client.send_batch("t", 0, batch) for batch in batches]
        assert [outcome(await future).base_offset for future in futures] == list(range(6))
        stored = [entry.payload.data for entry in wire.host.replicas["t", 0].entries]
        assert stored == batches

    run(test)


def test_two_hundred_mixed_requests_in_one_write_are_answered_in_order():
    async def test(wire):
        raw, exchange = await wire.raw(), Exchange()
        sent = b""
        for number in range(200):
            if number % 3:
                data = {"index": number % 2, "records": build_batch([b"v"])}
                sent += exchange.request(
                    0,
                    9,
                    {
                        "transactional_id": None,
                        "acks": 1,
                        "timeout": 100,
                        "topic_data": [{"name": "t", "partition_data": [data]}],
                    },
                )[1]
            else:
                sent += exchange.request(18, 0, {})[1]
        raw.write(sent)
        order = [I4.unpack_from(await raw.frame())[0] for _ in range(200)]
        assert order == list(range(200))

    run(test)


def test_answers_keep_the_order_of_requests_whatever_finishes_first():
    async def test(wire):
        client = await wire.client()
        done = []
        futures = [client.send_batch("t", n % 3, build_batch([b"v"])) for n in range(9)]
        futures.append(client.send("api_versions", 0))
        for number, future in enumerate(futures):
            future.add_done_callback(lambda _, number=number: done.append(number))
        while len(wire.host.held) < 9:
            await wire.tick()
        tickets = list(wire.host.held)
        for ticket in reversed(tickets[1:]):
            wire.host.complete(ticket)
            await wire.tick()
        assert done == []
        wire.host.complete(tickets[0])
        await asyncio.gather(*futures)
        assert done == list(range(10))

    run(test, default_host(hold=True))


def test_acks_0_is_never_answered_and_the_connection_stays_usable():
    async def test(wire):
        client = await wire.client()
        for _ in range(3):
            assert await client.send_batch("t", 0, build_batch([b"v"]), acks=0) is None
            assert (await client.call("api_versions", 0)).error_code == E.NONE
        assert outcome(await client.send_batch("t", 0, build_batch([b"v"]))).base_offset == 3
        assert not client.closed.done()

    run(test)


@pytest.mark.parametrize("records", [b"", None, build_batch([b"v"])[:-3]])
def test_acks_0_with_an_error_closes_and_the_good_partition_is_stored(records):
    async def test(wire):
        client = await wire.client()
        client.send(
            "produce",
            transactional_id=None,
            acks=0,
            timeout=100,
            topic_data=[
                {
                    "name": "t",
                    "partition_data": [
                        {"index": 0, "records": records},
                        {"index": 1, "records": build_batch([b"v"])},
                    ],
                }
            ],
        )
        await client.closed
        assert wire.host.replicas["t", 1].high_watermark == 1

    run(test)


def test_acks_0_to_a_node_that_does_not_lead_closes():
    """Or a client would go on sending what nobody stores."""

    async def test(wire):
        client = await wire.client()
        client.send_batch("t", 0, build_batch([b"v"]), acks=0)
        while not wire.host.held:
            await wire.tick()
        wire.host.complete(wire.host.held[0], E.NOT_LEADER_OR_FOLLOWER)
        await client.closed

    run(test, default_host(hold=True))


def test_a_close_by_acks_0_waits_for_the_answers_before_it():
    async def test(wire):
        client = await wire.client()
        first = client.send_batch("t", 0, build_batch([b"1"]))
        client.send_batch("t", 1, build_batch([b"2"]), acks=0)
        later = client.send("api_versions", 0)
        while len(wire.host.held) < 2:
            await wire.tick()
        answered, unanswered = wire.host.held
        wire.host.complete(unanswered, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
        await wire.tick()
        assert not client.closed.done()
        wire.host.complete(answered)
        assert outcome(await first).error is E.NONE
        await client.closed
        assert isinstance(later.exception(), ConnectionResetError)

    run(test, default_host(hold=True))


def test_a_lost_client_harms_nobody_and_its_batches_stay():
    async def test(wire):
        client, other = await wire.client(), await wire.client()
        for _ in range(3):
            client.send_batch("t", 0, build_batch([b"v"]))
        while len(wire.host.held) < 3:
            await wire.tick()
        client.close()
        while wire.server.connections > 1:
            await wire.tick()
        for ticket in list(wire.host.held):
            wire.host.complete(ticket)
        assert wire.host.replicas["t", 0].high_watermark == 3
        assert (await other.call("api_versions", 0)).error_code == E.NONE

    run(test, default_host(hold=True))
