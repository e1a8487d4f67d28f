"""The disk of a leader breaks under a real idempotent producer: another leads, nothing is lost.

What the old leader had appended and not synced is uncertain (mission-R5). A disk that hangs makes
it resign; one that fails or is full ends it, and a restart finds what had been synced.
"""

import pytest

from clients_audit import audit
from clients_patience import until
from clients_writers import WRITERS, progress, writing
from ottla import Cluster, Topic
from ottla.broker.cluster.faults import DiskFault
from ottla.broker.config import ClusterConfig

pytestmark = pytest.mark.clients
FAST = ClusterConfig(election_timeout_ms=200, heartbeat_ms=40, sync_stall_ms=100)
STATES = {DiskFault.STALLED: "running", DiskFault.FAILED: "failed", DiskFault.FULL: "failed"}


@pytest.mark.parametrize("fault", DiskFault)
@pytest.mark.parametrize("client", WRITERS)
def test_a_producer_lives_through_its_leaders_disk(client, fault):
    with Cluster(nodes=3, topics=[Topic("t", 2)], config=FAST) as cluster:
        writer = WRITERS[client]("w", cluster.bootstrap_servers, "t", 2, strict=True)
        with writing(writer):
            broken = cluster.leader("t", 0)
            cluster.break_disk(broken, fault)
            until("leaders with good disks", lambda: elsewhere(cluster, broken))
            until(STATES[fault], lambda: cluster.describe().nodes[broken].state == STATES[fault])
            progress([writer])
            if fault is DiskFault.STALLED:
                cluster.mend_disk(broken)
            else:
                cluster.restart(broken)
            cluster.transfer_leadership("t", 0, to=broken)
            progress([writer])
        audit(cluster, "t", [writer])


def elsewhere(cluster, node):
    return all(each.leader not in {0, node} for each in cluster.describe().topics["t"])
