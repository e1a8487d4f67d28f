"""What Ottla refuses, as far as no other test says so; every line of docs/not-implemented.md.

An API that is not served is not in the answer to ApiVersions, so that clients know before they ask,
and who asks all the same is cut off, as Apache Kafka 4.3.1 does with a key it does not know.
"""

import asyncio
import gzip
import struct

import cramjam
import pytest
from typer.testing import CliRunner

from broker_wire import api_versions, run
from ottla import Cluster, Topic
from ottla.broker.client import Client
from ottla.broker.errors import ConfigError, ErrorCode
from ottla.broker.topics.configs import refusal
from ottla.broker.wire.api.table import BY_KEY
from ottla.cli import app
from ottla.log.build import Codec, NewRecord, build_batch, seal
from ottla.log.inflate import MOST_AT_ONCE
from ottla.log.inspection import MOST_FAULTS, MOST_INFLATION, MOST_MISPLACED
from ottla.log.record_batch import BatchDefect, read_batch

UNSERVED = {
    "share and streams groups": (76, 77, 78, 79, 88, 89),
    "transactions": (24, 25, 26, 27, 28, 61, 65, 66),
    "authentication and authorisation": (17, 29, 30, 31, 36, 38, 39, 40, 41, 50, 51),
    "configs of topics and brokers": (32, 33, 44),
    "more partitions, other replicas, chosen leaders": (37, 43, 45, 46),
    "quotas": (48, 49),
    "log folders": (34, 35),
    "between brokers": (4, 5, 6, 7, 52, 53, 54, 56, 57, 58, 59, 62, 63, 64),
    "telemetry": (71, 72),
}
HEADER = struct.Struct(">ihhih")
"""Size, key, version, correlation id, length of the client id."""
RECORDS_FROM = 61
"""Where a version 2 batch's header ends."""


@pytest.mark.parametrize("keys", UNSERVED.values(), ids=UNSERVED)
def test_an_api_that_is_not_served_is_not_advertised_and_closes(keys):
    async def test(wire):
        client = await wire.client()
        answer = await client.call("api_versions", 0)
        offered = {each.api_key for each in answer.api_keys}
        assert offered == set(BY_KEY)
        for key in keys:
            assert key not in offered
            raw = await wire.raw()
            raw.write(HEADER.pack(10, key, 0, 7, -1))
            assert await raw.is_closed()
        assert await client.call("api_versions", 0) == answer

    run(test)


@pytest.mark.parametrize(
    ("key", "version"), [(0, 13), (1, 13), (1, 17)], ids=["Produce 13", "Fetch 13", "Fetch 17"]
)
def test_topic_ids_on_the_data_path_are_not_served(key, version):
    assert BY_KEY[key].advertised[1] < version

    async def test(wire):
        raw = await wire.raw()
        raw.write(struct.pack(">ihhihx", 11, key, version, 7, -1))
        assert await raw.is_closed()

    run(test)


def test_a_client_that_speaks_tls_is_cut_off():
    hello = bytes.fromhex("16030100c8010000c40303") + bytes(192)

    async def test(wire):
        raw = await wire.raw()
        raw.write(hello)
        assert await raw.is_closed()
        other = await wire.raw()
        other.write(api_versions())
        assert await other.frame()

    run(test)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_formats_are_refused(magic):
    batch = bytearray(build_batch([b"value"]))
    batch[16] = magic
    assert read_batch(bytes(batch)) is BatchDefect.OLD_MAGIC


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", "compact"),
        ("compression.type", "gzip"),
        ("retention.ms", "1000"),
        ("retention.bytes", "1048576"),
        ("unclean.leader.election.enable", "true"),
    ],
)
def test_a_topic_config_that_nothing_obeys_is_refused_by_name(name, value):
    refused = f"Invalid value {value} for configuration {name}: only "
    assert refusal({name: value}).startswith(refused)


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_what_inflates_to_64_times_what_a_topic_takes_is_refused(codec):
    """Kafka has no such bound; a batch of a few kilobytes should not keep a partition busy."""
    most = 10_000
    bomb = build_batch([bytes(MOST_INFLATION * most)], codec=codec)
    if len(bomb) < most:  # snappy and lz4 do not make so little of it
        assert asyncio.run(stored_and_found(bomb, most)) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])
    sound = build_batch([bytes(15 * most)], codec=codec)
    assert asyncio.run(stored_and_found(sound, most))[0] == ErrorCode.NONE


@pytest.mark.slow
def test_what_takes_more_work_than_any_batch_that_is_not_compressed_is_refused():
    """One record of 30 million empty headers, 58 KB in gzip, kept its partition from everybody for
    more than half a minute."""
    most = 10_000

    def with_headers(count, records, codec):
        return build_batch([NewRecord(b"", headers=[("", None)] * count)] * records, codec=codec)

    for count, records in ((300_000, 1), (60, 3_000)):
        batch = with_headers(count, records, Codec.GZIP)
        assert len(batch) < most
        assert asyncio.run(stored_and_found(batch, most)) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])
    for batch in (with_headers(4_900, 1, Codec.NONE), with_headers(60, 70, Codec.NONE)):
        assert 9_000 < len(batch) <= most
        assert asyncio.run(stored_and_found(batch, most))[0] == ErrorCode.NONE


@pytest.mark.parametrize("codec", [Codec.ZSTD, Codec.SNAPPY])
def test_what_the_library_would_have_to_inflate_in_one_go_is_refused_beyond_16_mib(codec):
    """The library cannot stop in the middle; a bare snappy block is one, too."""
    value = bytes(MOST_AT_ONCE - 100)
    for grown, error in ((0, ErrorCode.NONE), (100, ErrorCode.UNKNOWN_SERVER_ERROR)):
        batch = bare(build_batch([value + bytes(grown)], codec=codec), value + bytes(grown))
        assert asyncio.run(stored_and_found(batch, 2_000_000))[0] == error


def bare(batch, value):
    """Snappy without the framing of Java clients, as librdkafka writes it."""
    if batch[22] != Codec.SNAPPY:
        return batch
    plain = build_batch([value])[RECORDS_FROM:]
    payload = bytes(cramjam.snappy.compress_raw(plain))
    head = batch[:8] + struct.pack(">i", RECORDS_FROM - 12 + len(payload)) + batch[12:RECORDS_FROM]
    return seal(head + payload)


def test_of_the_faulty_records_of_a_batch_the_first_thousand_are_named():
    """Kafka names all; each takes 200 bytes of memory and of the answer."""
    late = [NewRecord(b"v", timestamp=2**42)] * (MOST_FAULTS + 1)
    answer, _ = asyncio.run(stored_and_found(build_batch(late), whole=True))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert len(answer.record_errors) == MOST_FAULTS


def test_behind_a_wrong_number_no_more_than_8192_records_are_looked_at():
    """Kafka looks at all; a batch that is refused anyway should not cost more than that."""
    for count, error in (
        (MOST_MISPLACED, ErrorCode.INVALID_TIMESTAMP),
        (MOST_MISPLACED + 3, ErrorCode.UNKNOWN_SERVER_ERROR),
    ):
        records = b"\x0c\0\0\0\1\0\0" * count + build_batch([NewRecord(b"", timestamp=2**42)])[61:]
        packed = build_batch([b"v"] * (count + 1), codec=Codec.GZIP)[:RECORDS_FROM]
        payload = gzip.compress(records)
        head = packed[:8] + struct.pack(">i", RECORDS_FROM - 12 + len(payload)) + packed[12:]
        assert asyncio.run(stored_and_found(seal(head + payload)))[0] == error


async def stored_and_found(batch, most=1_048_588, *, whole=False):
    """The error code a batch is answered with (or the `whole` answer), and what a consumer then
    finds on a topic that takes batches of that size."""
    topic = Topic("t", configs={"max.message.bytes": str(most)})
    async with Cluster(nodes=1, topics=[topic]) as cluster:
        client = await Client.connect(*cluster.addresses[1])
        data = [{"name": "t", "partition_data": [{"index": 0, "records": batch}]}]
        answer = await client.call(
            "produce", transactional_id=None, acks=-1, timeout=10_000, topic_data=data
        )
        found = await client.fetch("t", 0, 0)
        client.close()
        told = answer.responses[0].partition_responses[0]
        return told if whole else told.error_code, found.batches


@pytest.mark.parametrize("profile", ["kafka-3.8", "redpanda-23.3"])
def test_other_profiles_are_refused_before_anything_starts(profile):
    with pytest.raises(ConfigError, match=f"no profile '{profile}'; there are: reference"):
        Cluster(nodes=1, profile=profile)


@pytest.mark.parametrize("nodes", [0, 8, "3"])
def test_a_cluster_has_one_to_seven_nodes_for_life(nodes):
    with pytest.raises(ConfigError, match="1 to 7 are possible"):
        Cluster(nodes=nodes)


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_a_folder_keeps_its_number_of_nodes(tmp_path, nodes):
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        cluster.create_topic("t")
    told = f"is of a cluster of 3 nodes, not of {nodes}; the number of nodes of a cluster cannot"
    with pytest.raises(ConfigError, match=told):
        Cluster(nodes=nodes, data_dir=tmp_path).start()
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "node-1",
        "node-2",
        "node-3",
        "ottla.json",
    ]
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        assert list(cluster.describe().topics) == ["t"]


def test_there_is_no_command_for_what_is_later_work():
    outcome = CliRunner().invoke(app, ["proxy"])
    assert outcome.exit_code == 2
    assert "No such command 'proxy'" in outcome.output
