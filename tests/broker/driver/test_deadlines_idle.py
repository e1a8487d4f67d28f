"""Idle replicas trust beats instead of being looked at; the first request after that is served.

Many election timeouts pass in which no message of the group is sent. Nobody may resign or stand for
election because of that, neither while nothing happens nor when something does again.
"""

import asyncio

import pytest

from ottla import Cluster
from ottla.broker.client import Client
from ottla.broker.errors import ErrorCode


@pytest.mark.slow
def test_an_idle_leader_still_leads_when_the_next_request_comes():
    async def live() -> None:
        async with Cluster(nodes=3, election_timeout_ms=100, heartbeat_ms=20) as cluster:
            await cluster.create_topic("t")
            leader = await cluster.leader("t")
            client = await Client.connect(*cluster.addresses[leader])
            for number in range(3):
                await asyncio.sleep(0.5)
                produced = await client.produce("t", 0, [b"x"])
                assert produced is not None
                assert (produced.error, produced.base_offset) == (ErrorCode.NONE, number)
            partition = cluster.describe().topics["t"][0]
            assert (partition.leader, partition.leader_epoch) == (leader, 1)
            client.close()

    asyncio.run(live())
