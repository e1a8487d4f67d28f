"""A cluster in which a node's disk hangs: what the others can do goes on."""

import pytest

from ottla import Cluster

TIMEOUT = 20.0


@pytest.mark.parametrize("victim", [1, 2, 3])
def test_a_topic_is_created_beside_a_disk_that_hangs(victim):
    """It waited for the node that could not write, so for ever (`ClusterTimeoutError`)."""
    with Cluster(nodes=3, election_timeout_ms=200) as cluster:
        cluster.break_disk(victim, "stalled")
        for name in ("first", "second"):
            cluster.create_topic(name, timeout=TIMEOUT)
        assert set(cluster.describe().topics) == {"first", "second"}
