"""A node that has stopped by itself, because of its disk or of an invariant, as others see it."""

import asyncio

from ottla import Cluster
from ottla.broker.client import Client
from ottla.log.build import build_batch
from ottla.log.errors import StoreError
from ottla.log.memory_store import MemoryStore


async def until(condition):
    """A test that reaches the limit waits for what never comes."""
    for _ in range(4000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("waited 20 s")


def test_it_leads_nothing_and_says_why_it_stopped():
    async def scenario():
        async with Cluster(nodes=3, election_timeout_ms=100, heartbeat_ms=20) as cluster:
            await cluster.create_topic("t", partitions=3)
            failing = cluster.describe().controller
            for partition in range(3):
                await cluster.transfer_leadership("t", partition, failing)
            assert cluster.describe().nodes[failing].leads == 3
            store = cluster.node(failing).store
            assert isinstance(store, MemoryStore)
            store.disk.fail_syncs(StoreError("the disk is gone"))
            client = await Client.connect(*cluster.addresses[failing])
            await client.send_batch("t", 0, build_batch([b"x"]))
            await client.closed
            seen = cluster.describe()
            node = seen.nodes[failing]
            assert (node.state, node.error, node.leads) == ("failed", "the disk is gone", 0)
            told = [each[1:3] for each in cluster.events if each.reason == "the disk is gone"]
            assert told == [("failed", failing)]
            await until(lambda: cluster.describe().controller not in {0, failing})
            await until(lambda: all(p.leader for p in cluster.describe().topics["t"]))
            topic = cluster.describe().topics["t"]
            assert failing not in {each.leader for each in topic}
            assert {each.members[failing].role for each in topic} == {"follower"}

    asyncio.run(scenario())
