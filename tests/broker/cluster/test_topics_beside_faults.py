"""Topics are created and asked for beside a node that learns of nothing: the others go on.

Each of these calls waited for that node, and ended with `ClusterTimeoutError`.
"""

import asyncio

import pytest

from ottla import Cluster
from ottla.broker.errors import UnknownTopicError

TIMEOUT = 20.0


def use(cluster):
    for name in ("first", "second"):
        cluster.create_topic(name, timeout=TIMEOUT)
    assert set(cluster.describe().topics) == {"first", "second"}
    with pytest.raises(UnknownTopicError):
        cluster.leader("third", timeout=TIMEOUT)


@pytest.mark.parametrize("victim", [1, 2, 3])
def test_a_disk_hangs(victim):
    with Cluster(nodes=3, election_timeout_ms=200) as cluster:
        cluster.break_disk(victim, "stalled")
        use(cluster)


async def use_beside_links(fault):
    async with Cluster(nodes=3, election_timeout_ms=200) as cluster:
        victim = cluster.describe().controller % 3 + 1
        for other in {1, 2, 3} - {victim}:
            if fault == "hold":
                cluster.network.hold(other, victim)
                continue
            cluster.network.cut(other, victim)
            if fault == "cut":
                cluster.network.cut(victim, other)
        for name in ("first", "second"):
            await cluster.create_topic(name, timeout=TIMEOUT)
        assert set(cluster.describe().topics) == {"first", "second"}
        with pytest.raises(UnknownTopicError):
            await cluster.leader("third", timeout=TIMEOUT)


@pytest.mark.parametrize("fault", ["cut", "cut towards", "hold"])
def test_links_are_cut_or_held(fault):
    asyncio.run(use_beside_links(fault))
