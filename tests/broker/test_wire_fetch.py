"""Fetch: limits, long polls, errors and sessions, as measured on Apache Kafka 4.3.1 (facts 8b).

The log is the fake node's; what may be seen of a real partition is tested with the partition.
Bytes of one batch here are `ONE`.
"""

import asyncio
import time

import pytest

from broker_fake_host import EPOCH, FakeHost
from broker_wire import default_host, run
from ottla.broker.client import split_batches
from ottla.broker.errors import ErrorCode
from ottla.log.build import build_batch
from ottla.log.errors import CompactedError

E = ErrorCode
ONE = len(build_batch([b"v" * 100]))


async def fill(client, batches, partition=0, records=1):
    for _ in range(batches):
        await client.produce("t", partition, [b"v" * 100] * records)


def fetch(client, *parts, version=11, wait=0, **fields):
    """Fetch (topic, partition, offset[, partition_max_bytes[, leader epoch]])..."""
    topics = []
    for topic, partition, offset, *more in parts:
        wanted = {
            "partition": partition,
            "fetch_offset": offset,
            "partition_max_bytes": more[0] if more else 1 << 20,
            "current_leader_epoch": more[1] if len(more) > 1 else -1,
        }
        topics.append({"topic": topic, "partitions": [wanted]})
    defaults = {"min_bytes": 1, "max_bytes": 1 << 20, "forgotten_topics_data": []}
    return client.send("fetch", version, **defaults | {"max_wait": wait, "topics": topics} | fields)


def only(response):
    ((part,),) = (topic.partitions for topic in response.responses)
    return part


def offsets(part):
    return [batch.base_offset for batch in split_batches(part.records)]


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


@pytest.mark.parametrize(
    ("limit", "total", "expected"),
    [
        (0, 1 << 20, [0]),
        (1, 1 << 20, [0]),
        (1 << 20, 0, [0]),
        (-5, -5, [0]),
        (2 * ONE, 1 << 20, [0, 1]),
        (2 * ONE + 60, 1 << 20, [0, 1]),
        (1 << 20, 3 * ONE, [0, 1, 2]),
        (1 << 20, 1 << 20, [0, 1, 2, 3]),
    ],
)
def test_the_first_batch_comes_whole_and_the_others_within_the_limits(limit, total, expected):
    async def test(wire):
        client = await wire.client()
        await fill(client, 4)
        start = time.monotonic()
        answer = await fetch(client, ("t", 0, 0, limit), max_bytes=total, wait=5000)
        assert offsets(only(answer)) == expected
        assert time.monotonic() - start < 4

    run(test)


def test_max_bytes_is_for_all_partitions_together():
    async def test(wire):
        client = await wire.client()
        await fill(client, 2, partition=0)
        await fill(client, 2, partition=1)
        parts = [("t", 0, 0), ("t", 1, 0)]
        for limit, expected in [(0, [[0], []]), (3 * ONE, [[0, 1], [0]]), (1 << 20, [[0, 1]] * 2)]:
            (topic,) = (await fetch(client, *parts, max_bytes=limit)).responses
            assert [offsets(part) for part in topic.partitions] == expected
            assert [part.high_watermark for part in topic.partitions] == [2, 2]

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


def test_it_waits_for_min_bytes_and_then_gives_everything():
    async def test(wire):
        consumer, producer = await wire.client(), await wire.client()
        future = fetch(consumer, ("t", 0, 0), wait=9000, min_bytes=3 * ONE)
        for _ in range(2):
            await fill(producer, 1)
            await asyncio.sleep(0.01)
            assert not future.done()
        await fill(producer, 1)
        assert offsets(only(await asyncio.wait_for(future, 2))) == [0, 1, 2]

    run(test)


def test_with_less_than_min_bytes_it_gives_what_there_is_when_time_is_up():
    async def test(wire):
        client = await wire.client()
        await fill(client, 2)
        part = only(await fetch(client, ("t", 0, 0), wait=100, min_bytes=1 << 19))
        assert offsets(part) == [0, 1]

    run(test)


def test_min_bytes_above_max_bytes_does_not_wait():
    async def test(wire):
        client = await wire.client()
        await fill(client, 3)
        answer = await fetch(client, ("t", 0, 0), wait=9000, min_bytes=1 << 30, max_bytes=ONE)
        assert offsets(only(answer)) == [0]

    run(test)


def test_an_error_of_one_partition_is_not_held_back_by_the_others():
    async def test(wire):
        client = await wire.client()
        first, second = (await fetch(client, ("t", 0, 0), ("gone", 0, 0), wait=9000)).responses
        assert (first.partitions[0].error_code, second.partitions[0].error_code) == (0, 3)

    run(test)


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
