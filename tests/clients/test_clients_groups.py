"""Consumer groups and transactions do not exist, and each client hears so at once.

`subscribe` of confluent-kafka hung without a word, and `close` behind `assign` waited 45 s for a
coordinator. What each client says now, and after how long, is measured here and, for Java, franz-go
and KafkaJS, in `test_clients_foreign.py`; why these errors, docs/decisions/0027-no-groups-yet.md.

An error of FindCoordinator itself would reach librdkafka's consumers that only use `assign` as
well: they must name a group, and it asks for the coordinator of whoever does.
"""

import asyncio
import logging
import sys
import time
from contextlib import closing, contextmanager

import confluent_kafka as ck
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AiokafkaPartition
from aiokafka import errors as aiokafka_errors
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka import errors as kafka_errors
from kafka.admin import KafkaAdminClient

from clients_confluent import ConfluentKit
from clients_kits import WAIT, Record, quiet
from ottla import Cluster, Topic
from ottla.broker.wire.api.no_groups import TEXT

pytestmark = pytest.mark.clients
FATAL = -150
"""The code of librdkafka's errors that end a client (RD_KAFKA_RESP_ERR__FATAL)."""
QUICK = 5.0
"""Seconds; a client takes less than one of them where it has a processor for itself."""


@pytest.fixture(scope="module")
def bootstrap():
    with Cluster(nodes=3, topics=[Topic("t")]) as cluster:
        ConfluentKit().produce(cluster.bootstrap_servers, "t", [Record(b"v")])
        yield cluster.bootstrap_servers


@contextmanager
def at_once(what):
    """What is inside takes no more than `QUICK`; how long it took is printed."""
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    sys.stdout.write(f"{what}: {took:.2f} s\n")
    assert took < QUICK


def confluent(bootstrap, **more):
    own = {"bootstrap.servers": bootstrap, "group.id": "g", "logger": quiet}
    return ck.Consumer({**own, **more})


@pytest.mark.parametrize(
    ("protocol", "code", "said"),
    [
        ("classic", ck.KafkaError.UNSUPPORTED_VERSION, "JoinGroup failed"),
        ("consumer", FATAL, "ConsumerGroupHeartbeat fatal error"),
    ],
)
def test_confluent_hears_that_it_cannot_subscribe(bootstrap, protocol, code, said):
    with at_once("subscribe and close, confluent-kafka"):
        consumer = confluent(bootstrap, **{"group.protocol": protocol})
        consumer.subscribe(["t"])
        message = consumer.poll(WAIT)
        assert message.error().code() == code
        assert said in message.error().str()
        consumer.close()


def test_kafka_python_hears_that_it_cannot_subscribe(bootstrap):
    with at_once("subscribe and close, kafka-python"):
        consumer = KafkaConsumer("t", bootstrap_servers=bootstrap, group_id="g")
        with closing(consumer), pytest.raises(kafka_errors.UnsupportedVersionError):
            consumer.poll(1000 * WAIT)


def test_aiokafka_hears_that_it_cannot_subscribe(bootstrap):
    async def main():
        consumer = AIOKafkaConsumer("t", bootstrap_servers=bootstrap, group_id="g")
        try:
            with pytest.raises(aiokafka_errors.KafkaError, match="UnsupportedVersionError"):
                await consumer.start()
        finally:
            await consumer.stop()

    with at_once("subscribe and close, aiokafka"):
        asyncio.run(main())


def test_the_log_says_so_once_for_each_client(bootstrap, caplog):
    """A consumer asks again every second, and whichever node it thinks of."""
    with caplog.at_level(logging.WARNING, "ottla"):
        for name in ("first", "second", "first"):
            with closing(confluent(bootstrap, **{"client.id": name})) as consumer:
                consumer.subscribe(["t"])
                assert consumer.poll(WAIT).error().code() == ck.KafkaError.UNSUPPORTED_VERSION
    assert caplog.messages == [f"client {name!r}: {TEXT}" for name in ("first", "second")]


# --- consumers that assign ------------------------------------------------------------------------


@pytest.mark.parametrize("auto", [True, False], ids=["auto-commit", "no auto-commit"])
def test_confluent_assigns_without_an_error_and_closes_at_once(bootstrap, auto):
    """With auto-commit, its default, `close` waited 45 s for a coordinator to commit to."""
    consumer = confluent(bootstrap, **{"enable.auto.commit": auto})
    consumer.assign([ck.TopicPartition("t", 0, 0)])
    message = consumer.poll(WAIT)
    assert message.error() is None
    assert message.value() == b"v"
    with at_once("commit and close behind assign, confluent-kafka"):
        with pytest.raises(ck.KafkaException) as refused:
            consumer.commit(message, asynchronous=False)
        assert refused.value.args[0].code() == ck.KafkaError.UNSUPPORTED_VERSION
        consumer.close()


def test_confluent_hears_that_no_offset_is_kept(bootstrap):
    """Assigned without an offset it asks for the one that was committed: it waited for ever."""
    with at_once("committed offsets, confluent-kafka"), closing(confluent(bootstrap)) as consumer:
        consumer.assign([ck.TopicPartition("t", 0)])
        message = consumer.poll(WAIT)
        assert message.error().code() == ck.KafkaError.UNSUPPORTED_VERSION
        assert "Failed to fetch committed offsets" in message.error().str()
        with pytest.raises(ck.KafkaException) as refused:
            consumer.committed([ck.TopicPartition("t", 0)], timeout=WAIT)
        assert refused.value.args[0].code() == ck.KafkaError.UNSUPPORTED_VERSION


def test_kafka_python_assigns_and_closes_at_once(bootstrap):
    partition = TopicPartition("t", 0)
    with at_once("assign, commit and close, kafka-python"):
        consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id="g")
        consumer.assign([partition])
        consumer.seek(partition, 0)
        ((found,),) = consumer.poll(1000 * WAIT).values()
        assert found.value == b"v"
        with pytest.raises(kafka_errors.UnsupportedVersionError):
            consumer.commit()
        consumer.close()


def test_aiokafka_assigns_and_closes_at_once(bootstrap):
    async def main():
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id="g")
        await consumer.start()
        partition = AiokafkaPartition("t", 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        assert (await consumer.getone()).value == b"v"
        with pytest.raises(aiokafka_errors.UnsupportedVersionError):
            await consumer.commit()
        await consumer.stop()

    with at_once("assign, commit and close, aiokafka"):
        asyncio.run(main())


# --- tools ----------------------------------------------------------------------------------------


def test_tools_hear_that_there_are_no_groups(bootstrap):
    """The text says why, where its version has one."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    with at_once("describe groups, confluent-kafka"), pytest.raises(ck.KafkaException) as refused:
        client.describe_consumer_groups(["g"], request_timeout=WAIT)["g"].result(WAIT)
    assert TEXT in refused.value.args[0].str()
    with at_once("groups, kafka-python"):
        tool = KafkaAdminClient(bootstrap_servers=bootstrap)
        with pytest.raises(kafka_errors.UnsupportedVersionError):
            tool.list_groups()
        assert TEXT in tool.describe_groups(["g"])["g"]["error"]
        tool.close()


# --- transactions ---------------------------------------------------------------------------------


def test_confluent_hears_that_there_are_no_transactions(bootstrap):
    own = {"bootstrap.servers": bootstrap, "transactional.id": "x", "logger": quiet}
    with at_once("init_transactions, confluent-kafka"):
        producer = ck.Producer(own)
        with pytest.raises(ck.KafkaException, match="Ottla has no transactions yet") as refused:
            producer.init_transactions(WAIT)
        assert refused.value.args[0].fatal()


def test_kafka_python_hears_that_there_are_no_transactions(bootstrap):
    with at_once("init_transactions, kafka-python"):
        producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id="x")
        with pytest.raises(kafka_errors.TransactionalIdAuthorizationFailedError):
            producer.init_transactions()
        producer.close()


def test_aiokafka_hears_that_there_are_no_transactions(bootstrap):
    async def main():
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="x")
        with pytest.raises(aiokafka_errors.TransactionalIdAuthorizationFailed):
            await producer.start()
        await producer.stop()

    with at_once("start with a transactional id, aiokafka"):
        asyncio.run(main())
