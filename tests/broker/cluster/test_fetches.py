"""Fetch at a real cluster, of partitions that go while a request holds on to them.

The leader resigns, the topic is deleted, the disk gives nothing back: whoever waits is answered,
soon and once, and the node that cannot read what it has promised to keep leads no longer.
"""

import asyncio
import logging

from broker_wire_fetch import fetch, fill, offsets, only
from ottla import Cluster
from ottla.broker.client import Client
from ottla.broker.config import ClusterConfig
from ottla.broker.errors import ErrorCode
from ottla.log.errors import CorruptLogError

QUICK = ClusterConfig(election_timeout_ms=200, heartbeat_ms=40)
LONG = 3000
"""Milliseconds that a waiting request is patient."""
SOON = 1.0


def scenario(play):
    """Run `play(cluster, client, leader)` with three nodes, and a client of the leader of t."""

    async def main():
        async with Cluster(nodes=3, config=QUICK) as cluster:
            await cluster.create_topic("t", partitions=2)
            leader = await cluster.leader("t")
            await cluster.transfer_leadership("t", 1, leader)
            client = await Client.connect(*cluster.addresses[leader])
            await play(cluster, client, leader)
            client.close()

    asyncio.run(main())


async def wait_for_more(cluster, client, leader):
    """A request for more than there is, which has read what there is and waits with it."""
    asked = asyncio.ensure_future(fetch(client, ("t", 0, 0), wait=LONG, min_bytes=1 << 20))
    other = await Client.connect(*cluster.addresses[leader])
    for _ in range(2):  # begun, and answered, behind the one that waits
        await fetch(other, ("t", 0, 0))
    other.close()
    return asked


def test_records_that_were_read_are_given_when_the_leader_resigns():
    async def play(cluster, client, leader):
        await fill(client, 1)
        asked = await wait_for_more(cluster, client, leader)
        before = cluster.describe().nodes[leader].turns
        await cluster.transfer_leadership("t", 0, leader % 3 + 1)
        answer = await asyncio.wait_for(asked, SOON)
        assert only(answer).error_code == ErrorCode.NONE
        assert offsets(only(answer)) == [0]
        assert cluster.describe().nodes[leader].turns - before < 500

    scenario(play)


def test_records_that_were_read_are_given_when_the_topic_is_deleted(caplog):
    async def play(cluster, client, leader):
        await fill(client, 1)
        asked = await wait_for_more(cluster, client, leader)
        await cluster.delete_topic("t")
        answer = await asyncio.wait_for(asked, SOON)
        assert offsets(only(answer)) == [0]

    with caplog.at_level(logging.ERROR):
        scenario(play)
    assert not caplog.records


def test_a_log_that_cannot_be_read_is_answered_and_led_by_another(monkeypatch):
    async def play(cluster, client, leader):
        await fill(client, 1)
        await fill(client, 1, partition=1)

        def damaged(group, first, *_):
            raise CorruptLogError(group, first, "damaged")

        monkeypatch.setattr(cluster.node(leader).store, "read", damaged)
        asked = fetch(client, ("t", 0, 0), ("t", 1, 0), wait=LONG)
        answer = await asyncio.wait_for(asked, SOON)
        ((first, second),) = (topic.partitions for topic in answer.responses)
        assert {first.error_code, second.error_code} == {ErrorCode.KAFKA_STORAGE_ERROR}
        await client.closed
        assert cluster.describe().nodes[leader].state == "failed"
        assert await cluster.leader("t") != leader

    scenario(play)
