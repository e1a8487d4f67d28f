"""Simulated clients are served by the broker's own handlers, checks in Kafka's order included.

Each request below has several things wrong with it; what is answered is what Kafka finds
first. The simulator's own handlers knew none of K-CHECKS 1, 2 and 8, nor a partition named twice.
"""

import pytest

from ottla.broker.errors import ErrorCode
from ottla.log.build import build_batch
from ottla.sim.chance.choices import Drawn
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.frames import Frame, produce, produced
from ottla.sim.world.world import World

E = ErrorCode
SECOND = 1_000_000
GOOD = build_batch([b"v"])
BROKEN = GOOD[:8] + (3).to_bytes(4, "big") + GOOD[12:]
"""A batch that says to be three bytes long: check 1."""
TRANSACTIONAL = build_batch([b"v"], attributes=0x10, producer_id=1, producer_epoch=0)
"""Check 2."""
NOWHERE = 77


@pytest.fixture(scope="module")
def world():
    world = World(RunConfig(nodes=3, partitions=2), Drawn(1))
    world.boot()
    return world


def ask(world, acks, *batches):
    """The codes that a leader of partition 0 answers, by partition."""
    answers: list[Frame] = []
    ends: list[str] = []
    leader = world.leader(0)
    connection = world.clients.connect(99, leader.node_id, answers.append, ends.append)
    connection.send(Frame(5, produce(acks, SECOND, batches)))
    world.kernel.run(world.kernel.now + SECOND)
    if not answers:
        return ends
    (answer,) = answers
    assert answer.number == 5
    return {part.partition: part.error for part in produced(answer.value)}


@pytest.mark.parametrize(
    ("first", "second", "error"),
    [
        (BROKEN, TRANSACTIONAL, E.CORRUPT_MESSAGE),
        (TRANSACTIONAL, BROKEN, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
    ids=["check 1", "check 2"],
)
def test_what_is_wrong_with_one_batch_is_answered_for_all(world, first, second, error):
    """Whichever comes first in the request, and before K-CHECKS 4 and 8."""
    assert ask(world, 7, (NOWHERE, first), (0, second)) == {NOWHERE: error, 0: error}


def test_a_partition_that_is_none_comes_before_acks_that_are_none(world):
    """Check 4 before check 8."""
    told = ask(world, 7, (NOWHERE, GOOD), (0, GOOD))
    assert told == {NOWHERE: E.UNKNOWN_TOPIC_OR_PARTITION, 0: E.INVALID_REQUIRED_ACKS}


def test_a_partition_named_twice_stores_nothing(world):
    """Where Kafka drops the earlier batch without a word."""
    before = world.high_watermark(0, -1)
    assert ask(world, -1, (0, GOOD), (0, GOOD)) == {0: E.INVALID_REQUEST}
    assert world.high_watermark(0, -1) == before
    assert ask(world, -1, (0, GOOD)) == {0: E.NONE}
    assert world.high_watermark(0, -1) == before + 1


def test_an_error_with_acks_0_ends_the_connection(world):
    """promise-P2."""
    assert ask(world, 0, (NOWHERE, GOOD)) == [
        "produce with acks=0 failed: UNKNOWN_TOPIC_OR_PARTITION"
    ]
