"""Whom a node names to clients that is cut off from its peers: the others, who may lead by now.

What clients make of it is for `tests/clients/test_clients_isolated.py`.
"""

import asyncio

from ottla import Cluster, Topic
from ottla.broker.client import Client
from ottla.broker.config import ClusterConfig

ALL = {1, 2, 3}
CUT_OFF = 1
WITHIN = 20.0
FAST = ClusterConfig(election_timeout_ms=100, heartbeat_ms=20)


async def named(client):
    """The brokers that Metadata names, those of DescribeCluster; in each one of them controls."""
    metadata = await client.metadata()
    described = await client.call(
        "describe_cluster",
        include_cluster_authorized_operations=False,
        include_fenced_brokers=False,
    )
    brokers = {broker.node_id for broker in metadata.brokers}
    listed = {broker.broker_id for broker in described.brokers}
    assert metadata.controller_id in brokers
    assert described.controller_id in listed
    return brokers, listed


async def leader(client, topic):
    """Who leads a topic, as this node says; -1 when it says nobody."""
    (found,) = (await client.metadata([topic])).topics
    return found.partitions[0].leader_id


async def until(wanted, asked, *arguments):
    """Ask until the answer is the wanted one."""
    async with asyncio.timeout(WITHIN):
        while await asked(*arguments) != wanted:  # noqa: ASYNC110 - nobody tells a client
            await asyncio.sleep(0.01)


async def cut_off(topics, brokers):
    """Cut node 1 off until it names `brokers`; who leads `topics` then, as it says. Then heal."""
    async with Cluster(nodes=3, topics=topics, config=FAST) as cluster:
        client = await Client.connect(*cluster.addresses[CUT_OFF])
        await until((ALL, ALL), named, client)
        cluster.isolate(CUT_OFF)
        await until(-1, leader, client, "shared")
        await until((brokers, brokers), named, client)
        led = [await leader(client, topic.name) for topic in topics]
        cluster.heal()
        await until((ALL, ALL), named, client)
        client.close()
        return led


SHARED, OWN = Topic("shared", assignment=[[1, 2, 3]]), Topic("own", assignment=[[1]])


def test_who_hears_of_no_majority_leaves_itself_out():
    assert asyncio.run(cut_off([SHARED], {2, 3})) == [-1]


def test_who_still_leads_something_names_itself_too():
    assert asyncio.run(cut_off([SHARED, OWN], ALL)) == [-1, CUT_OFF]
