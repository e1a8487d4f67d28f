"""What comes of topic configs in a running cluster: kept, shown, and obeyed if served.

Which values are taken is asked of the table alone, in `test_controller_configs.py`; here a cluster
runs with them.
"""

import asyncio

import pytest

from broker_api_world import ApiWorld
from ottla import Cluster
from ottla.broker.errors import ErrorCode, RequestFailedError
from ottla.log.build import build_batch

EVERYBODYS = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000",
    "flush.messages": "9223372036854775807",
    "flush.ms": "9223372036854775807",
    "follower.replication.throttled.replicas": "",
    "index.interval.bytes": "4096",
    "leader.replication.throttled.replicas": "",
    "local.retention.bytes": "-2",
    "local.retention.ms": "-2",
    "max.compaction.lag.ms": "9223372036854775807",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "preallocate": "false",
    "remote.storage.enable": "false",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "52428800",
    "segment.index.bytes": "10485760",
    "segment.jitter.ms": "0",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}
"""What Kafka Connect, Streams, Terraform and others send without being asked."""


SEGMENT = 1_500_000


def test_what_tools_send_is_taken_kept_and_shown():
    with Cluster(nodes=1) as cluster:
        cluster.create_topic("t", configs=EVERYBODYS)
        seen = cluster.describe()
    assert {name: each.value for name, each in seen.configs["t"].items()} == EVERYBODYS
    effects = {name: each.effect for name, each in seen.configs["t"].items()}
    served = {"max.message.bytes", "message.timestamp.type", "min.insync.replicas"}
    assert effects == {n: "served" if n in served else "no effect here" for n in EVERYBODYS}
    assert "max.message.bytes=1048588, " in str(seen)
    assert "segment.bytes=52428800 (no effect here)" in str(seen)


def test_a_segment_has_an_effect_where_a_batch_could_be_larger():
    with Cluster(nodes=1) as cluster:
        cluster.create_topic("t", configs={"segment.bytes": 1 << 20})
        assert cluster.describe().configs["t"]["segment.bytes"].effect == "served"


def test_configs_are_plain_values_too():
    with Cluster(nodes=1) as cluster:
        cluster.create_topic("t", configs=EVERYBODYS)
        seen = cluster.describe()
    assert seen.as_dict()["configs"]["t"]["flush.ms"]["effect"] == "no effect here"


def test_the_answer_to_a_client_has_all_of_them():
    world = ApiWorld()
    configs = [{"name": name, "value": value} for name, value in EVERYBODYS.items()]
    wanted = {"name": "t", "num_partitions": 1, "replication_factor": 1, "assignments": ()}
    request = {"timeout": 1000, "topics": [{**wanted, "configs": configs}]}
    (made,) = world.ask("create_topics", 7, **request).topics
    assert (made.error_code, len(made.configs)) == (0, 33)
    assert {each.name: each.value for each in made.configs} == {
        **{each.name: each.value for each in made.configs},
        **EVERYBODYS,
    }


@pytest.mark.parametrize(
    ("size", "code"),
    [
        (SEGMENT, None),
        (SEGMENT + 1, ErrorCode.RECORD_LIST_TOO_LARGE),
        (SEGMENT + 1000, ErrorCode.RECORD_LIST_TOO_LARGE),
        (SEGMENT + 1001, ErrorCode.MESSAGE_TOO_LARGE),
    ],
)
def test_no_batch_is_larger_than_a_segment_would_be(size, code):
    """K-CHECKS 14 and 20."""

    async def main():
        configs = {"segment.bytes": SEGMENT, "max.message.bytes": SEGMENT + 1000}
        async with Cluster(nodes=1) as cluster:
            await cluster.create_topic("t", configs=configs)
            around = len(build_batch([bytes(SEGMENT)])) - SEGMENT
            batch = build_batch([bytes(size - around)])
            assert len(batch) == size
            stages = cluster.replicate_in_stages("t", 0, batch)
            try:
                await stages.replicated
            except RequestFailedError as error:
                return error.code
            return None

    assert asyncio.run(main()) is code
