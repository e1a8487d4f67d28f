"""Every Python client, unmodified, does everything it is here for against a healthy cluster.

One cluster for the module: each test uses topics of its own. A client means default and idempotent
settings alike wherever it produces.
"""

import pytest

from clients_aiokafka import AiokafkaKit
from clients_confluent import ConfluentKit
from clients_kafka_python import KafkaPythonKit
from clients_kits import Record, RefusedError
from ottla import Cluster

pytestmark = pytest.mark.clients

KITS = (ConfluentKit(), AiokafkaKit(), KafkaPythonKit())
SETTINGS = {"default": {}, "idempotent": {"idempotent": True}}
MAX_BATCH = 1_048_588
TOO_LARGE, EXISTS, UNKNOWN, BAD_TOPIC = 10, 36, 3, 17
BASE = 1_700_000_000_000


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=3) as running:
        yield running


@pytest.fixture(params=KITS, ids=lambda kit: kit.name)
def kit(request):
    return request.param


@pytest.fixture
def topic(request, cluster):
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    cluster.create_topic(name, partitions=3)
    return name


def records(count, size=20):
    return [
        Record(b"%d " % n + b"x" * size, b"key-%d" % n, (("n", b"%d" % n),), BASE + 1000 * n)
        for n in range(count)
    ]


def stripped(found):
    return [record._replace(offset=-1) for record in found]


@pytest.mark.parametrize("how", SETTINGS)
def test_every_codec_brings_back_what_was_sent(cluster, kit, topic, how):
    sent = records(50, size=200)
    for round_, codec in enumerate(kit.codecs()):
        offsets = kit.produce(
            cluster.bootstrap_servers, topic, sent, partition=1, codec=codec, **SETTINGS[how]
        )
        first = round_ * len(sent)
        assert offsets == list(range(first, first + len(sent)))
        found = kit.fetch(cluster.bootstrap_servers, topic, 1, first, len(sent))
        assert stripped(found) == sent
        assert [record.offset for record in found] == offsets


@pytest.mark.slow
def test_one_client_reads_what_another_compressed(cluster, topic):
    sent, at = records(20, size=100), 0
    for writer in KITS:
        for codec in ("none", "gzip"):
            writer.produce(cluster.bootstrap_servers, topic, sent, codec=codec)
            for reader in KITS:
                found = reader.fetch(cluster.bootstrap_servers, topic, 0, at, len(sent))
                assert stripped(found) == sent, (writer.name, codec, reader.name)
            at += len(sent)


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_every_acks_stores(cluster, kit, topic, acks):
    options = {"idempotent": False, "acks": acks}
    if kit.name != "confluent" and acks == -1:
        options["acks"] = "all"
    offsets = kit.produce(cluster.bootstrap_servers, topic, records(10), **options)
    if acks:  # else each client makes up what nobody told it
        assert offsets == list(range(10))
    found = kit.fetch_from_start(cluster.bootstrap_servers, topic, 0, 10)
    assert stripped(found) == records(10)


def test_offsets_by_place_and_by_time(cluster, kit, topic):
    sent = records(30)
    bootstrap = cluster.bootstrap_servers
    assert kit.bounds(bootstrap, topic, 2) == (0, 0)
    kit.produce(bootstrap, topic, sent, partition=2)
    assert kit.bounds(bootstrap, topic, 2) == (0, 30)
    assert stripped(kit.fetch_from_start(bootstrap, topic, 2, 30)) == sent
    assert stripped(kit.fetch(bootstrap, topic, 2, 17, 13)) == sent[17:]
    assert kit.offset_at(bootstrap, topic, 2, 0) == 0
    assert kit.offset_at(bootstrap, topic, 2, BASE + 12_000) == 12
    assert kit.offset_at(bootstrap, topic, 2, BASE + 12_001) == 13
    assert kit.offset_at(bootstrap, topic, 2, BASE + 29_001) is None


def test_deleted_records_are_gone(cluster, kit, topic):
    bootstrap = cluster.bootstrap_servers
    kit.produce(bootstrap, topic, records(30))
    kit.delete_records(bootstrap, topic, 0, 11)
    assert kit.bounds(bootstrap, topic, 0) == (11, 30)
    assert stripped(kit.fetch_from_start(bootstrap, topic, 0, 19)) == records(30)[11:]


def test_topics_come_and_go(cluster, kit):
    bootstrap, name = cluster.bootstrap_servers, f"made-by-{kit.name}"
    kit.create(bootstrap, name, 4, 2)
    assert name in kit.topics(bootstrap)
    assert [len(each.replicas) for each in cluster.describe().topics[name]] == [2] * 4
    with pytest.raises(RefusedError) as again:
        kit.create(bootstrap, name, 4, 2)
    assert again.value.code == EXISTS
    with pytest.raises(RefusedError) as bad:
        kit.create(bootstrap, "no blanks", 1, 1)
    assert bad.value.code == BAD_TOPIC
    kit.delete(bootstrap, name)
    assert name not in kit.topics(bootstrap)
    with pytest.raises(RefusedError) as gone:
        kit.delete(bootstrap, name)
    assert gone.value.code == UNKNOWN


def test_the_cluster_is_seen_whole(cluster, kit):
    assert kit.nodes(cluster.bootstrap_servers) == {1, 2, 3}


@pytest.mark.parametrize("how", SETTINGS)
def test_a_topic_appears_when_it_is_first_used(cluster, kit, how):
    name = f"first-use-{kit.name}-{how}"
    offsets = kit.produce(cluster.bootstrap_servers, name, records(5), **SETTINGS[how])
    assert offsets == [0, 1, 2, 3, 4]
    (partition,) = cluster.describe().topics[name]
    assert sorted(partition.replicas) == [1, 2, 3]


@pytest.mark.parametrize("how", SETTINGS)
def test_the_largest_record_is_stored_and_a_larger_one_refused(cluster, kit, topic, how):
    bootstrap = cluster.bootstrap_servers
    largest = Record(b"x" * (MAX_BATCH - 100))
    assert kit.produce(bootstrap, topic, [largest], **SETTINGS[how]) == [0]
    with pytest.raises(RefusedError) as refused:
        kit.produce(bootstrap, topic, [Record(b"x" * MAX_BATCH)], **SETTINGS[how])
    assert refused.value.code == TOO_LARGE
    assert kit.bounds(bootstrap, topic, 0) == (0, 1)
    assert kit.fetch_from_start(bootstrap, topic, 0, 1)[0].value == largest.value


@pytest.mark.parametrize("value", [None, b""], ids=["null", "empty"])
def test_null_and_empty_values_stay_what_they_are(cluster, kit, topic, value):
    kit.produce(cluster.bootstrap_servers, topic, [Record(value, b"k")])
    (found,) = kit.fetch_from_start(cluster.bootstrap_servers, topic, 0, 1)
    assert (found.key, found.value) == (b"k", value)
