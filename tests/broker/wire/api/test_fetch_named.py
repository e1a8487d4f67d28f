"""Fetch: what a request names twice or in vain, and logs that are not the reader's.

As measured on Apache Kafka 4.3.1. The log is the fake node's (see `test_wire_fetch.py`); where two
logs part is found by the partition (`test_core_reads.py`).
"""

import asyncio
import time

import pytest

from broker_fake_host import EPOCH
from broker_wire import default_host, run
from broker_wire_fetch import fetch, fill, offsets
from ottla.broker.client import split_batches
from ottla.broker.errors import ErrorCode
from ottla.broker.turn.tickets import FetchTicket
from ottla.log.build import build_batch
from ottla.log.types import EpochStart

E = ErrorCode


@pytest.mark.parametrize("absent", [("gone", 0, 0), ("t", 3, 0), ("t", -1, 0)])
def test_a_partition_that_does_not_exist_does_not_end_the_wait_for_others(absent):
    """A consumer of a deleted topic used to ask again at once, thousands of times a second. Kafka
    4.3.1 reads and waits for the others; those that do not exist are answered last."""

    async def test(wire):
        client, producer = await wire.client(), await wire.client()
        future = fetch(client, absent, ("t", 0, 0), wait=150)
        start = time.monotonic()
        first, *_, last = [part for topic in (await future).responses for part in topic.partitions]
        assert 0.14 < time.monotonic() - start < 2
        assert (first.error_code, first.aborted_transactions) == (E.NONE, None)
        assert (last.error_code, last.aborted_transactions) == (E.UNKNOWN_TOPIC_OR_PARTITION, ())
        future = fetch(client, absent, ("t", 0, 0), wait=9000)
        await asyncio.sleep(0.02)
        assert not future.done()
        await fill(producer, 1)
        assert offsets((await asyncio.wait_for(future, 2)).responses[0].partitions[0]) == [0]

    run(test)


@pytest.mark.parametrize("version", [4, 11, 12])
def test_of_a_partition_that_is_named_twice_the_last_entry_counts(version):
    """One is answered, where it stood first; what follows on from the same topic is in one entry
    with it (measured on Apache Kafka 4.3.1, which keeps a map; two were answered)."""

    async def test(wire):
        client = await wire.client()
        await fill(client, 3)

        async def answered(*parts):
            answer = await fetch(client, *parts, version=version)
            return [
                (topic.topic, [(p.partition_index, p.error_code) for p in topic.partitions])
                for topic in answer.responses
            ]

        assert await answered(("t", 0, 77), ("t", 0, 0)) == [("t", [(0, E.NONE)])]
        assert await answered(("t", 0, 0), ("t", 0, 77)) == [("t", [(0, E.OFFSET_OUT_OF_RANGE)])]
        gone = E.UNKNOWN_TOPIC_OR_PARTITION
        assert await answered(("no", 0, 0), ("no", 0, 0)) == [("no", [(0, gone)])]
        parts = ("t", 1, 0), ("no", 0, 0), ("u", 0, 0), ("t", 0, 9), ("t", 5, 0), ("t", 1, 0)
        assert await answered(*parts, ("t", 0, 0)) == [
            ("t", [(1, E.NONE)]),
            ("u", [(0, E.NONE)]),
            ("t", [(0, E.NONE)]),
            ("no", [(0, gone)]),
            ("t", [(5, gone)]),
        ]

    host = default_host()
    host.add_topic("u")
    run(test, host)


@pytest.mark.parametrize("isolation", [0, 1])
def test_an_epoch_that_diverges_is_answered_at_once_without_records(isolation):
    """Version 12 asks with the epoch of the record before the offset (KIP-595). What diverges, and
    where, is tested with the partition. There is no list of aborted transactions with it."""

    async def test(wire):
        client = await wire.client()
        for partition in (0, 1):
            await fill(client, 1, partition, records=4)
        wire.host.hold = True
        wanted = [
            {
                "partition": each,
                "fetch_offset": 4,
                "partition_max_bytes": 99,
                "last_fetched_epoch": 3,
            }
            for each in (0, 1)
        ]
        topics = [{"topic": "t", "partitions": wanted}]
        fields = {"min_bytes": 1, "max_bytes": 99, "isolation_level": isolation}
        fields |= {"max_wait": 9000, "topics": topics, "forgotten_topics_data": ()}
        future = client.send("fetch", 12, **fields)
        while len(wire.host.held) < 2:
            await wire.tick()
        first, second = list(wire.host.held)
        assert (first.last_fetched_epoch, second.last_fetched_epoch) == (3, 3)
        found = {"high_watermark": 9, "log_start_offset": 0}
        wire.host.complete(first, **found, first_index=0, diverging=EpochStart(2, 1))
        wire.host.complete(second, **found, first_index=0)
        (topic,) = (await asyncio.wait_for(future, 2)).responses
        assert [
            (each.error_code, each.diverging_epoch.epoch, each.diverging_epoch.end_offset)
            for each in topic.partitions
        ] == [(0, 2, 1), (0, -1, -1)]
        aborted = [each.aborted_transactions for each in topic.partitions]
        assert aborted == [None, () if isolation else None]
        assert [(each.high_watermark, each.records) for each in topic.partitions] == [(9, b"")] * 2

    run(test)


def test_an_epoch_is_compared_once_in_a_request_and_not_with_what_follows():
    """A request that reads on, waiting for more bytes, has by then read records of later epochs."""

    async def test(wire):
        client = await wire.client()
        await fill(client, 1)
        wire.host.hold = True
        wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 9999}
        topics = [{"topic": "t", "partitions": [wanted | {"last_fetched_epoch": EPOCH}]}]
        fields = {"min_bytes": 1000, "max_bytes": 9999, "forgotten_topics_data": ()}
        client.send("fetch", 12, topics=topics, max_wait=9000, **fields)
        epochs: list[int] = []
        while len(epochs) < 2:
            await wire.tick()
            for ticket in list(wire.host.held):
                if isinstance(ticket, FetchTicket):
                    epochs.append(ticket.last_fetched_epoch)
                wire.host.complete(ticket)
            wire.host.replicas["t", 0].append(split_batches(build_batch([b"v"]))[0])
        assert epochs == [EPOCH, -1]

    run(test)
