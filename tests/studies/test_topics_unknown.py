"""A broker that does not know a topic, for a while: who has met it waits, and asks others first.

Between the reader and a real broker stands one that answers so; how long a topic that nobody has
met is looked for is set to nothing here.
"""

import pytest

from ottla import Cluster, Topic
from ottla.broker.wire.client_requests import API_KEYS
from ottla.sim.studies.topics.asked import SourceError, asked
from ottla.sim.studies.topics.identity import parted
from ottla.sim.studies.topics.offsets import Bounds, Range
from ottla.sim.studies.topics.reading import Stream, present_behind, rows
from ottla.sim.studies.topics.wire import WireTopics
from studies_between import between
from studies_topics import batch, write

KNOWN = b"\x02\x00\x00\x02t"
"""Of an answer about metadata: one topic, no error, its name."""
UNKNOWN = b"\x02\x00\x03\x02t"


class Forgetful:
    """Does not know topic t, so many times from when it is told to."""

    def __init__(self):
        self.times = 0

    def __call__(self, api, _, answer):
        if api != API_KEYS["metadata"] or not self.times:
            return answer
        self.times -= 1
        assert answer.count(KNOWN) == 1
        return answer.replace(KNOWN, UNKNOWN)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr("ottla.sim.studies.topics.wire.UNKNOWN_FOR", 0.0)


@pytest.fixture(scope="module")
def broker():
    with Cluster(nodes=1, topics=[Topic("t")]) as running:
        write(running, "t", [batch(0, 1, 0, 5)])
        yield running.addresses[1]


@pytest.fixture
def forgetful(broker):
    change = Forgetful()
    with between(broker, change) as address:
        yield change, asked({"topic": "t", "bootstrap": f"127.0.0.1:{address[1]}", "timeout": "20"})


def test_one_that_nobody_has_met_is_said_not_to_be_there(forgetful):
    change, where = forgetful
    change.times = 99
    with pytest.raises(SourceError, match="there is no topic t at"):
        Stream(where).first()


def test_a_stream_waits_for_one_that_it_has_met(forgetful):
    """A new connection is made for every micro-batch, and each forgot that the topic was there."""
    change, where = forgetful
    kept = Stream(where).first()
    change.times = 3
    assert parted(Stream(where).next(kept))[0] == {"t": {"0": 5}}
    change.times = 3
    assert present_behind(where, kept).bounds == {"t": {0: Bounds(0, 5)}}
    assert change.times == 0


def test_a_task_waits_for_the_topic_that_its_range_is_of(forgetful):
    change, where = forgetful
    change.times = 3
    assert sum(each.num_rows for each in rows(where, Range("t", 0, 0, 5))) == 5
    assert change.times == 0


def test_others_are_asked_before_a_topic_is_given_up(broker):
    change = Forgetful()
    change.times = 99
    with between(broker, change) as address:
        topics = WireTopics([address, broker])
        assert topics.bounds("t") == {0: Bounds(0, 5)}
        topics.close()
    assert change.times < 99
