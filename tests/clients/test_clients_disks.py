"""The disk of a leader breaks under a real idempotent producer: another leads, nothing is lost.

What the old leader had appended and not synced is uncertain (promise-R5). A disk that hangs makes
it resign; one that fails or is full ends it, and a restart finds what had been synced.
"""

from contextlib import contextmanager, suppress

import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError

from clients_audit import audit
from clients_patience import until
from clients_writers import WRITERS, progress, writing
from ottla import Cluster, Topic
from ottla.broker.cluster.faults import DiskFault
from ottla.broker.config import ClusterConfig
from ottla.broker.driver import runner

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


ALONE = ClusterConfig(sync_stall_ms=100)
ENDED = {"KafkaStorageError", "KafkaConnectionError"}
"""kafka-python drops an answer that it reads together with the end of its connection."""
TOLD = {
    DiskFault.STALLED: {"NotLeaderForPartitionError"},
    DiskFault.FAILED: ENDED,
    DiskFault.FULL: ENDED,
}


@contextmanager
def producing(cluster):
    """A function that sends a record, once, which all replicas must have; what it is told."""
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers,
        acks="all",
        retries=0,
        enable_idempotence=False,
        request_timeout_ms=1500,
        delivery_timeout_ms=5000,
    )

    def told_of_one():
        sent = producer.send("t", b"x", partition=0)
        until("an answer", lambda: sent.is_done)
        return type(sent.exception).__name__

    try:
        yield told_of_one
    finally:
        # A record may be told of a moment before its batch counts as complete, which `close` asks.
        with suppress(KafkaTimeoutError):
            producer.close(timeout=0)


@pytest.mark.parametrize("fault", DiskFault)
def test_what_a_client_is_told_when_the_disk_of_its_leader_breaks(fault):
    """Nobody else has the record, so it says what this leader knows: nothing, or that it failed."""
    with (
        Cluster(nodes=1, topics=["t"], config=ALONE) as cluster,
        producing(cluster) as told_of_one,
    ):
        assert told_of_one() == "NoneType"
        cluster.break_disk(1, fault)
        assert told_of_one() in TOLD[fault]
        until(STATES[fault], lambda: cluster.describe().nodes[1].state == STATES[fault])


def test_a_leader_that_does_not_resign_lets_its_clients_wait(monkeypatch):
    """The mechanism taken away (sim-M15, on a live broker): the client's own patience ends it."""
    monkeypatch.setattr(runner, "resign", lambda *_: ())
    with (
        Cluster(nodes=1, topics=["t"], config=ALONE) as cluster,
        producing(cluster) as told_of_one,
    ):
        assert told_of_one() == "NoneType"
        cluster.break_disk(1, DiskFault.STALLED)
        assert told_of_one() in {"RequestTimedOutError", "KafkaTimeoutError"}
        assert cluster.leader("t") == 1
