"""Numbers that only count as such, settings that rule each other out, calls before a start.

`restart` of what has only an `__index__` was a KeyError; a cluster whose links were slower than its
elections waited 30 seconds for a controller, and said nothing of them.
"""

import asyncio
from inspect import signature
from typing import Any

import pytest

from ottla import Cluster, OttlaError
from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.config import ARGUMENTS, ClusterConfig, FlushPolicy
from ottla.broker.errors import ClusterTimeoutError, ConfigError, NodeStateError


class Two:
    """As a number of numpy's: no `int`, and none of its other ways."""

    def __index__(self):
        return 2


class Zero(Two):
    def __index__(self):
        return 0


TWO: Any = Two()
ZERO: Any = Zero()


def test_what_has_an_index_is_a_number_in_every_argument():
    with Cluster(nodes=TWO, topics=["t"], seed=TWO, advertised={TWO: "h"}) as cluster:
        assert [*cluster.describe().nodes] == [1, 2]
        cluster.create_topic("u", partitions=TWO, replication_factor=TWO)
        assert cluster.leader("t", ZERO) in (1, 2)
        cluster.transfer_leadership("t", ZERO, to=TWO)
        assert cluster.leader("t") == 2
        for name in ("pause", "resume", "isolate", "heal", "kill", "restart", "cut_connections"):
            getattr(cluster, name)(TWO)
        cluster.break_disk(TWO, "stalled")
        cluster.mend_disk(TWO)
        assert {type(event.node) for event in cluster.events} <= {int, type(None)}


def test_so_are_nodes_that_are_left_out(tmp_path):
    cluster = AsyncCluster(3, data_dir=tmp_path, without_nodes=[TWO])
    with pytest.raises(NodeStateError, match="node 2 was left out"):
        cluster.pause(2)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"default_partitions": 1001}, "default_partitions is 1001; a topic has at most max_part"),
        ({"max_partitions_per_topic": 2, "default_partitions": 3}, "default_partitions is 3"),
        ({"link_delay_ms": 249}, r"link_delay_ms is 249; .* election_timeout_ms \(500\)"),
        ({"link_delay_ms": 2**31}, "link_delay_ms is 2.14748e"),
        ({"nodess": 3}, "no such setting: nodess; did you mean nodes"),
        ({"data_dirr": "x"}, "no such setting: data_dirr; did you mean data_dir"),
        ({"prot": 1}, "no such setting: prot; did you mean port"),
    ],
)
def test_what_cannot_serve_is_refused_when_it_is_made(settings, said):
    with pytest.raises(ConfigError, match=said):
        Cluster(**settings)


def test_slow_links_are_fine_where_elections_are_slower():
    assert ClusterConfig(link_delay_ms=225).link_delay_ms == 225
    assert ClusterConfig(link_delay_ms=2_000, election_timeout_ms=5_000).link_delay_ms == 2_000


def test_every_argument_is_known_by_name():
    assert list(ARGUMENTS) == [*signature(Cluster).parameters][:-1]


def test_a_wait_in_vain_names_the_setting_that_makes_elections_slow(monkeypatch):
    monkeypatch.setattr("ottla.broker.cluster.async_cluster.START_SECONDS", 0.5)
    cluster = Cluster(nodes=3, flush="interval", flush_interval_ms=60_000)
    with pytest.raises(ClusterTimeoutError, match=r"flush_interval_ms is 60000, and should"):
        cluster.start()
    for config in (
        ClusterConfig(flush=FlushPolicy.INTERVAL),
        ClusterConfig(flush_interval_ms=60_000),
    ):
        assert not config.slow_elections()


@pytest.mark.parametrize(
    "call",
    [
        lambda cluster: cluster.leader("t"),
        lambda cluster: cluster.kill(1),
        lambda cluster: cluster.restart(1),
        lambda cluster: cluster.create_topic("t"),
        lambda cluster: cluster.delete_topic("t"),
        lambda cluster: cluster.transfer_leadership("t", 0, 1),
    ],
)
def test_nothing_can_be_asked_of_a_cluster_that_was_not_started(call):
    """It was a timeout, of a call that had waited for nothing."""
    with pytest.raises(NodeStateError, match="not running"):
        call(Cluster(nodes=1))

    async def story():
        with pytest.raises(NodeStateError, match="not running: start it first"):
            await call(AsyncCluster(1))

    asyncio.run(story())


def test_nor_can_it_be_described():
    with pytest.raises(NodeStateError, match="not running"):
        Cluster(nodes=1).describe()
    with pytest.raises(NodeStateError, match="has not been started"):
        AsyncCluster(1).describe()


def test_a_value_whose_text_cannot_be_had_is_refused_all_the_same():
    class Unprintable:
        def __repr__(self):
            raise RuntimeError("not for your eyes")

    for name in (*ARGUMENTS, *ClusterConfig.__dataclass_fields__):
        arguments: dict[str, Any] = {name: Unprintable()}
        with pytest.raises(OttlaError, match=name):
            Cluster(**arguments)
