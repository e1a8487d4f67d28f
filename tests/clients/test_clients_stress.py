"""Several producers of every library at once, while faults drawn from a seed hit their leaders.

Afterwards everything is read back and held to all of `clients_audit`: nothing lost, twice, moved,
refused or invented, and every replica agrees with what `describe()` says of the leader.
"""

import os
import time

import pytest

from clients_audit import audit
from clients_nemesis import Nemesis
from clients_writers import WRITERS, progress, until
from ottla import Cluster, Topic

pytestmark = pytest.mark.clients
PARTITIONS = 3


def stress(seed, seconds, each):
    topics = [Topic("t", PARTITIONS)]
    with Cluster(nodes=3, topics=topics, election_timeout_ms=200, heartbeat_ms=40) as cluster:
        writers = [
            make(f"{name}-{number}", cluster.bootstrap_servers, "t", PARTITIONS, strict=True)
            for name, make in WRITERS.items()
            for number in range(each)
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            until(f"first answers of {writer.name}", writer.begun)
        nemesis = Nemesis(cluster, "t", PARTITIONS, seed)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            nemesis.strike()
        progress(writers)
        for writer in writers:
            writer.finish()
        try:
            logs = audit(cluster, "t", writers)
        except AssertionError as error:
            error.add_note(f"seed {seed}: {nemesis.done}")
            raise
        assert sum(map(len, logs.values())) == sum(writer.acks for writer in writers)
        assert cluster.counters.leaderships > PARTITIONS + 1, nemesis.done


def test_a_short_stress_loses_nothing():
    stress(seed=4, seconds=6, each=2)


@pytest.mark.slow
@pytest.mark.skipif("OTTLA_SOAK" not in os.environ, reason="minutes of load: OTTLA_SOAK=1")
@pytest.mark.parametrize("seed", range(6))
def test_a_long_stress_loses_nothing(seed):
    stress(seed=seed, seconds=30, each=3)
