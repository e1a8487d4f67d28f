"""Produce: in which order a batch is looked at, where several things are wrong with it.

As measured on Apache Kafka 4.3.1 (K-CHECKS), which a fuzz beside it compared. And which of two
batches for one partition counts, where the profile drops one of them.
"""

import struct

import pytest

from broker_wire import default_host, produce_frame, run
from broker_wire_produce import GOOD, ends, errors, length_field, patched, request
from ottla.broker.errors import ErrorCode
from ottla.log.build import build_batch

E = ErrorCode


@pytest.mark.parametrize("version", [3, 6])
@pytest.mark.parametrize(
    ("behind", "zstd", "none"),
    [
        (GOOD, E.UNSUPPORTED_COMPRESSION_TYPE, E.INVALID_RECORD),
        (length_field(3), E.UNSUPPORTED_COMPRESSION_TYPE, E.CORRUPT_MESSAGE),
        (b"stray", E.UNSUPPORTED_COMPRESSION_TYPE, E.NONE),
    ],
)
def test_below_version_7_the_first_codec_comes_before_the_number_of_batches(
    version, behind, zstd, none
):
    """Measured on Apache Kafka 4.3.1 (found by a fuzz beside it)."""

    async def test(wire):
        client = await wire.client()
        for codec, error, wide in [(0, none, False), (4, zstd, False), (5, E(-1), True)]:
            records = patched(21, struct.pack(">h", codec)) + behind
            parts = ("t", 0, records), ("t", 1, GOOD)
            both = errors(await request(client, *parts, version=version))
            assert both == {("t", 0): error, ("t", 1): error if wide else E.NONE}

    run(test)


@pytest.mark.parametrize("version", [3, 6])
@pytest.mark.parametrize("where", [("gone", 0), ("t", 9), ("t", -1)])
def test_an_unknown_codec_does_not_count_where_there_is_no_partition(version, where):
    """Kafka looks only into batches of partitions it knows: the good one beside it is stored."""

    async def test(wire):
        client = await wire.client()
        parts = (*where, patched(21, b"\0\6")), ("t", 0, GOOD)
        both = errors(await request(client, *parts, version=version))
        assert both == {where: E.UNKNOWN_TOPIC_OR_PARTITION, ("t", 0): E.NONE}
        assert ends(wire.host) == [1, 0, 0]

    run(test)


@pytest.mark.parametrize("length", [14, 20, 38])
@pytest.mark.parametrize("behind", [b"", b"stray"])
@pytest.mark.parametrize("acks", [-1, 1, 5])
def test_a_batch_that_ends_before_its_producer_id_fails_the_request(length, behind, acks):
    """Whatever the acks: that is where Kafka 4.3.1 looks for it, behind the number of batches, and
    finds the end of its buffer. Of partitions that do not exist it looks at nothing."""
    short = length_field(length)[: 12 + length] + behind

    async def test(wire):
        client = await wire.client()
        for version in (3, 6, 7, 12):
            parts = ("t", 0, short), ("t", 1, GOOD), ("gone", 0, GOOD), ("t", 2, b"")
            answer = await request(client, *parts, version=version, acks=acks)
            assert set(errors(answer).values()) == {E.UNKNOWN_SERVER_ERROR}
            absent = await request(client, ("gone", 0, short), version=version, acks=acks)
            assert errors(absent) == {("gone", 0): E.UNKNOWN_TOPIC_OR_PARTITION}
            several = await request(client, ("t", 0, short[: 12 + length] + GOOD), version=version)
            assert errors(several) == {("t", 0): E.INVALID_RECORD}
        assert ends(wire.host) == [0, 0, 0]

    run(test)


@pytest.mark.parametrize("length", [39, 48])
@pytest.mark.parametrize("version", [6, 7, 12])
def test_a_batch_that_ends_inside_its_header_is_the_partitions_business(version, length):
    """Behind acks, base offset and what else is looked at first."""
    short = length_field(length)[: 12 + length]

    async def test(wire):
        client = await wire.client()
        future = request(client, ("t", 0, short), version=version)
        while not wire.host.held:
            await wire.tick()
        (ticket,) = wire.host.held
        assert (ticket.batch.data, ticket.batch.record_count) == (short, 0)
        wire.host.complete(ticket, E.CORRUPT_MESSAGE)
        assert errors(await future) == {("t", 0): E.CORRUPT_MESSAGE}
        refused = await request(client, ("t", 0, short), version=version, acks=2)
        assert errors(refused) == {("t", 0): E.INVALID_REQUIRED_ACKS}

    run(test, default_host(hold=True))


def test_in_kafka_a_batch_beside_one_that_cannot_be_read_is_stored_whatever_the_answer():
    """The answer is that of the last unreadable one; the good one was dropped, in either order."""

    async def test(wire):
        client = await wire.client()
        for first, second in ((GOOD, GOOD + GOOD), (GOOD + GOOD, GOOD)):
            response = await request(client, ("t", 0, first), ("t", 0, second))
            assert errors(response) == {("t", 0): E.INVALID_RECORD}
        assert ends(wire.host) == [2, 0, 0]

    run(test, default_host(profile="kafka-4.3"))


def test_in_kafka_2_4_nobody_looks_into_the_first_of_two_batches():
    async def test(wire):
        client = await wire.client()
        response = await request(client, ("t", 0, GOOD + GOOD), ("t", 0, GOOD), version=8)
        assert errors(response) == {("t", 0): E.NONE}
        response = await request(client, ("t", 0, GOOD), ("t", 0, GOOD + GOOD), version=8)
        assert errors(response) == {("t", 0): E.INVALID_RECORD}
        assert ends(wire.host) == [1, 0, 0]

    run(test, default_host(profile="kafka-2.4"))


def test_in_kafka_2_4_a_short_header_behind_a_producer_does_not_close():
    """It has its answer, because one batch of a producer is enough to know that there is one."""

    async def test(wire):
        producers = build_batch([b"v"], producer_id=7, producer_epoch=0, base_sequence=0)
        for first, closed in ((GOOD, True), (producers, False)):
            client = await wire.client()
            parts = ("t", 0, first), ("t", 1, length_field(14))
            if closed:
                with pytest.raises(ConnectionResetError):
                    await request(client, *parts, version=8)
            else:
                found = errors(await request(client, *parts, version=8))
                assert found == {("t", 0): E.NONE, ("t", 1): E.CORRUPT_MESSAGE}

    run(test, default_host(profile="kafka-2.4"))


@pytest.mark.parametrize("profile", ["kafka-2.4", "kafka-2.8"])
@pytest.mark.parametrize("records", [None, b"", GOOD[:-1], length_field(13), length_field(38)])
@pytest.mark.parametrize("acks", [-1, 0, 7])
def test_before_2_5_what_is_no_batch_closes_the_connection(profile, records, acks):
    """Before all other checks, such as those of topic and acks."""

    async def test(wire):
        for topic in ("t", "gone"):
            raw = await wire.raw()
            raw.write(produce_frame(8, acks=acks, topic=topic, records=records))
            closed = profile == "kafka-2.4" or acks == 0
            assert await raw.is_closed() if closed else await raw.frame()

    run(test, default_host(profile=profile))


def test_in_kafka_the_last_batch_of_a_partition_counts():
    """The first one is dropped without a word."""

    async def test(wire):
        client = await wire.client()
        two = build_batch([b"v", b"w"])
        response = await request(client, ("t", 0, GOOD), ("t", 1, GOOD), ("t", 0, two))
        assert errors(response) == {("t", 0): E.NONE, ("t", 1): E.NONE}
        assert sum(len(topic.partition_responses) for topic in response.responses) == 2
        assert ends(wire.host) == [2, 1, 0]

    run(test, default_host(profile="kafka-4.3"))
