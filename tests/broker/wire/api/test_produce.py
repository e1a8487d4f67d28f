"""Produce: checks before a partition is asked, and answers behind it (K-CHECKS, K-BATCHES).

The first request of a connection goes through the codec, later ones through the short cut; tests
that are told `learnt` or send twice look at both ways.
"""

import struct

import pytest

from broker_fake_host import EPOCH, FakeHost, Hesitant
from broker_wire import default_host, outcome, produce_frame, run
from broker_wire_produce import GOOD, answers, ends, errors, length_field, patched, request
from ottla.broker.client import Producer
from ottla.broker.errors import ErrorCode
from ottla.log.build import Codec, build_batch

E = ErrorCode
VERSIONS = range(3, 13)

TRANSACTIONAL = patched(21, b"\0\x10")
# records under test, error of their partition, whether the good partition beside it fails too
CHECKS = {
    "length field 13": (length_field(13), E.CORRUPT_MESSAGE, True),
    "length field 0": (length_field(0), E.CORRUPT_MESSAGE, True),
    "length field negative": (length_field(-5), E.CORRUPT_MESSAGE, True),
    "magic 3": (GOOD[:16] + b"\x03" + GOOD[17:], E.CORRUPT_MESSAGE, True),
    "magic -1": (GOOD[:16] + b"\xff" + GOOD[17:], E.CORRUPT_MESSAGE, True),
    "magic 1": (GOOD[:16] + b"\x01" + GOOD[17:], E.INVALID_RECORD, False),
    "null records": (None, E.INVALID_RECORD, False),
    "empty records": (b"", E.INVALID_RECORD, False),
    "two batches": (GOOD + GOOD, E.INVALID_RECORD, False),
    "malformed second": (GOOD + length_field(3), E.CORRUPT_MESSAGE, False),
    "cut off": (GOOD[:-3], E.INVALID_RECORD, False),
    "stray bytes": (GOOD + b"stray bytes", E.NONE, False),
    "transactional": (TRANSACTIONAL, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, True),
    "transactional, cut off": (TRANSACTIONAL[:-1], E.INVALID_RECORD, False),
    "transactional, half": (TRANSACTIONAL[:40], E.INVALID_RECORD, False),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_batch_is_stored_and_answered_in_every_version(version):
    async def test(wire):
        client = await wire.client()
        for expected in (0, 2, 4):  # the first by the codec, the others by the short cut
            batch = build_batch([b"a", b"b"])
            answer = outcome(await client.send_batch("t", 1, batch, version=version))
            assert answer == (E.NONE, expected, 0 if version >= 5 else -1)
        assert ends(wire.host) == [0, 6, 0]

    run(test)


@pytest.mark.parametrize("version", [6, 12])
@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("learnt", [False, True])
def test_bad_batches(name, version, learnt):
    records, error, request_wide = CHECKS[name]

    async def test(wire):
        client = await wire.client()
        if learnt:
            await client.send_batch("t", 0, GOOD, version=version)
        before = ends(wire.host)
        alone = outcome(await client.send_batch("t", 0, records, version=version))
        assert alone.error is error
        if error is not E.NONE:
            assert (alone.base_offset, alone.log_start_offset) == (-1, -1)
            assert ends(wire.host) == before
        both = errors(await request(client, ("t", 0, records), ("t", 1, GOOD), version=version))
        assert both == {("t", 0): error, ("t", 1): error if request_wide else E.NONE}
        assert ends(wire.host)[1] == (0 if request_wide else 1)

    run(test)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (length_field(13), "Record size 13 is less than the minimum record overhead (14)"),
        (GOOD[:16] + b"\x03" + GOOD[17:], "Invalid magic found in record: 3"),
    ],
)
def test_request_wide_corruption_says_why(records, message):
    async def test(wire):
        client = await wire.client()
        response = await request(client, ("t", 0, GOOD), ("t", 1, records))
        assert [part.error_message for part in answers(response).values()] == [message] * 2

    run(test)


@pytest.mark.parametrize(
    ("version", "codec", "error", "wide"),
    [
        (6, Codec.ZSTD, E.UNSUPPORTED_COMPRESSION_TYPE, False),
        (7, Codec.ZSTD, E.NONE, False),
        (6, 5, E.UNKNOWN_SERVER_ERROR, True),
        (7, 5, E.NONE, False),  # the partition's business from here on
        (3, Codec.LZ4, E.NONE, False),
    ],
)
@pytest.mark.parametrize("learnt", [False, True])
def test_codecs_below_version_7(version, codec, error, wide, learnt):
    records = patched(21, struct.pack(">h", codec))

    async def test(wire):
        client = await wire.client()
        if learnt:
            await client.send_batch("t", 0, GOOD, version=version)
        alone = outcome(await client.send_batch("t", 0, records, version=version))
        assert alone.error is error
        both = errors(await request(client, ("t", 0, records), ("t", 1, GOOD), version=version))
        assert both == {("t", 0): error, ("t", 1): error if wide else E.NONE}

    run(test)


def test_the_first_batch_that_makes_no_sense_decides_about_the_request():
    async def test(wire):
        client = await wire.client()
        first = await request(client, ("t", 0, TRANSACTIONAL), ("t", 1, length_field(13)))
        assert set(errors(first).values()) == {E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
        second = await request(client, ("t", 0, length_field(13)), ("t", 1, TRANSACTIONAL))
        assert set(errors(second).values()) == {E.CORRUPT_MESSAGE}
        assert ends(wire.host) == [0, 0, 0]

    run(test)


@pytest.mark.parametrize("txn", [None, "a transaction"])
def test_transactions_are_refused(txn):
    """Fatal for every client: none of them goes on as if it had a transaction."""

    async def test(wire):
        client = await wire.client()
        response = await request(client, ("t", 0, TRANSACTIONAL), ("t", 1, GOOD), txn=txn)
        for part in answers(response).values():
            assert part.error_code == E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            assert part.error_message == "Transactions are not served by this broker"
        assert ends(wire.host) == [0, 0, 0]
        plain = await request(client, ("t", 0, GOOD), txn=txn)
        assert errors(plain) == {("t", 0): E.NONE}, "the id alone makes no transaction"

    run(test)


@pytest.mark.parametrize("topic", ["unknown", "", "a b", "x" * 300])
@pytest.mark.parametrize("acks", [-1, 1, 5])
def test_unknown_topics(topic, acks):
    async def test(wire):
        client = await wire.client()
        response = await request(client, (topic, 0, GOOD), acks=acks)
        assert errors(response) == {(topic, 0): E.UNKNOWN_TOPIC_OR_PARTITION}
        part = answers(response)[topic, 0]
        assert (part.base_offset, part.log_start_offset, part.error_message) == (-1, -1, None)

    run(test)


@pytest.mark.parametrize("partition", [-1, 3, 2**31 - 1])
def test_unknown_partitions(partition):
    async def test(wire):
        client = await wire.client()
        response = await request(client, ("t", partition, GOOD), ("t", 0, GOOD))
        wanted = {("t", partition): E.UNKNOWN_TOPIC_OR_PARTITION, ("t", 0): E.NONE}
        assert errors(response) == wanted

    run(test)


def test_a_node_that_does_not_know_all_topics_calls_none_unknown():
    """librdkafka gives up records for a topic that does not exist."""

    async def test(wire):
        client = await wire.client()
        wire.host.knows_all = False
        response = await request(client, ("made elsewhere", 0, GOOD))
        assert errors(response) == {("made elsewhere", 0): E.NOT_LEADER_OR_FOLLOWER}

    run(test)


@pytest.mark.parametrize("acks", [-2, 2, 32767])
def test_acks_that_mean_nothing(acks):
    async def test(wire):
        client = await wire.client()
        for _ in range(2):
            response = await request(client, ("t", 0, GOOD), acks=acks)
            assert errors(response) == {("t", 0): E.INVALID_REQUIRED_ACKS}
        mixed = await request(client, ("t", 0, GOOD), ("t", 1, b""), ("gone", 0, GOOD), acks=acks)
        assert errors(mixed) == {
            ("t", 0): E.INVALID_REQUIRED_ACKS,
            ("t", 1): E.INVALID_RECORD,
            ("gone", 0): E.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert ends(wire.host) == [0, 0, 0]

    run(test)


def test_the_same_partition_twice_is_refused_and_nothing_of_it_stored():
    async def test(wire):
        client = await wire.client()
        response = await request(client, ("t", 0, GOOD), ("t", 1, GOOD), ("t", 0, GOOD))
        assert errors(response) == {("t", 0): E.INVALID_REQUEST, ("t", 1): E.NONE}
        assert sum(len(topic.partition_responses) for topic in response.responses) == 2
        assert ends(wire.host) == [0, 1, 0]

    run(test)


@pytest.mark.parametrize("where", [("gone", 0), ("t", 3)])
def test_a_partition_that_does_not_exist_is_unknown_however_often_it_is_named(where):
    """Nothing is dropped there without a word, and so it is as Apache Kafka 4.3.1 says."""

    async def test(wire):
        client = await wire.client()
        response = await request(client, (*where, GOOD), ("t", 1, GOOD), (*where, b""))
        assert errors(response) == {where: E.UNKNOWN_TOPIC_OR_PARTITION, ("t", 1): E.NONE}
        assert sum(len(topic.partition_responses) for topic in response.responses) == 2

    run(test)


def test_the_same_topic_twice_with_different_partitions_is_stored():
    async def test(wire):
        client = await wire.client()
        response = await request(client, ("t", 0, GOOD), ("t", 2, GOOD))
        assert errors(response) == {("t", 0): E.NONE, ("t", 2): E.NONE}
        assert ends(wire.host) == [1, 0, 1]

    run(test)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("leader", [0, 2])
def test_a_partition_that_is_elsewhere_names_its_leader(version, leader):
    host = FakeHost()
    host.add_topic("t", hosted=False, leader=leader)

    async def test(wire):
        client = await wire.client()
        response = await request(client, ("t", 0, GOOD), version=version)
        check_not_leader(response, version, leader)

    run(test, host)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("leader", [0, 2])
def test_a_replica_that_lost_its_leadership_names_the_leader(version, leader):
    async def test(wire):
        wire.host.add_topic("t", 3)
        client = await wire.client()
        for base in (-1, 12):  # refused, and lost while waiting
            future = client.send_batch("t", 0, GOOD, version=version)
            while not wire.host.held:
                await wire.tick()
            wire.host.complete(
                wire.host.held[0],
                E.NOT_LEADER_OR_FOLLOWER,
                leader=leader,
                leader_epoch=EPOCH,
                base_offset=base,
            )
            response = await future
            check_not_leader(response, version, leader)
            assert answers(response)["t", 0].base_offset == base

    run(test, Hesitant(hold=True))


def check_not_leader(response, version, leader):
    part = answers(response)["t", 0]
    assert part.error_code == E.NOT_LEADER_OR_FOLLOWER
    if version >= 10:
        current = part.current_leader
        known = (leader, EPOCH) if leader else (-1, -1)  # what a tag that is left out means
        assert (current.leader_id, current.leader_epoch) == known
        named = [(node.node_id, node.host, node.port) for node in response.node_endpoints]
        assert named == ([(2, "two", 9002)] if leader else [])


def test_the_partitions_outcome_is_passed_on():
    async def test(wire):
        client = await wire.client()
        cases = [
            (E.REQUEST_TIMED_OUT, {"base_offset": 5, "log_start_offset": 1}),
            (E.OUT_OF_ORDER_SEQUENCE_NUMBER, {"log_start_offset": 3}),
            (E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, {"base_offset": 9, "log_start_offset": 0}),
            (E.MESSAGE_TOO_LARGE, {}),
        ]
        for error, fields in cases:
            future = client.send_batch("t", 0, GOOD)
            while not wire.host.held:
                await wire.tick()
            wire.host.complete(wire.host.held[0], error, **fields)
            base, start = fields.get("base_offset", -1), fields.get("log_start_offset", -1)
            assert outcome(await future) == (error, base, start)

    run(test, default_host(hold=True))


@pytest.mark.parametrize(("timeout", "limit"), [(1500, 1_500_000), (0, 1000), (-5, 1000)])
def test_the_clients_timeout_is_the_tickets_deadline(timeout, limit):
    """At least a millisecond, as Kafka's timers tick (K-ACKS)."""

    async def test(wire):
        client = await wire.client()
        for acks in (-1, -1, 1):
            before = wire.host.now()
            client.send_batch("t", 0, GOOD, acks=acks, timeout_ms=timeout)
            while not wire.host.held:
                await wire.tick()
            (ticket,) = wire.host.held
            assert before + limit <= ticket.deadline <= wire.host.now() + limit
            assert (ticket.acks, ticket.batch.data) == (acks, GOOD)
            wire.host.complete(ticket)

    run(test, default_host(hold=True))


def test_the_answer_waits_for_the_slowest_partition():
    async def test(wire):
        client = await wire.client()
        future = request(client, ("t", 0, GOOD), ("gone", 0, GOOD), ("t", 1, GOOD))
        while len(wire.host.held) < 2:
            await wire.tick()
        first, second = wire.host.held
        wire.host.complete(second)
        await wire.tick()
        assert not future.done()
        wire.host.complete(first, E.NOT_ENOUGH_REPLICAS)
        assert errors(await future) == {
            ("t", 0): E.NOT_ENOUGH_REPLICAS,
            ("gone", 0): E.UNKNOWN_TOPIC_OR_PARTITION,
            ("t", 1): E.NONE,
        }

    run(test, default_host(hold=True))


def test_no_topic_at_all():
    async def test(wire):
        client = await wire.client()
        response = await request(client)
        assert response.responses == ()
        await request(client, acks=0)
        assert (await client.call("api_versions", 0)).error_code == E.NONE

    run(test)


def test_bytes_behind_the_body_are_ignored():
    async def test(wire):
        raw = await wire.raw()
        for version in (8, 9):
            for _ in range(2):
                body = produce_frame(version)[4:] + b"extra"
                raw.write(struct.pack(">i", len(body)) + body)
                await raw.frame()
        assert ends(wire.host) == [4, 0, 0]

    run(test)


def test_producers_keep_their_identity_on_the_way():
    async def test(wire):
        client = await wire.client()
        future = client.send_batch(
            "t", 0, build_batch([b"v"], producer_id=7, producer_epoch=3, base_sequence=11)
        )
        while not wire.host.held:
            await wire.tick()
        batch = wire.host.held[0].batch
        assert Producer(batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 3, 11)
        wire.host.complete(wire.host.held[0])
        await future

    run(test, default_host(hold=True))
