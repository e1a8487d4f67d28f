"""InitProducerId and DescribeCluster as a client sees them.

The node behind the handlers is made of a real controller and real partitions, led by hand
(`ApiWorld`).
"""

from __future__ import annotations

import asyncio

import pytest

from broker_api_world import ApiWorld
from ottla import Cluster
from ottla.broker.client import Client
from ottla.broker.errors import ErrorCode

NOT_ASKED = -(2**31)


def init(world, version=5, transactional_id=None, **fields):
    fields = {"transaction_timeout": 60_000, **fields}
    answer = world.ask("init_producer_id", version, transactional_id=transactional_id, **fields)
    return answer.error_code, answer.producer_id, answer.producer_epoch


def world_with_ids():
    world = ApiWorld()
    world.producer_ids = [(ErrorCode.NONE, 1000, 0), (ErrorCode.NONE, 1001, 0)]
    return world


@pytest.mark.parametrize("version", range(6))
def test_every_request_without_transactional_id_gets_a_new_id_with_epoch_0(version):
    world = world_with_ids()
    assert [init(world, version), init(world, version)] == [(0, 1000, 0), (0, 1001, 0)]


def test_an_id_and_epoch_of_its_own_make_no_difference():
    assert init(world_with_ids(), producer_id=7, producer_epoch=3) == (0, 1000, 0)


@pytest.mark.parametrize("half", [{"producer_id": 7}, {"producer_epoch": 3}])
def test_only_one_of_id_and_epoch_is_42(half):
    assert init(world_with_ids(), **half) == (42, -1, -1)


def test_an_empty_transactional_id_is_42():
    assert init(world_with_ids(), transactional_id="") == (42, -1, -1)


@pytest.mark.parametrize("version", range(6))
def test_a_transactional_id_is_refused_for_good(version):
    world = world_with_ids()
    assert init(world, version, transactional_id="tx") == (53, -1, -1)
    assert len(world.producer_ids) == 2, "no id is used up"


def test_without_a_block_of_ids_the_client_is_asked_to_come_again():
    world = ApiWorld()
    world.producer_ids = [(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 0, 0)]
    assert init(world) == (14, -1, -1)


def describe(world, version=2, **fields):
    defaults = {"include_cluster_authorized_operations": False, "include_fenced_brokers": False}
    return world.ask("describe_cluster", version, **defaults | fields)


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_described_in_every_version(version):
    world = ApiWorld()
    world.controller_node = 2
    answer = describe(world, version)
    assert (answer.error_code, answer.error_message) == (0, None)
    assert (answer.cluster_id, answer.controller_id) == (world.cluster_id, 2)
    assert [(b.broker_id, b.host, b.port, b.rack) for b in answer.brokers] == [
        (1, "host1", 9001, None),
        (2, "host2", 9002, None),
        (3, "host3", 9003, None),
    ]
    assert answer.cluster_authorized_operations == NOT_ASKED
    if version == 2:
        assert [broker.is_fenced for broker in answer.brokers] == [False] * 3


@pytest.mark.parametrize("version", range(3))
def test_who_asks_for_authorized_operations_is_told_all_of_a_cluster(version):
    """As Apache Kafka 4.3.1 without an authorizer; the answer used to be *not asked for*."""
    answer = describe(ApiWorld(), version, include_cluster_authorized_operations=True)
    assert answer.cluster_authorized_operations == 8096


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("fenced", [True, False])
def test_a_broker_that_is_not_up_is_listed_as_fenced_for_who_asks(version, fenced):
    """As Apache Kafka 4.3.1 lists one that was stopped (version 2 on); it was left out."""
    world = ApiWorld()
    world.up = world.up[::2]
    answer = describe(world, version, include_fenced_brokers=fenced)
    listed = [(broker.broker_id, getattr(broker, "is_fenced", False)) for broker in answer.brokers]
    assert listed == [(1, False), (3, False)] + [(2, True)] * (fenced and version == 2)


@pytest.mark.slow
def test_a_node_that_was_killed_is_fenced():
    with Cluster(nodes=3) as cluster:
        cluster.kill(2)

        async def describe_it():
            client = await Client.connect(*cluster.addresses[1])
            fields = {"include_fenced_brokers": True, "endpoint_type": 1}
            fields["include_cluster_authorized_operations"] = False
            while True:
                answer = await client.call("describe_cluster", **fields)
                listed = {each.broker_id: each.is_fenced for each in answer.brokers}
                if listed.get(2):
                    client.close()
                    return listed, {each.broker_id: each.port for each in answer.brokers}

        listed, ports = asyncio.run(asyncio.wait_for(describe_it(), 20))
        assert listed == {1: False, 2: True, 3: False}
        assert ports == {node: port for node, (_, port) in cluster.addresses.items()}


@pytest.mark.parametrize("gone", [0, 3])
def test_the_controller_named_is_always_a_live_broker(gone):
    world = ApiWorld()
    world.controller_node = gone
    world.up = world.up[:2]
    assert describe(world).controller_id == world.node


@pytest.mark.parametrize("version", [1, 2])
def test_a_broker_asked_for_controllers_is_114(version):
    answer = describe(ApiWorld(), version, endpoint_type=2)
    assert (answer.error_code, bool(answer.error_message)) == (114, True)
    assert (answer.cluster_id, answer.controller_id, answer.brokers) == ("", -1, ())
    assert answer.cluster_authorized_operations == NOT_ASKED


def test_an_endpoint_of_no_known_kind_is_115_and_named():
    answer = describe(ApiWorld(), endpoint_type=9)
    assert (answer.error_code, answer.brokers) == (115, ())
    assert "9" in answer.error_message
