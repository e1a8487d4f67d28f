"""Real producers live through faults: nothing lost, nothing twice, nothing out of order.

Each fault hits the leader of a partition that is being written to, and the next one waits until
every writer has made progress again. Idempotent writers are held to everything in
`clients_audit`; those with default settings to what their settings promise:

| client | default settings | promise |
|---|---|---|
| confluent | acks=all, not idempotent | no acknowledged record is missing |
| aiokafka | acks=1, not idempotent | it goes on |
| kafka-python | acks=all, idempotent | all |
"""

import pytest

from clients_audit import audit, present
from clients_patience import until
from clients_writers import WRITERS, progress, writing
from ottla import Cluster, Topic
from ottla.broker.config import ClusterConfig

pytestmark = pytest.mark.clients

PARTITIONS = 2
FAST = ClusterConfig(election_timeout_ms=200, heartbeat_ms=40)


def led_elsewhere(cluster, topic, node):
    until(
        f"new leaders of {topic}",
        lambda: all(each.leader not in {0, node} for each in cluster.describe().topics[topic]),
    )


def kill(cluster, topic):
    node = cluster.leader(topic, 0)
    cluster.kill(node)
    led_elsewhere(cluster, topic, node)
    cluster.restart(node)


def isolate(cluster, topic):
    node = cluster.leader(topic, 0)
    cluster.isolate(node)
    led_elsewhere(cluster, topic, node)
    cluster.heal()


def pause(cluster, topic):
    node = cluster.leader(topic, 1)
    cluster.pause(node)
    led_elsewhere(cluster, topic, node)
    cluster.resume(node)


def cut(cluster, topic):
    assert sum(cluster.cut_connections(node) for node in (1, 2, 3)), f"nobody writes to {topic}"


def transfer(cluster, topic):
    cluster.transfer_leadership(topic, 0, to=cluster.leader(topic, 0) % 3 + 1)


def restart(cluster, topic):
    cluster.restart(cluster.leader(topic, 1))


FAULTS = (kill, isolate, pause, cut, transfer, restart)


@pytest.mark.slow
@pytest.mark.parametrize("client", WRITERS)
def test_writers_live_through_every_fault(client):
    topics = [Topic("strict", PARTITIONS), Topic("plain", PARTITIONS)]
    with Cluster(nodes=3, topics=topics, config=FAST) as cluster:
        strict = WRITERS[client](
            "strict", cluster.bootstrap_servers, "strict", PARTITIONS, strict=True
        )
        plain = WRITERS[client](
            "plain", cluster.bootstrap_servers, "plain", PARTITIONS, strict=False
        )
        with writing(strict, plain):
            for fault in FAULTS:
                fault(cluster, "strict")
                progress([strict, plain])
        audit(cluster, "strict", [strict])
        logs = audit(cluster, "plain", [plain])
        if client != "aiokafka":
            assert present(logs, plain) == []
        assert cluster.counters.leaderships > 4, "the faults moved no leadership"


@pytest.mark.slow
@pytest.mark.parametrize("client", WRITERS)
def test_all_nodes_die_and_come_back_on_their_disks(client, tmp_path):
    topics = [Topic("strict", PARTITIONS)]
    with Cluster(nodes=3, topics=topics, data_dir=tmp_path, config=FAST) as cluster:
        writer = WRITERS[client](
            "strict", cluster.bootstrap_servers, "strict", PARTITIONS, strict=True
        )
        with writing(writer):
            for _ in range(2):
                for node in (1, 2, 3):
                    cluster.kill(node)
                for node in (1, 2, 3):
                    cluster.restart(node)
                progress([writer])
        logs = audit(cluster, "strict", [writer])
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        assert audit(cluster, "strict", [writer]) == logs
