"""A partition that nobody leads: at the start a clear line, later no matter of the others.

Topics here have one replica of each partition, so the death of a node leaves its partitions without
a leader until it comes back.
"""

import pytest

from awaiting import await_that
from ottla import Cluster, Topic
from ottla.broker.errors import ErrorCode
from ottla.broker.wire.api.rounds import hosted
from ottla.sim.studies.topics.asked import SourceError, asked
from ottla.sim.studies.topics.identity import joined, parted, without_leader
from ottla.sim.studies.topics.offsets import Bounds, shorter
from ottla.sim.studies.topics.reading import Stream, batch_ranges
from ottla.sim.studies.topics.wire import WireTopics
from studies_topics import batch, write

GONE = 3


@pytest.fixture
def cluster():
    topic = Topic("t", assignment=[[1], [GONE], [2]])
    with Cluster(nodes=3, topics=[topic]) as running:
        write(running, "t", [batch(partition, 1, 0, 5) for partition in range(3)])
        topics = WireTopics([running.addresses[1]])
        topics.bounds("t")  # node 1 has heard of all leaders
        topics.close()
        yield running


def ask(cluster, **options):
    where = f"127.0.0.1:{cluster.addresses[1][1]}"
    return asked({"topic": "t", "bootstrap": where, "timeout": "2", **options})


@pytest.mark.slow
def test_where_reading_begins_it_is_named(cluster):
    cluster.kill(GONE)
    for begin in (batch_ranges, lambda wanted: Stream(wanted).first()):
        with pytest.raises(SourceError) as refused:
            begin(ask(cluster))
        assert str(refused.value) == "t-1 has had no leader for 2 s"


def test_bounds_of_the_others_are_had_at_once(cluster):
    cluster.kill(GONE)
    topics = WireTopics([cluster.addresses[1]], timeout=10)
    assert topics.led("t") == ({0: Bounds(0, 5), 2: Bounds(0, 5)}, frozenset({1}))
    topics.close()


@pytest.mark.slow
def test_what_a_leader_says_of_one_partition_is_not_said_of_its_others(monkeypatch):
    """The first error took all partitions of that leader along."""

    def refused(host, topic, partition):
        found = hosted(host, topic, partition)
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if partition == 1 else found

    with Cluster(nodes=1, topics=[Topic("t", partitions=3)]) as running:
        write(running, "t", [batch(partition, 1, 0, 5) for partition in range(3)])
        topics = WireTopics([running.addresses[1]], timeout=1)
        monkeypatch.setattr("ottla.broker.wire.api.list_offsets.hosted", refused)
        assert topics.led("t") == ({0: Bounds(0, 5), 2: Bounds(0, 5)}, frozenset({1}))
        with pytest.raises(SourceError, match=r"t-1: NOT_LEADER_OR_FOLLOWER$"):
            topics.bounds("t")
        topics.close()


def test_a_stream_leaves_it_where_it_is_and_goes_on_with_the_others(cluster):
    now = [0.0]
    stream = Stream(ask(cluster), clock=lambda: now[0])
    at = stream.next(stream.first())
    write(cluster, "t", [batch(1, 1, 5, 5)])
    cluster.kill(GONE)
    write(cluster, "t", [batch(0, 1, 5, 5)])
    at = stream.next(at)
    assert parted(at)[0] == {"t": {"0": 10, "1": 5, "2": 5}}
    assert without_leader(at, "t") == (), "it may be for a moment only"
    now[0] = 3.0
    at = stream.next(at)
    assert without_leader(at, "t") == (1,)
    assert stream.next(at) == at, "no micro-batch comes of it but the first"
    cluster.restart(GONE)
    whole = joined({"t": {"0": 10, "1": 10, "2": 5}}, parted(at)[1])
    await_that(lambda: stream.next(at) == whole, 30, "it is not gone on with")


@pytest.mark.slow
def test_a_topic_that_nobody_leads_ends_a_stream():
    with Cluster(nodes=3, topics=[Topic("t", assignment=[[GONE]])]) as running:
        write(running, "t", [batch(0, 1, 0, 5)])
        stream = Stream(ask(running))
        at = stream.first()
        running.kill(GONE)
        with pytest.raises(SourceError, match=r"^t-0 has had no leader for 2 s$"):
            stream.next(at)


def test_of_a_log_without_leader_nothing_is_known():
    reached = {"t": {"0": 5, "1": 9}}
    known = {"t": {0: Bounds(0, 5)}}
    assert shorter(known, reached, {("t", 1)}) is None
    assert (shorter(known, reached) or "").startswith("t-1 is not there")


def test_offsets_name_it_beside_the_ids():
    offsets = {"t": {"0": 5, "1": 9}}
    kept = joined(offsets, {"t": "id"}, [("t", 1), ("t", 0)])
    assert kept == {**offsets, "topic ids": {"t": "id"}, "without leader": {"t": [0, 1]}}
    assert parted(kept) == (offsets, {"t": "id"})
    assert without_leader(kept, "t") == (0, 1)
    assert without_leader(joined(offsets, {}), "t") == ()
