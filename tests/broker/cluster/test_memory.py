"""A stopped cluster is gone: no timer, queue or callback keeps a node or what is on its disk."""

import asyncio
import gc
import weakref

import pytest

from ottla import Cluster
from ottla.broker.client import Client
from ottla.broker.node.node import Node


@pytest.mark.slow
def test_nothing_keeps_the_nodes_of_a_stopped_cluster():
    async def live() -> list[weakref.ref[Node]]:
        async with Cluster(nodes=3) as cluster:
            await cluster.create_topic("t")
            address = cluster.addresses[await cluster.leader("t")]
            client = await Client.connect(*address)
            assert await client.produce("t", 0, [b"kept on three disks"]) is not None
            client.close()
            nodes = [weakref.ref(cluster.node(each)) for each in cluster.addresses]
        await asyncio.sleep(0.05)
        return nodes

    async def look() -> list[object]:
        nodes = await live()
        gc.collect()
        return [node() for node in nodes]

    assert asyncio.run(look()) == [None, None, None]
