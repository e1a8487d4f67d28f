"""Real clients against every profile: what is stored is right, and how much of it is under way.

Between the nodes lies a link of some milliseconds, so that a batch takes a known time in Raft. A
client that pipelines has its batches there together, unless the profile holds a connection to one
(RP-STAGING, K-FRAME).
"""

import time

import confluent_kafka as ck
import pytest

from clients_aiokafka import AiokafkaKit
from clients_confluent import ConfluentKit
from clients_kafka_python import KafkaPythonKit
from clients_kits import WAIT, Record, quiet
from ottla import Cluster, Topic

pytestmark = pytest.mark.clients

KITS = (ConfluentKit(), AiokafkaKit(), KafkaPythonKit())
PROFILES = ("reference-strict", "kafka-4.3", "redpanda-24.3", "redpanda-5157", "redpanda-22.1.3")
ONE_AT_A_TIME = {"kafka-4.3", "redpanda-22.1.3"}
ONE_WAY_MS = 20.0
BATCHES = 20


@pytest.mark.parametrize("profile", PROFILES)
def test_every_client_stores_in_order_and_once(profile):
    sent = [Record(b"%d" % n) for n in range(200)]
    with Cluster(nodes=3, profile=profile, topics=[Topic(kit.name) for kit in KITS]) as cluster:
        for kit in KITS:
            servers = cluster.bootstrap_servers
            offsets = kit.produce(servers, kit.name, sent, idempotent=True)
            assert offsets == list(range(len(sent)))
            found = kit.fetch(servers, kit.name, 0, 0, len(sent))
            assert [record.value for record in found] == [record.value for record in sent]


def seconds_for(profile, *, idempotent):
    """How long librdkafka takes for batches of one record that it has no reason to wait with."""
    settings = {
        "enable.idempotence": idempotent,
        "acks": "all",
        "max.in.flight": 5,
        "linger.ms": 0,
        "batch.num.messages": 1,
        "logger": quiet,
    }
    with Cluster(
        nodes=3, profile=profile, topics=[Topic("t")], link_delay_ms=ONE_WAY_MS
    ) as cluster:
        producer = ck.Producer({"bootstrap.servers": cluster.bootstrap_servers, **settings})
        producer.produce("t", b"first")
        assert producer.flush(WAIT) == 0
        begin = time.monotonic()
        for n in range(BATCHES):
            producer.produce("t", b"%d" % n)
        assert producer.flush(WAIT) == 0
        return time.monotonic() - begin


@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
@pytest.mark.parametrize("profile", PROFILES)
def test_one_batch_in_raft_or_as_many_as_the_client_sends(profile, idempotent):
    """In no profile does idempotence cost anything that plain requests do not pay."""
    alone = BATCHES * 2 * ONE_WAY_MS / 1000
    took = seconds_for(profile, idempotent=idempotent)
    if profile in ONE_AT_A_TIME:
        assert took >= alone
    else:
        assert took < alone / 2
