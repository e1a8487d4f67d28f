"""Fetch: limits, long polls, errors and sessions, as measured on Apache Kafka 4.3.1 (K-FETCH).

The log is the fake node's; what may be seen of a real partition is tested with the partition. How
much is given, and how long it is waited for: `test_wire_fetch_limits.py`.
"""

import asyncio
import time

import pytest

from broker_fake_host import EPOCH, FakeHost
from broker_wire import default_host, run
from broker_wire_fetch import fetch, fill, offsets, only
from ottla.broker.client import split_batches
from ottla.broker.errors import ErrorCode
from ottla.log.build import build_batch
from ottla.log.errors import CompactedError

E = ErrorCode


@pytest.mark.parametrize("version", range(4, 13))
def test_stamped_batches_come_back_in_every_version(version):
    async def test(wire):
        client = await wire.client()
        await fill(client, 3, records=2)
        part = only(await fetch(client, ("t", 0, 2), version=version))
        assert (part.error_code, part.high_watermark, part.last_stable_offset) == (E.NONE, 6, 6)
        assert part.aborted_transactions is None
        assert getattr(part, "log_start_offset", 0) == 0
        assert getattr(part, "preferred_read_replica", -1) == -1
        batches = split_batches(part.records)
        assert [(batch.base_offset, batch.leader_epoch) for batch in batches] == [
            (2, EPOCH),
            (4, EPOCH),
        ]

    run(test)


def test_the_middle_of_a_batch_gives_the_whole_batch():
    async def test(wire):
        client = await wire.client()
        await fill(client, 2, records=3)
        assert offsets(only(await fetch(client, ("t", 0, 4)))) == [3]

    run(test)


@pytest.mark.parametrize("offset", [-1, 3, 99])
def test_out_of_range_is_answered_at_once_with_nothing(offset):
    async def test(wire):
        client = await wire.client()
        await fill(client, 2)
        part = only(await fetch(client, ("t", 0, offset), wait=5000))
        assert part.error_code == E.OFFSET_OUT_OF_RANGE
        assert (part.high_watermark, part.last_stable_offset, part.log_start_offset) == (-1,) * 3
        assert (part.aborted_transactions, part.records) == (None, b"")

    run(test)


def test_entries_that_went_meanwhile_are_out_of_range():
    async def test(wire):
        client = await wire.client()
        await fill(client, 2)

        wire.host.read_error = CompactedError(1, 2, 3)
        part = only(await fetch(client, ("t", 0, 0), wait=5000))
        assert (part.error_code, part.high_watermark) == (E.OFFSET_OUT_OF_RANGE, -1)

    run(test)


def test_a_failure_behind_the_partitions_answer_leaves_no_client_waiting():
    async def test(wire):
        client = await wire.client()
        asked = fetch(client, ("t", 0, 0), wait=5000)
        while not wire.host.held:
            await wire.tick()
        wire.host.read_error = ArithmeticError("a bug")
        wire.host.complete(wire.host.held[0], first_index=1, last_index=1)
        await client.closed
        assert [type(told["exception"]) for told in wire.failures] == [ArithmeticError]
        wire.failures.clear()
        with pytest.raises(ConnectionError):
            await asked

    run(test, default_host(hold=True))


@pytest.mark.parametrize("version", [4, 11, 12])
def test_who_reads_what_is_committed_gets_an_empty_list_of_aborted_transactions(version):
    """And not null, but with OFFSET_OUT_OF_RANGE (measured on Apache Kafka 4.3.1)."""

    async def test(wire):
        client = await wire.client()
        await fill(client, 1)
        for offset, aborted in [(0, ()), (1, ()), (2, None)]:
            for isolation, wanted in [(0, None), (1, aborted)]:
                asked = fetch(client, ("t", 0, offset), version=version, isolation_level=isolation)
                assert only(await asked).aborted_transactions == wanted

    run(test)


@pytest.mark.parametrize("isolation", [2, 7, -1])
def test_an_isolation_level_that_does_not_exist_fails_every_partition(isolation):
    """And the request (version 7 on), as often as they are named; not where none of the partitions
    exists. Measured on Apache Kafka 4.3.1."""

    async def test(wire):
        client = await wire.client()
        await fill(client, 1)
        named = ("t", 0, 0), ("gone", 0, 0), ("t", 0, 1)
        for version in (4, 7, 12):
            fields = {"version": version, "wait": 5000, "isolation_level": isolation}
            answer = await asyncio.wait_for(fetch(client, *named, **fields), 4)
            assert getattr(answer, "error_code", E.UNKNOWN_SERVER_ERROR) == E.UNKNOWN_SERVER_ERROR
            assert [topic.topic for topic in answer.responses] == ["t", "gone", "t"]
            for topic in answer.responses:
                (part,) = topic.partitions
                assert (part.error_code, part.high_watermark) == (E.UNKNOWN_SERVER_ERROR, -1)
                assert (part.aborted_transactions, part.records) == ((), b"")
        answer = await fetch(client, ("gone", 0, 0), isolation_level=isolation)
        part = only(answer)
        assert (answer.error_code, part.error_code) == (E.NONE, E.UNKNOWN_TOPIC_OR_PARTITION)

    run(test)


@pytest.mark.parametrize("where", [("gone", 0), ("t", 3), ("t", -1)])
def test_unknown_partitions_are_answered_at_once(where):
    async def test(wire):
        client = await wire.client()
        part = only(await fetch(client, (*where, 0), wait=5000))
        assert (part.error_code, part.high_watermark) == (E.UNKNOWN_TOPIC_OR_PARTITION, -1)
        assert (part.aborted_transactions, part.records) == ((), b"")

    run(test)


@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (-1, E.NONE),
        (-2, E.NONE),  # any negative number names none; -2 used to be fenced
        (-(2**31), E.NONE),
        (EPOCH, E.NONE),
        (EPOCH + 1, E.UNKNOWN_LEADER_EPOCH),
        (EPOCH - 1, E.FENCED_LEADER_EPOCH),
    ],
)
def test_the_leader_epoch_a_client_names_must_be_this_one(epoch, error):
    async def test(wire):
        client = await wire.client()
        await fill(client, 1)
        part = only(await fetch(client, ("t", 0, 0, 100, epoch), version=9, wait=3000))
        assert part.error_code == error

    run(test)


def test_a_partition_that_is_elsewhere_is_not_served():
    host = FakeHost()
    host.add_topic("t", hosted=False, leader=2)

    async def test(wire):
        client = await wire.client()
        part = only(await fetch(client, ("t", 0, 0), wait=5000))
        assert (part.error_code, part.aborted_transactions) == (E.NOT_LEADER_OR_FOLLOWER, None)

    run(test, host)


def test_followers_of_another_system_are_refused():
    async def test(wire):
        client = await wire.client()
        await fill(client, 1)
        part = only(await fetch(client, ("t", 0, 0), replica_id=5, wait=5000))
        assert (part.error_code, part.records) == (E.NOT_LEADER_OR_FOLLOWER, b"")

    run(test)


def test_at_the_end_it_waits_its_time_and_answers_empty():
    async def test(wire):
        client = await wire.client()
        await fill(client, 1)
        start = time.monotonic()
        part = only(await fetch(client, ("t", 0, 1), wait=120))
        assert 0.11 < time.monotonic() - start < 2
        assert (part.error_code, part.high_watermark, part.records) == (E.NONE, 1, b"")
        assert only(await fetch(client, ("t", 0, 1), wait=5000, min_bytes=0)).records == b""

    run(test)


def test_a_produce_meanwhile_answers_at_once():
    async def test(wire):
        consumer, producer = await wire.client(), await wire.client()
        future = fetch(consumer, ("t", 0, 0), ("t", 1, 0), wait=9000)
        await asyncio.sleep(0.02)
        assert not future.done()
        await fill(producer, 1, partition=1)
        (topic,) = (await asyncio.wait_for(future, 2)).responses
        assert [offsets(part) for part in topic.partitions] == [[], [0]]

    run(test)


@pytest.mark.parametrize(
    ("failing", "error"),
    [
        (("t", 1, 9), E.OFFSET_OUT_OF_RANGE),
        (("t", 1, 0, 100, EPOCH + 1), E.UNKNOWN_LEADER_EPOCH),
        (("far", 0, 0), E.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_an_error_of_one_partition_is_not_held_back_by_the_others(failing, error):
    host = default_host()
    host.add_topic("far", hosted=False, leader=2)

    async def test(wire):
        client = await wire.client()
        first, second = (
            await fetch(client, ("t", 0, 0), ("u", 0, 0), failing, wait=9000)
        ).responses[::2]
        assert first.partitions[0].error_code == 0
        assert second.partitions[0].error_code == error

    host.add_topic("u")
    run(test, host)


def test_lost_leadership_ends_the_wait():
    async def test(wire):
        client = await wire.client()
        future = fetch(client, ("t", 0, 0), wait=9000)
        await asyncio.sleep(0.02)
        wire.host.fail_with = E.NOT_LEADER_OR_FOLLOWER
        (watch,) = wire.host.replicas["t", 0].watches
        watch.error = E.NOT_LEADER_OR_FOLLOWER
        watch.on_done(watch)
        part = only(await asyncio.wait_for(future, 2))
        assert (part.error_code, part.high_watermark) == (E.NOT_LEADER_OR_FOLLOWER, -1)

    run(test)


def test_a_topic_that_is_deleted_meanwhile_is_unknown_and_ends_the_wait():
    """As Apache Kafka 4.3.1, without the empty list that tells it from one that never was; the
    answer was that somebody else leads."""

    async def test(wire):
        client = await wire.client()
        future = fetch(client, ("t", 0, 0), ("u", 0, 0), wait=9000)
        while not wire.host.replicas["u", 0].watches:
            await wire.tick()
        (watch,) = wire.host.replicas["u", 0].watches
        del wire.host.images["u"]
        wire.host.fail_with = watch.error = E.NOT_LEADER_OR_FOLLOWER
        watch.on_done(watch)
        first, second = (await asyncio.wait_for(future, 2)).responses
        assert first.partitions[0].error_code == E.NOT_LEADER_OR_FOLLOWER
        (part,) = second.partitions
        assert (part.error_code, part.high_watermark) == (E.UNKNOWN_TOPIC_OR_PARTITION, -1)
        assert part.aborted_transactions is None

    host = default_host()
    host.add_topic("u")
    run(test, host)


def test_a_client_that_leaves_while_it_waits_leaves_no_watch():
    async def test(wire):
        client = await wire.client()
        fetch(client, ("t", 0, 0), ("t", 1, 0), wait=9000)
        while not wire.host.replicas["t", 1].watches:
            await wire.tick()
        submitted = wire.host.submitted
        client.close()
        while wire.server.connections:
            await wire.tick()
        watches = [wire.host.replicas["t", p].watches[0] for p in (0, 1)]
        assert [watch.cancelled for watch in watches] == [True, True]
        wire.host.replicas["t", 0].append(
            watches[0].owner and split_batches(build_batch([b"v"]))[0]
        )
        assert wire.host.submitted == submitted

    run(test)


@pytest.mark.parametrize(
    ("session", "epoch", "error", "topics"),
    [
        (0, -1, E.NONE, 1),
        (0, 0, E.NONE, 1),
        (77, -1, E.NONE, 1),
        (77, 0, E.NONE, 1),
        (77, 1, E.FETCH_SESSION_ID_NOT_FOUND, 0),
        (0, 1, E.FETCH_SESSION_ID_NOT_FOUND, 0),
        (77, -2, E.FETCH_SESSION_ID_NOT_FOUND, 0),
    ],
)
@pytest.mark.parametrize("version", [7, 11, 12])
def test_sessions_are_refused_politely(version, session, epoch, error, topics):
    async def test(wire):
        client = await wire.client()
        await fill(client, 1)
        answer = await fetch(
            client, ("t", 0, 0), version=version, session_id=session, session_epoch=epoch
        )
        assert (answer.error_code, answer.session_id, len(answer.responses)) == (error, 0, topics)

    run(test)


def test_without_topics_it_is_empty_at_once():
    async def test(wire):
        client = await wire.client()
        answer = await asyncio.wait_for(fetch(client, wait=9000), 2)
        assert (answer.error_code, answer.responses) == (E.NONE, ())

    run(test)


def test_answers_that_may_be_large_hold_back_further_requests():
    async def test(wire):
        client = await wire.client()
        fetch(client, ("t", 0, 0, 1 << 30), wait=150, max_bytes=60_000)
        after = fetch(client, ("t", 0, 0), wait=0)
        await asyncio.sleep(0.05)
        assert wire.host.submitted == 2, "one ticket and one watch of the first"
        await after
        assert wire.host.submitted >= 3

    run(test, default_host(max_inflight_bytes=50_000))


def test_a_megabyte_is_not_copied_on_its_way_to_the_transport():
    async def test(wire):
        client = await wire.client()
        await client.produce("t", 0, [bytes(1 << 20)])
        (entry,) = wire.host.replicas["t", 0].entries
        found = await client.fetch("t", 0, 0, max_bytes=1 << 21)
        assert found.batches[0].data[16:] == entry.payload.data[16:]
        _, view = entry.payload.parts()
        assert view.obj is entry.payload.data

    run(test)
