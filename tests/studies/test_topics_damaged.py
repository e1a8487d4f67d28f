"""A damaged batch is called one, at once: asking again and again would not mend it."""

import time

import pytest

from ottla import Cluster, Topic
from ottla.broker.client import API_KEYS
from ottla.sim.studies.topics.asked import SourceError
from ottla.sim.studies.topics.offsets import Range
from ottla.sim.studies.topics.wire import WireTopics
from studies_between import between
from studies_topics import Sent, write

BATCHES = [
    Sent(0, 1, 0, [b"whole"] * 3),
    Sent(0, 1, 3, [b"fragile"] * 2),
    Sent(0, 1, 5, [b"whole"]),
]


class Damage:
    """Fetched batches that come damaged so many times."""

    def __init__(self, times):
        self.times = times
        self.fetches = 0

    def __call__(self, api, _, answer):
        if api != API_KEYS["fetch"]:
            return answer
        self.fetches += 1
        return answer.replace(b"fragile", b"broken!") if self.fetches <= self.times else answer


@pytest.fixture(scope="module")
def broker():
    with Cluster(nodes=1, topics=[Topic("t")]) as running:
        write(running, "t", BATCHES)
        yield running.addresses[1]


def read(broker, damage, end=6):
    """Base offsets that were read before `SourceError`, and that error."""
    seen = []
    with between(broker, damage) as address:
        topics = WireTopics([address], timeout=20)
        try:
            for _, each in topics.read(Range("t", 0, 0, end)):
                seen.append(each.base_offset)
        except SourceError as error:
            return seen, str(error)
        finally:
            topics.close()
    return seen, None


def test_a_damaged_batch_is_called_one_at_once(broker):
    damage, begun = Damage(99), time.monotonic()
    assert read(broker, damage) == (
        [0],
        "the batch at offset 3 of t-0 is damaged: its CRC does not match",
    )
    assert damage.fetches == 2
    assert time.monotonic() - begun < 10


def test_a_batch_that_was_damaged_on_the_way_is_fetched_again(broker):
    damage = Damage(1)
    assert read(broker, damage) == ([0, 3, 5], None)
    assert damage.fetches == 2


def test_damage_behind_the_range_is_no_matter_of_it(broker):
    assert read(broker, Damage(99), end=3) == ([0], None)
