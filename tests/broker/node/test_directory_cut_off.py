"""Whom a node names to clients that does not hear all of its peers (`ottla.broker.node.directory`).

A node that is wrong about it keeps its clients from a cluster that is well. What clients make of
its answers is for `tests/clients/test_clients_isolated.py`.
"""

import asyncio
from contextlib import asynccontextmanager

import pytest

from ottla import Cluster, Topic
from ottla.broker.client import Client
from ottla.broker.config import ClusterConfig

ALL = {1, 2, 3}
CUT_OFF = 1
WITHIN = 20.0
FAST = ClusterConfig(election_timeout_ms=100, heartbeat_ms=20)


async def named(client, topics=None):
    """The brokers that Metadata names; one of them controls."""
    metadata = await client.metadata(topics)
    brokers = {broker.node_id for broker in metadata.brokers}
    assert metadata.controller_id in brokers
    return brokers


async def listed(client):
    """Those of DescribeCluster; one of them controls."""
    answer = await client.call(
        "describe_cluster",
        include_cluster_authorized_operations=False,
        include_fenced_brokers=False,
    )
    brokers = {broker.broker_id for broker in answer.brokers}
    assert answer.controller_id in brokers
    return brokers


async def leader(client, topic):
    """Who leads a topic, as this node says; -1 when it says nobody."""
    (found,) = (await client.metadata([topic])).topics
    return found.partitions[0].leader_id


async def role(cluster, node, topic):
    """What a node's replica of a topic is."""
    return cluster.describe().topics[topic][0].members[node].role


async def until(wanted, asked, *arguments):
    """Ask until the answer is the wanted one."""
    async with asyncio.timeout(WITHIN):
        while await asked(*arguments) != wanted:  # noqa: ASYNC110 - nobody tells a client
            await asyncio.sleep(0.01)


@asynccontextmanager
async def client_of_one_cut_off(*topics):
    """A client of node 1, which is cut off and knows no leader of `shared`; heals in the end."""
    async with Cluster(nodes=3, topics=topics, config=FAST) as cluster:
        client = await Client.connect(*cluster.addresses[CUT_OFF])
        await until(ALL, named, client)
        cluster.isolate(CUT_OFF)
        await until(-1, leader, client, "shared")
        yield client
        cluster.heal()
        await until(ALL, named, client)
        await until(ALL, listed, client)
        client.close()


SHARED, OWN = Topic("shared", assignment=[[1, 2, 3]]), Topic("own", assignment=[[1]])


def test_who_hears_of_no_majority_leaves_itself_out():
    async def scenario():
        async with client_of_one_cut_off(SHARED) as client:
            await until({2, 3}, named, client)
            await until({2, 3}, listed, client)

    asyncio.run(scenario())


def test_two_who_are_cut_off_together_do_not_send_their_clients_to_one_another():
    """Each named the other, and a Java client that is connected to both looked no further."""
    topics = [Topic("shared", assignment=[[1, 2, 3, 4, 5]]), Topic("theirs", assignment=[[2]])]

    async def scenario():
        async with Cluster(nodes=5, topics=topics, config=FAST) as cluster:
            client = await Client.connect(*cluster.addresses[1])
            await until({1, 2, 3, 4, 5}, named, client)
            for here in (1, 2):
                for there in (3, 4, 5):
                    cluster.network.cut(here, there)
                    cluster.network.cut(there, here)
            await until({3, 4, 5}, named, client, ["shared"])
            await until({3, 4, 5}, listed, client)
            assert await named(client, ["theirs"]) == {2, 3, 4, 5}
            assert await leader(client, "theirs") == 2
            client.close()

    asyncio.run(scenario())


def test_it_names_itself_to_those_who_ask_about_what_it_leads():
    """A client that asks about nothing else it leads would be kept by it all the same."""

    async def scenario():
        async with client_of_one_cut_off(SHARED, OWN) as client:
            await until({2, 3}, named, client, ["shared"])
            await until({2, 3}, listed, client)
            assert await named(client) == await named(client, ["own"]) == ALL
            assert await leader(client, "own") == CUT_OFF

    asyncio.run(scenario())


@pytest.mark.slow
def test_a_cut_between_two_denies_neither_nor_what_they_lead():
    """Node 2 hears both, so nobody deposes them: node 1 hears no leader of `far`, and said so to
    clients, who forgot node 3 and stayed for as long as the cut lasted. Node 2 tells it now."""
    topics = [SHARED, Topic("far", assignment=[[3, 2, 1]])]
    calm = ClusterConfig(election_timeout_ms=500)  # a busy moment must not make node 2 stand

    async def scenario():
        async with Cluster(nodes=3, topics=topics, config=calm) as cluster:
            one = await Client.connect(*cluster.addresses[1])
            three = await Client.connect(*cluster.addresses[3])
            await until(3, leader, one, "far")
            cluster.network.cut(1, 3)
            cluster.network.cut(3, 1)
            await until("pre_candidate", role, cluster, 1, "far")
            await until("pre_candidate", role, cluster, 3, "shared")
            await asyncio.sleep(4 * calm.election_timeout_ms / 1000)  # what was heard is forgotten
            await until(ALL, named, one)
            await until(ALL, named, three)
            await until(3, leader, one, "far")
            await until(1, leader, three, "shared")
            assert await cluster.leader("far") == 3, "or nothing was shown"
            one.close()
            three.close()

    asyncio.run(scenario())


def test_who_is_cut_off_from_a_new_leader_hears_of_it_from_who_hears_both():
    """Node 1 was away when 2 was elected behind a cut: it hears 3, which said that it hears 2, and
    not that 2 leads. Clients of node 1 asked it for as long as the cut lasted (sim-S68)."""
    topics = [SHARED, Topic("elsewhere", assignment=[[3, 2]])]

    async def scenario():
        async with Cluster(nodes=3, topics=topics, config=FAST) as cluster:
            client = await Client.connect(*cluster.addresses[1])
            await until(1, leader, client, "shared")
            cluster.pause(1)
            await cluster.transfer_leadership("elsewhere", 0, 2)
            for there, back in ((1, 2), (2, 1)):
                cluster.network.cut(there, back)
            while await cluster.leader("shared") != 2:
                await cluster.transfer_leadership("shared", 0, 2)
            cluster.resume(1)
            await until(2, leader, client, "shared")
            await until(2, leader, client, "elsewhere")
            client.close()

    asyncio.run(scenario())
