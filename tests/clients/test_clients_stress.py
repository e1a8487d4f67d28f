"""Several producers of every library at once, while faults drawn from a seed hit their leaders.

Afterwards everything is read back and held to all of `clients_audit`: nothing lost, twice, moved,
refused or invented, and every replica agrees with what `describe()` says of the leader.

Under `reference` this needs producers that every partition knows before the faults begin
(`clients_writers.writing`): an unknown one may begin anywhere, as in Kafka 4.3.1, so its first
batches are protected by nobody (docs/decisions/0012). `reference-strict` has no such hole.
"""

import pytest

from clients_audit import audit
from clients_nemesis import Nemesis
from clients_writers import WRITERS, progress, writing
from ottla import Cluster, Topic
from ottla.broker.config import ClusterConfig

pytestmark = pytest.mark.clients
BY_DAY, BY_NIGHT = pytest.mark.slow(seconds=25), pytest.mark.nightly
PARTITIONS = 3
FAST = ClusterConfig(election_timeout_ms=200, heartbeat_ms=40, sync_stall_ms=100)


def stress(seed, *, faults, each, profile):
    topics = [Topic("t", PARTITIONS)]
    with Cluster(nodes=3, topics=topics, config=FAST, profile=profile) as cluster:
        writers = [
            make(f"{name}-{number}", cluster.bootstrap_servers, "t", PARTITIONS, strict=True)
            for name, make in WRITERS.items()
            for number in range(each)
        ]
        nemesis = Nemesis(cluster, "t", PARTITIONS, seed)
        try:
            with writing(*writers):
                for _ in range(faults):
                    nemesis.strike()
                progress(writers)
            logs = audit(cluster, "t", writers)
        except AssertionError as error:
            error.add_note(f"seed {seed}: {nemesis.done}\n{cluster.describe()}")
            raise
        assert sum(map(len, logs.values())) == sum(writer.acks for writer in writers)
        assert cluster.counters.leaderships > PARTITIONS + 1, nemesis.done


@pytest.mark.slow
def test_a_short_stress_loses_nothing():
    stress(seed=4, faults=6, each=1, profile="reference")


@pytest.mark.parametrize(
    ("seed", "profile"),
    [
        pytest.param(seed, profile, marks=BY_DAY if seed == by_day else BY_NIGHT)
        for profile, by_day in (("reference", 0), ("reference-strict", 1))
        for seed in range(3)
    ],
)
def test_a_long_stress_loses_nothing(seed, profile):
    stress(seed=seed, faults=18, each=3, profile=profile)
