"""A client whose leader is cut off from its peers finds the new leader by that node's own answer.

librdkafka forgets nodes that Metadata leaves out, and asks the one again that it used last. A node
that is isolated and names only itself, or itself among others, keeps its clients for as long as
the isolation lasts: at 13d19f7 always where it led all they wrote to, and in 1 of 100 runs where
another node led the other partition (librdkafka asked that one a moment before the election).
"""

import pytest

from clients_patience import until
from clients_writers import WRITERS, progress, writing
from ottla import Cluster, Topic

pytestmark = pytest.mark.clients


@pytest.mark.parametrize(
    "assignment", [[[1, 2, 3]], [[1, 2, 3], [2, 3, 1]]], ids=["it leads all", "it leads one"]
)
@pytest.mark.parametrize("strict", [True, False], ids=["idempotent", "default"])
@pytest.mark.parametrize("client", WRITERS)
def test_an_isolated_leader_does_not_keep_its_clients(client, strict, assignment):
    topics = [Topic("t", assignment=assignment), Topic("unasked", assignment=[[1]])]
    with Cluster(nodes=3, topics=topics, election_timeout_ms=200, heartbeat_ms=40) as cluster:
        writer = WRITERS[client](
            "w",
            cluster.bootstrap_servers,
            "t",
            len(assignment),
            strict=strict,
            **_majority(client),
        )
        with writing(writer):
            cluster.isolate(1)
            until("new leader", lambda: cluster.leader("t", 0) != 1)
            progress([writer], records=100)
            assert cluster.describe().nodes[1].state == "isolated"
            cluster.heal()
        assert not writer.problems


def _majority(client):
    """aiokafka's acks=1 would be answered by the isolated leader until it resigns."""
    return {"acks": "all"} if client == "aiokafka" else {}
