"""The simulator's consumer, rule by rule, against brokers that answer as told.

What is fetched is made of real batches with a stamp. A poll is a row of the history for each
record, with what its batch says of its producer.
"""

import pytest

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.answers import (
    FetchAnswer,
    ListOffsetsAnswer,
    PartitionFetched,
    PartitionListed,
    TopicFetched,
    TopicListed,
)
from ottla.broker.wire.requests import FetchRequest, ListOffsetsRequest
from ottla.log.build import build_batch
from ottla.log.record_batch import read_batch
from ottla.log.types import RecordBatch
from ottla.sim.clients.consumer import Consumer, Reset
from ottla.sim.world.batch import payload_of
from ottla.sim.world.decoder import Decoder
from ottla.sim.world.frames import TOPIC
from sim_fake_brokers import CONFIG, MS, Asked, FakeBrokers


def stored(base: int, values: list[int], pid: int = 100, seq: int = 0) -> RecordBatch:
    """A batch as it stands in a log."""
    payloads = [payload_of(value, 16) for value in values]
    data = build_batch(payloads, producer_id=pid, producer_epoch=3, base_sequence=seq)
    batch = read_batch(data)
    assert isinstance(batch, RecordBatch)
    batch.stamp(base, 1)
    return batch


def listed(asked: Asked, offset: int, error: ErrorCode = ErrorCode.NONE) -> None:
    """Answer a listing."""
    assert isinstance(asked.request, ListOffsetsRequest)
    part = PartitionListed(asked.partition, error, offset=offset)
    asked.say(ListOffsetsAnswer((TopicListed(TOPIC, (part,)),)))


def fetched(
    asked: Asked, *batches: RecordBatch, hw: int = 0, error: ErrorCode = ErrorCode.NONE
) -> None:
    """Answer a fetch."""
    assert isinstance(asked.request, FetchRequest)
    part = PartitionFetched(asked.partition, error, hw, 0, batches)
    asked.say(FetchAnswer((TopicFetched(TOPIC, (part,)),)))


def consumer_of(brokers: FakeBrokers, reset: Reset = "earliest") -> Consumer:
    """A consumer of everything, at work."""
    consumer = Consumer(brokers.surroundings(), 9, Decoder(), reset=reset)
    consumer.start()
    return consumer


def reading(brokers: FakeBrokers) -> Consumer:
    """A consumer of partition 0 that is about to fetch from 0."""
    consumer = consumer_of(brokers)
    listed(brokers.next(), 0)
    return consumer


def polls(brokers: FakeBrokers) -> list[tuple[int | None, int | None]]:
    """What it said it read: offset and value."""
    return [(row.off, row.value) for row in brokers.rows("poll")]


@pytest.mark.parametrize(("reset", "timestamp"), [("earliest", -2), ("latest", -1)])
def test_it_asks_where_to_begin_and_begins_there(reset, timestamp):
    brokers = FakeBrokers()
    consumer = consumer_of(brokers, reset)
    asked = brokers.next()
    assert asked.part.timestamp == timestamp
    assert consumer.position(0) == -1
    listed(asked, 40)
    assert brokers.next().part.fetch_offset == 40
    assert consumer.position(0) == 40


def test_it_says_what_it_read_and_goes_on_behind_it():
    brokers = FakeBrokers()
    reading(brokers)
    fetched(brokers.next(), stored(0, [5, 6]), stored(2, [7], pid=-1), hw=3)
    asked = brokers.next()
    assert (asked.part.fetch_offset, asked.request.max_wait) == (3, 500 * MS)
    rows = brokers.rows("poll")
    assert [(r.off, r.value, r.pid, r.epoch, r.seq) for r in rows] == [
        (0, 5, 100, 3, 0),
        (1, 6, 100, 3, 1),
        (2, 7, None, None, None),
    ]
    (fetch,) = brokers.rows("fetch")
    assert (fetch.node, fetch.partition, fetch.hw, fetch.off) == (1, 0, 3, 0)


def test_a_sequence_may_wrap_inside_a_batch():
    brokers = FakeBrokers()
    reading(brokers)
    fetched(brokers.next(), stored(0, [5, 6], seq=2**31 - 1), hw=2)
    brokers.next()
    assert [row.seq for row in brokers.rows("poll")] == [2**31 - 1, 0]


def test_records_before_the_position_are_not_read_again():
    brokers = FakeBrokers()
    consumer = consumer_of(brokers)
    listed(brokers.next(), 2)
    fetched(brokers.next(), stored(0, [5]), stored(1, [6, 7, 8]), hw=4)
    brokers.next()
    assert polls(brokers) == [(2, 7), (3, 8)]
    assert consumer.position(0) == 4


def test_it_follows_the_leader():
    brokers = FakeBrokers()
    reading(brokers)
    asked = brokers.next()
    brokers.leaders[0] = (3, 2)
    fetched(asked, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    again = brokers.next()
    assert (again.node, again.part.fetch_offset) == (3, 0)
    assert [row.code for row in brokers.rows("error")] == ["NOT_LEADER_OR_FOLLOWER"]


@pytest.mark.parametrize("breaks", [True, False])
def test_a_connection_that_is_gone_costs_a_second_try(breaks):
    brokers = FakeBrokers()
    reading(brokers)
    asked = brokers.next()
    if breaks:
        asked.drop()
    else:
        brokers.asked.clear()  # it waits as long as the broker may take, and its own patience
    before = brokers.kernel.now
    assert brokers.next().part.fetch_offset == 0
    if not breaks:
        patience = (CONFIG.request_timeout_ms + 500) * MS
        assert brokers.kernel.now - before > patience - 10 * MS


def test_an_offset_out_of_range_sends_it_back_to_asking_where_to_begin():
    brokers = FakeBrokers()
    consumer = reading(brokers)
    fetched(brokers.next(), stored(0, [5]), hw=1)
    fetched(brokers.next(), error=ErrorCode.OFFSET_OUT_OF_RANGE)
    listed(brokers.next(), 17)
    assert brokers.next().part.fetch_offset == 17
    assert consumer.position(0) == 17


def test_a_listing_that_fails_is_asked_again():
    brokers = FakeBrokers()
    consumer_of(brokers)
    listed(brokers.next(), -1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    listed(brokers.next(), 0)
    assert brokers.next().part.fetch_offset == 0


def test_one_fetch_at_a_time_on_a_connection_each_partition_in_turn():
    brokers = FakeBrokers(CONFIG.with_(partitions=3))
    brokers.leaders[1] = (2, 1)
    consumer = consumer_of(brokers)
    for asked in brokers.take(3):
        listed(asked, 0)
    order: dict[int, list[int]] = {1: [], 2: []}
    for _ in range(4):
        for asked in brokers.take(2):
            order[asked.node].append(asked.partition)
            fetched(asked)
    assert order == {1: [0, 2, 0, 2], 2: [1, 1, 1, 1]}
    assert consumer.partitions == (0, 1, 2)


def test_batches_are_looked_into_once():
    decoder = Decoder()
    batch = stored(0, [5, 6])
    assert decoder.values(batch) == (5, 6)
    assert decoder.values(batch) is decoder.values(batch)
