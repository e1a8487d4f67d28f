"""InitProducerId and DescribeCluster as a client sees them.

The node behind the handlers is made of a real controller and real partitions, led by hand
(`ApiWorld`).
"""

from __future__ import annotations

import pytest

from broker_api_world import ApiWorld
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
    fields = {"include_cluster_authorized_operations": False, **fields}
    return world.ask("describe_cluster", version, include_fenced_brokers=False, **fields)


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
