"""Consumer groups are not served: FindCoordinator is not advertised.

| client | where a group is used | how it fails |
|---|---|---|
| kafka-python | `subscribe` with a group, `poll` | IncompatibleBrokerVersion at once |
| aiokafka | `start` with a group | IncompatibleBrokerVersion at once |
| confluent | `committed`, `commit` | times out; `subscribe` gets no records, in silence |

An answer to FindCoordinator with an error would make librdkafka speak up, but to consumers that
only use `assign` too, since it asks for the coordinator of whoever has a group id, and its
consumers must have one. Those come first: assign-based consumption is what is served.
"""

import asyncio
import time
from contextlib import closing

import confluent_kafka as ck
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import IncompatibleBrokerVersion as AiokafkaRefusal
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import IncompatibleBrokerVersion

from clients_confluent import ConfluentKit
from clients_kits import WAIT, Record, quiet
from ottla import Cluster, Topic

pytestmark = pytest.mark.clients
QUICK = 5.0


@pytest.fixture(scope="module")
def bootstrap():
    with Cluster(nodes=3, topics=[Topic("t")]) as cluster:
        ConfluentKit().produce(cluster.bootstrap_servers, "t", [Record(b"v")])
        yield cluster.bootstrap_servers


def test_kafka_python_refuses_a_group_at_once(bootstrap):
    began = time.monotonic()
    consumer = KafkaConsumer("t", bootstrap_servers=bootstrap, group_id="g")
    with closing(consumer), pytest.raises(IncompatibleBrokerVersion, match="FindCoordinator"):
        consumer.poll(1000 * WAIT)
    assert time.monotonic() - began < QUICK


def test_aiokafka_refuses_a_group_at_once(bootstrap):
    async def main():
        consumer = AIOKafkaConsumer("t", bootstrap_servers=bootstrap, group_id="g")
        try:
            with pytest.raises(AiokafkaRefusal, match="FindCoordinator"):
                await consumer.start()
        finally:
            await consumer.stop()

    began = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - began < QUICK


def confluent(bootstrap):
    own = {"bootstrap.servers": bootstrap, "group.id": "g", "logger": quiet}
    # Committing by itself, it would wait for its coordinator when it is closed.
    return closing(ck.Consumer({**own, "enable.auto.commit": False}))


def test_librdkafka_finds_no_coordinator_within_its_time(bootstrap):
    with confluent(bootstrap) as consumer:
        with pytest.raises(ck.KafkaException) as refused:
            consumer.committed([ck.TopicPartition("t", 0)], timeout=0.5)
        assert refused.value.args[0].name() in {"_TIMED_OUT", "_WAIT_COORD"}
    with confluent(bootstrap) as consumer:
        consumer.subscribe(["t"])
        assert consumer.poll(1.0) is None
        assert consumer.assignment() == []


def test_assign_works_with_a_group_id_as_long_as_offsets_are_given(bootstrap):
    with confluent(bootstrap) as consumer:
        consumer.assign([ck.TopicPartition("t", 0, 0)])
        message = consumer.poll(WAIT)
        assert message.error() is None
        assert message.value() == b"v"
    with closing(KafkaConsumer(bootstrap_servers=bootstrap)) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        consumer.seek_to_beginning()
        (batch,) = consumer.poll(1000 * WAIT).values()
        assert [each.value for each in batch] == [b"v"]
