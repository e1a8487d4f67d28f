"""Profiles on a running cluster: what a user of each sees."""

import asyncio

import pytest

from ottla import Cluster, Topic
from ottla.broker.errors import ErrorCode
from ottla.testing import Client, Producer


def on_one_node(story, profile, folder=None):
    async def run():
        topics = [Topic("t")]
        async with Cluster(nodes=1, topics=topics, profile=profile, data_dir=folder) as cluster:
            client = await Client.connect(*cluster.addresses[1])
            try:
                return await asyncio.wait_for(story(cluster, client), 20)
            finally:
                client.close()

    return asyncio.run(run())


async def write(client, *sequences, producer=7):
    """One batch of one record for each; returns error and base offset of each."""
    answers = [
        await client.produce("t", 0, [b"v"], producer=Producer(producer, 0, n)) for n in sequences
    ]
    return [(each.error, each.base_offset) for each in answers]


@pytest.mark.parametrize("alias", ["kafka", "redpanda"])
def test_a_cluster_says_the_full_name_of_its_profile(alias):
    async def story(cluster, _):
        return cluster.config.profile

    name = on_one_node(story, alias)
    assert name != alias
    assert name.startswith(alias)


def test_a_restart_keeps_all_five_batches():
    """Kafka keeps the last one alone, if the broker was stopped cleanly."""

    async def story(cluster, client):
        await write(client, *range(6))
        await cluster.kill(1)
        await cluster.restart(1)
        again = await Client.connect(*cluster.addresses[1])
        found = await write(again, *range(6))
        again.close()
        return found

    gap = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    found = on_one_node(story, "kafka-4.3")
    assert found == [gap, *((ErrorCode.NONE, n) for n in range(1, 6))]
