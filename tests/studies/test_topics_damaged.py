"""A damaged batch is called one, at once: asking again and again would not mend it.

A header that was wrong was asked for until time was up, and the sound batches before it were lost
with it.
"""

import time

import pytest

from ottla import Cluster, Topic
from ottla.broker.wire.client_requests import API_KEYS
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


BASE_OFFSET = (3).to_bytes(8, "big")
BASE_AT, LENGTH_AT, MAGIC_AT = 0, 8, 16
HIGH = (1 << 48) + 3


class Damage:
    """Fetched batches that come damaged so many times."""

    def __init__(self, times, change=lambda answer: answer.replace(b"fragile", b"broken!")):
        self.times = times
        self.change = change
        self.fetches = 0

    def __call__(self, api, _, answer):
        if api != API_KEYS["fetch"]:
            return answer
        self.fetches += 1
        return self.change(answer) if self.fetches <= self.times else answer


def headed(at, byte):
    """Another byte in the header of the fragile batch, which is the one of base offset 3."""

    def change(answer):
        begin = answer.rfind(BASE_OFFSET, 0, max(0, answer.find(b"fragile")))
        if begin < 0:
            return answer
        return answer[: begin + at] + byte + answer[begin + at + len(byte) :]

    return change


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


@pytest.mark.parametrize(
    ("at", "byte", "fetches", "what"),
    [
        (MAGIC_AT, b"\x05", 2, "magic outside 0..2"),
        (LENGTH_AT, b"\x00\x00\x00\x05", 2, "length field below 14"),
        # Behind a sound batch it looks like one that a limit cut.
        (LENGTH_AT, b"\x00\x7f", 3, "its length is more than was sent"),
        (BASE_AT, b"\x00" * 8, 2, "it names offsets 0 to 1, which cannot be"),
        (BASE_AT, b"\x00\x01", 2, f"it names offsets {HIGH} to {HIGH + 1}, which cannot be"),
    ],
)
def test_a_damaged_header_is_called_one_at_once(broker, at, byte, fetches, what):
    damage, begun = Damage(99, headed(at, byte)), time.monotonic()
    assert read(broker, damage) == ([0], f"the batch at offset 3 of t-0 is damaged: {what}")
    assert damage.fetches == fetches
    assert time.monotonic() - begun < 10


def test_an_old_message_format_is_called_one(broker):
    seen, told = read(broker, Damage(99, headed(MAGIC_AT, b"\x01")))
    assert seen == [0]
    assert told == "offset 3 is in message format 0 or 1; 2 is read"


def test_a_batch_that_was_damaged_on_the_way_is_fetched_again(broker):
    damage = Damage(1)
    assert read(broker, damage) == ([0, 3, 5], None)
    assert damage.fetches == 2


def test_damage_behind_the_range_is_no_matter_of_it(broker):
    assert read(broker, Damage(99), end=3) == ([0], None)
