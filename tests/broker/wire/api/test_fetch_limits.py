"""Fetch: how much is given, row by row as measured on Apache Kafka 4.3.1 (K-FETCH).

Each partition holds four batches of `ONE` bytes. The log is the fake node's; that a real store with
other entries in between gives the same is tested at the end.
"""

import asyncio
import time

import pytest

from broker_fake_host import EPOCH
from broker_wire import default_host, run
from broker_wire_fetch import ONE, fetch, fill, offsets, only
from ottla import Cluster, Topic
from ottla.broker.client import Client
from ottla.broker.errors import ErrorCode
from ottla.raft.types import Entry, EntryKind

E = ErrorCode
PLENTY = 1 << 20


def log_of(wire, partition=0):
    """The bytes of a partition's log, stamps and all."""
    entries = wire.host.replicas["t", partition].entries
    return b"".join(each.payload.stamped() for each in entries)


# partition_max_bytes, max_bytes, bytes in the answer
ONE_PARTITION = [
    (0, PLENTY, ONE),
    (1, PLENTY, ONE),
    (ONE - 1, PLENTY, ONE),
    (ONE, PLENTY, ONE),
    (ONE + 1, PLENTY, ONE + 1),
    (ONE + 11, PLENTY, ONE + 11),
    (ONE + 16, PLENTY, ONE + 16),
    (ONE + 17, PLENTY, ONE + 17),
    (2 * ONE - 1, PLENTY, 2 * ONE - 1),
    (2 * ONE, PLENTY, 2 * ONE),
    (2 * ONE + 60, PLENTY, 2 * ONE + 60),
    (3 * ONE + 5, PLENTY, 3 * ONE + 5),
    (PLENTY, PLENTY, 4 * ONE),
    (PLENTY, 0, ONE),
    (PLENTY, 1, ONE),
    (PLENTY, ONE, ONE),
    (PLENTY, ONE + 1, ONE + 1),
    (PLENTY, 2 * ONE + 60, 2 * ONE + 60),
]


@pytest.mark.parametrize(("limit", "total", "size"), ONE_PARTITION)
@pytest.mark.parametrize("version", [4, 11, 12])
def test_the_first_batch_comes_whole_and_the_rest_is_cut_at_the_limit(version, limit, total, size):
    async def test(wire):
        client = await wire.client()
        await fill(client, 4)
        answer = fetch(client, ("t", 0, 0, limit), max_bytes=total, wait=5000, version=version)
        part = only(await asyncio.wait_for(answer, 4))
        assert (part.error_code, part.records) == (E.NONE, log_of(wire)[:size])
        assert offsets(part) == list(range(size // ONE))

    run(test)


# max_bytes, bytes of the first and of the second partition
TWO_PARTITIONS = [
    (0, ONE, 0),
    (ONE, ONE, 0),
    (ONE + 1, ONE + 1, 0),
    (3 * ONE, 3 * ONE, 0),
    (4 * ONE, 4 * ONE, 0),
    (4 * ONE + 1, 4 * ONE, 0),
    (5 * ONE - 1, 4 * ONE, 0),
    (5 * ONE, 4 * ONE, ONE),
    (5 * ONE + 3, 4 * ONE, ONE + 3),
    (6 * ONE - 1, 4 * ONE, 2 * ONE - 1),
    (PLENTY, 4 * ONE, 4 * ONE),
]


@pytest.mark.parametrize(("total", "first", "second"), TWO_PARTITIONS)
def test_max_bytes_is_for_all_partitions_together(total, first, second):
    """Another partition's first batch comes whole or not at all."""

    async def test(wire):
        client = await wire.client()
        await fill(client, 4, partition=0)
        await fill(client, 4, partition=1)
        (topic,) = (await fetch(client, ("t", 0, 0), ("t", 1, 0), max_bytes=total)).responses
        wanted = [log_of(wire, 0)[:first], log_of(wire, 1)[:second]]
        assert [part.records for part in topic.partitions] == wanted
        assert [part.high_watermark for part in topic.partitions] == [4, 4]

    run(test)


@pytest.mark.parametrize(
    ("from_first", "limit", "sizes"),
    [(0, ONE, [ONE, ONE]), (0, ONE + 1, [ONE + 1] * 2), (0, 1, [ONE, 0]), (4, 1, [0, ONE])],
)
def test_a_partitions_limit_is_its_own(from_first, limit, sizes):
    """Only the first batch of the whole answer may be larger than the limits (KIP-74)."""

    async def test(wire):
        client = await wire.client()
        await fill(client, 4, partition=0)
        await fill(client, 4, partition=1)
        asked = fetch(client, ("t", 0, from_first, limit), ("t", 1, 0, limit))
        (topic,) = (await asked).responses
        assert [len(part.records) for part in topic.partitions] == sizes

    run(test)


@pytest.mark.parametrize(("limit", "total"), [(-5, PLENTY), (PLENTY, -5), (-5, -5)])
def test_negative_limits_are_an_error_where_there_is_something_to_read(limit, total):
    async def test(wire):
        client = await wire.client()
        await fill(client, 2)
        part = only(await fetch(client, ("t", 0, 0, limit), max_bytes=total, wait=5000))
        assert (part.error_code, part.high_watermark) == (E.UNKNOWN_SERVER_ERROR, -1)
        assert (part.last_stable_offset, part.log_start_offset) == (-1, -1)
        assert (part.aborted_transactions, part.records) == (None, b"")
        part = only(await fetch(client, ("t", 0, 2, limit), max_bytes=total))
        assert (part.error_code, part.high_watermark, part.records) == (E.NONE, 2, b"")

    run(test)


@pytest.mark.parametrize(
    ("limit", "total", "aborted"),
    [
        (0, PLENTY, ()),
        (1, PLENTY, None),
        (ONE - 1, PLENTY, None),
        (ONE, PLENTY, ()),
        (PLENTY, ONE, ()),
        (PLENTY, ONE + 1, None),
        (PLENTY, 2 * ONE - 1, None),
        (PLENTY, 2 * ONE, ()),
        (PLENTY, 0, ()),
    ],
)
def test_too_little_room_for_a_first_batch_is_told_from_none(limit, total, aborted):
    """Reading what is committed: an empty list of aborted transactions, or null. Measured on Apache
    Kafka 4.3.1, found by a fuzz beside it."""

    async def test(wire):
        client = await wire.client()
        await fill(client, 1, partition=0)
        await fill(client, 1, partition=1)
        parts = ("t", 0, 0), ("t", 1, 0, limit)
        (topic,) = (await fetch(client, *parts, max_bytes=total, isolation_level=1)).responses
        assert [part.aborted_transactions for part in topic.partitions] == [(), aborted]

    run(test)


@pytest.mark.parametrize("offset", [0, 4, 99])
def test_a_negative_max_bytes_is_that_of_the_first_partition_only(offset):
    """For what comes behind it nothing is left of it, as behind a large answer; measured on Apache
    Kafka 4.3.1, whatever became of the first."""

    async def test(wire):
        client = await wire.client()
        for partition in (0, 1, 2):
            await fill(client, 4, partition=partition)
        parts = ("gone", 0, 0), ("t", 0, offset), ("t", 1, 0), ("t", 2, 0)
        answer = await fetch(client, *parts, max_bytes=-1, wait=5000)
        first, second, third = answer.responses[0].partitions
        errors = {0: E.UNKNOWN_SERVER_ERROR, 4: E.NONE, 99: E.OFFSET_OUT_OF_RANGE}
        assert (first.error_code, first.records) == (errors[offset], b"")
        assert (second.error_code, second.records) == (E.NONE, log_of(wire, 1)[:ONE])
        assert (third.error_code, third.records) == (E.NONE, b"")

    run(test)


# ---- how long it waits for more


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


def test_what_it_has_already_is_not_given_again_when_more_comes():
    async def test(wire):
        consumer, producer = await wire.client(), await wire.client()
        await fill(producer, 1, records=3)
        future = fetch(consumer, ("t", 0, 0), wait=9000, min_bytes=4 * ONE)
        await asyncio.sleep(0.01)
        await fill(producer, 4)
        assert offsets(only(await asyncio.wait_for(future, 2)))[:2] == [0, 3]

    run(test)


@pytest.mark.parametrize(
    ("limit", "min_bytes", "size"),
    [(PLENTY, 1 << 19, 2 * ONE), (ONE, PLENTY, ONE), (ONE + 5, ONE + 6, ONE + 5)],
)
def test_with_less_than_min_bytes_it_gives_what_there_is_when_time_is_up(limit, min_bytes, size):
    """Also where the partition's own limit is what keeps it below."""

    async def test(wire):
        client = await wire.client()
        await fill(client, 2)
        start = time.monotonic()
        part = only(await fetch(client, ("t", 0, 0, limit), wait=120, min_bytes=min_bytes))
        assert time.monotonic() - start > 0.11
        assert len(part.records) == size

    run(test)


@pytest.mark.parametrize(
    ("limit", "min_bytes", "size"), [(ONE + 5, ONE + 5, ONE + 5), (10, 100, ONE)]
)
def test_what_is_given_counts_for_min_bytes_whole_or_cut(limit, min_bytes, size):
    async def test(wire):
        client = await wire.client()
        await fill(client, 2)
        answer = fetch(client, ("t", 0, 0, limit), wait=9000, min_bytes=min_bytes)
        assert len(only(await asyncio.wait_for(answer, 4)).records) == size

    run(test)


def test_a_partition_that_is_full_is_not_read_again_when_another_moves():
    async def test(wire):
        consumer, producer = await wire.client(), await wire.client()
        await fill(producer, 3, partition=0)
        parts = [("t", 0, 0, ONE + 5), ("t", 1, 0)]
        future = fetch(consumer, *parts, wait=9000, min_bytes=2 * ONE + 5)
        await asyncio.sleep(0.02)
        assert not future.done()
        await fill(producer, 1, partition=0)
        await fill(producer, 1, partition=1)
        (topic,) = (await asyncio.wait_for(future, 2)).responses
        assert [len(part.records) for part in topic.partitions] == [ONE + 5, ONE]
        assert topic.partitions[0].records == log_of(wire)[: ONE + 5]

    run(test)


@pytest.mark.parametrize("total", [ONE, 2 * ONE - 1])
def test_what_max_bytes_leaves_no_room_for_is_not_waited_for(total):
    async def test(wire):
        client = await wire.client()
        await fill(client, 1, partition=0)
        await fill(client, 2, partition=1)
        asked = fetch(
            client, ("t", 0, 0), ("t", 1, 0), wait=9000, min_bytes=1 << 30, max_bytes=total
        )
        (topic,) = (await asyncio.wait_for(asked, 4)).responses
        assert [len(part.records) for part in topic.partitions] == [ONE, 0]

    run(test)


# ---- where the bytes come from


def test_what_is_no_batch_is_stepped_over_and_nothing_is_copied():
    async def test(wire):
        client = await wire.client()
        await fill(client, 2)
        entries = wire.host.replicas["t", 0].entries
        second = entries.pop()
        entries.append(Entry(2, EPOCH, EntryKind.COMMAND, b"a decision"))
        entries.append(Entry(3, EPOCH, EntryKind.BATCH, second.payload))
        part = only(await fetch(client, ("t", 0, 0, ONE + 20)))
        assert part.records == (entries[0].payload.stamped() + second.payload.stamped())[: ONE + 20]
        _, view = second.payload.beginning(20)
        assert (view.obj, len(view)) == (second.payload.data, 4)

    run(test, default_host())


@pytest.mark.parametrize("limit", [1, ONE, ONE + 1, 2 * ONE, 3 * ONE - 1, 4 * ONE])
def test_a_real_node_cuts_at_the_same_place(limit, tmp_path):
    async def check(**where):
        async with Cluster(nodes=1, topics=[Topic("t")], **where) as cluster:
            client = await Client.connect(*cluster.addresses[1])
            await fill(client, 4)
            everything = only(await fetch(client, ("t", 0, 0))).records
            assert len(everything) == 4 * ONE
            part = only(await fetch(client, ("t", 0, 0, limit)))
            assert part.records == everything[: max(ONE, limit)]
            client.close()

    asyncio.run(check())
    asyncio.run(check(data_dir=tmp_path))
