"""Commands to a controller whose leader has just died, and topics made while nodes are dead.

Until the next election a follower takes the dead one for the leader and sends its commands there:
they were lost, and nothing happened until their deadline.
"""

import asyncio
import time

import pytest

from awaiting import await_that
from ottla import Cluster
from ottla.broker.client import Client
from ottla.broker.config import ClusterConfig

WITHIN_S = 3.0
"""Far more than elections take with this timeout; what was lost was told after 5 or 10."""
QUICK = ClusterConfig(election_timeout_ms=200, heartbeat_ms=40)


async def producer_id(address):
    """A new producer id, from this node; it raises what is refused."""
    client = await Client.connect(*address)
    await client.init_producer_id()
    client.close()


async def named(address):
    """The brokers that this node names to clients."""
    client = await Client.connect(*address)
    metadata = await client.metadata()
    client.close()
    return {broker.node_id for broker in metadata.brokers}


@pytest.mark.parametrize("how", ["kill", "pause", "isolate"])
def test_producer_ids_come_from_the_next_controller(how):
    with Cluster(nodes=3, config=QUICK) as cluster:
        gone = cluster.describe().controller
        getattr(cluster, how)(gone)
        begun = time.monotonic()
        asyncio.run(producer_id(cluster.addresses[gone % 3 + 1]))
        assert time.monotonic() - begun < WITHIN_S


@pytest.mark.parametrize(("change", "topics"), [("create_topic", ["t", "u"]), ("delete_topic", [])])
def test_a_topic_is_made_or_deleted_though_the_controller_was_killed(change, topics):
    with Cluster(nodes=3, config=QUICK) as cluster:
        cluster.create_topic("t")
        cluster.kill(cluster.describe().controller)
        begun = time.monotonic()
        getattr(cluster, change)("u" if topics else "t")
        assert time.monotonic() - begun < WITHIN_S
        assert list(cluster.describe().topics) == topics


def forgotten(cluster, nodes):
    """Kill these nodes, and wait until clients are not told of them any more."""
    for node in nodes:
        cluster.kill(node)
    left = set(cluster.addresses) - set(nodes)

    def noticed():
        return all(asyncio.run(named(cluster.addresses[each])) == left for each in left)

    await_that(noticed, 20, f"nodes {nodes} are named to clients for ever")


def replicas(cluster, topic):
    return [each.replicas for each in cluster.describe().topics[topic]]


def test_nothing_new_is_placed_on_a_dead_node_that_needs_not_be():
    with Cluster(nodes=3) as cluster:
        cluster.create_topic("before", partitions=3, replication_factor=1)
        forgotten(cluster, [3])
        cluster.create_topic("t", partitions=3, replication_factor=1)
        cluster.create_topic("full", partitions=3, replication_factor=3)
        cluster.create_topic("asked", assignment=[[2, 1, 3], [1, 2, 3]])
        assert replicas(cluster, "before") == [(1,), (2,), (3,)]
        assert {node for (node,) in replicas(cluster, "t")} == {1, 2}
        assert [each[-1] for each in replicas(cluster, "full")] == [3, 3, 3]
        assert replicas(cluster, "asked") == [(2, 1, 3), (1, 2, 3)]


def test_two_dead_nodes_of_five_are_no_majority_of_a_new_topic():
    with Cluster(nodes=5) as cluster:
        forgotten(cluster, [4, 5])
        for name in ("a", "b", "c"):
            cluster.create_topic(name)
            assert [set(each) for each in replicas(cluster, name)] == [{1, 2, 3}]
