"""A node that has just been started again, as the first client sees it who comes back.

Its port opens before it has heard from the controller how far its log is decided. Kafka's broker
serves nobody until it has caught up with the metadata; who asked earlier would be told that topics
which exist do not, and a producer may give up its records for that.
"""

import asyncio
import socket
import struct
import time
from contextlib import suppress

import pytest

from awaiting import await_that
from broker_wire_fetch import fetch, only
from ottla import Cluster
from ottla.broker.client import Client
from ottla.broker.errors import ErrorCode
from ottla.log.lmdb_store import LmdbStore

ALL_TOPICS = struct.pack(">ihhihi", 14, 3, 0, 7, -1, 0)


def catalog(address):
    """The answer of that node to Metadata version 0 without topics, which means all of them."""
    with socket.create_connection(address, timeout=10) as client:
        client.sendall(ALL_TOPICS)
        head = client.recv(4, socket.MSG_WAITALL)
        return client.recv(int.from_bytes(head), socket.MSG_WAITALL)


async def told_of(topic, address):
    """What that node says of a topic, or partition 0 of it, to each API that may lack it."""
    client = await Client.connect(*address)
    named = [{"name": topic}]
    metadata = await client.send("metadata", 7, topics=named, allow_auto_topic_creation=False)
    listed = [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}]
    listing = [{"name": topic, "partitions": listed}]
    offsets = await client.send("list_offsets", 5, replica_id=-1, isolation_level=0, topics=listing)
    produced = await client.produce(topic, 0, [b"x"])
    assert produced is not None
    told = [
        metadata.topics[0].error_code,
        only(await fetch(client, (topic, 0, 0))).error_code,
        offsets.topics[0].partitions[0].error_code,
        produced.error,
    ]
    client.close()
    return told


def until(condition):
    """A test that reaches the limit waits for what never comes."""
    await_that(condition, 20.0, "waited 20 s")


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("kept", [True, False])
def test_every_topic_is_known_to_the_first_who_asks(nodes, kept, tmp_path):
    with Cluster(nodes=nodes, data_dir=tmp_path if kept else None) as cluster:
        cluster.create_topic("orders")
        for node in cluster.addresses:
            cluster.restart(node)
            assert b"orders" in catalog(cluster.addresses[node])


def test_what_the_others_decided_meanwhile_is_known_too(tmp_path):
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        cluster.create_topic("orders")
        cluster.kill(3)
        cluster.create_topic("payments", assignment=[[1, 2]])
        cluster.restart(3)
        assert b"payments" in catalog(cluster.addresses[3])


@pytest.mark.slow
def test_without_a_majority_it_answers_all_the_same_after_a_while(tmp_path):
    """And says of no topic that it does not exist: librdkafka would drop what it has queued."""
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        cluster.create_topic("orders")
        for node in (1, 2, 3):
            cluster.kill(node)
        cluster.restart(1)
        assert len(catalog(cluster.addresses[1])) > 8
        told = asyncio.run(told_of("orders", cluster.addresses[1]))
        elsewhere = ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert told == [ErrorCode.LEADER_NOT_AVAILABLE, elsewhere, elsewhere, elsewhere]
        cluster.restart(2)
        cluster.leader("orders")
        until(lambda: b"orders" in catalog(cluster.addresses[1]))
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        until(lambda: asyncio.run(told_of("payments", cluster.addresses[1])) == [unknown] * 4)


@pytest.mark.slow
def test_paused_before_it_has_caught_up_it_stays_silent():
    with Cluster(nodes=3) as cluster:
        for node in (1, 2, 3):
            cluster.kill(node)
        cluster.restart(1)
        cluster.pause(1)
        with socket.create_connection(cluster.addresses[1], timeout=2.5) as client:
            client.sendall(ALL_TOPICS)
            with pytest.raises(TimeoutError):
                client.recv(4)
            client.settimeout(10)
            cluster.resume(1)
            assert len(client.recv(4, socket.MSG_WAITALL)) == 4


def test_the_others_go_on_while_a_long_log_is_read(tmp_path, monkeypatch):
    """A restart read the node's whole log on the loop: nobody was served meanwhile."""
    slow = LmdbStore.open

    def slowly(*arguments, **settings):
        time.sleep(0.5)
        return slow(*arguments, **settings)

    async def main():
        async with Cluster(nodes=3, data_dir=tmp_path) as cluster:
            await cluster.create_topic("t")
            await cluster.kill(2)
            monkeypatch.setattr(LmdbStore, "open", slowly)
            restart = asyncio.create_task(cluster.restart(2))
            turns = 0
            while not restart.done():
                await asyncio.sleep(0.01)
                turns += 1
            await restart
            assert turns > 10
            assert cluster.describe().nodes[2].state == "running"

    asyncio.run(main())


@pytest.mark.slow
def test_a_restart_that_is_given_up_can_be_done_again(tmp_path, monkeypatch):
    slow = LmdbStore.open

    def slowly(*arguments, **settings):
        time.sleep(0.2)
        return slow(*arguments, **settings)

    async def main():
        async with Cluster(nodes=3, data_dir=tmp_path) as cluster:
            await cluster.kill(2)
            monkeypatch.setattr(LmdbStore, "open", slowly)
            with suppress(TimeoutError):
                await asyncio.wait_for(cluster.restart(2), 0.05)
            assert cluster.describe().nodes[2].state == "dead"
            await cluster.restart(2)
            assert cluster.describe().nodes[2].state == "running"
            await cluster.kill(2)
            with suppress(TimeoutError):
                await asyncio.wait_for(cluster.restart(2), 0.05)
        async with Cluster(nodes=3, data_dir=tmp_path):
            pass

    asyncio.run(main())
