"""DeleteRecords and OffsetForLeaderEpoch as a client sees them.

Both ask the leaders of partitions; the partitions behind the handlers are real and led by hand, so
a test says which epoch wrote what, and who leads when the question comes.
"""

from __future__ import annotations

import pytest

from broker_api_world import EPOCH, ApiWorld
from ottla.broker.turn.commands import CreateTopic


def world_with_records():
    """Topic t: ten offsets in five batches; a second partition that another node has."""
    world = ApiWorld()
    world.controlling.decided(CreateTopic("t", assignments=((0, (1,)), (1, (2,)))))
    for number in range(5):
        world.log("t").produce(number, number)
    return world


# ---- DeleteRecords


def delete(world, *offsets, topic="t", partition=0, version=2, timeout=1000):
    partitions = [{"partition_index": partition, "offset": offset} for offset in offsets]
    topics = [{"name": topic, "partitions": partitions}]
    answer = world.ask("delete_records", version, topics=topics, timeout=timeout)
    return [(part.error_code, part.low_watermark) for part in answer.topics[0].partitions]


@pytest.mark.parametrize("version", range(3))
def test_the_log_start_moves_in_every_version(version):
    world = world_with_records()
    assert delete(world, 3, version=version) == [(0, 3)]
    assert world.log("t").machine.state.log_start_offset == 3


def test_minus_one_means_the_high_watermark():
    assert delete(world_with_records(), -1) == [(0, 10)]


def test_an_offset_below_the_log_start_changes_nothing():
    world = world_with_records()
    assert delete(world, 4) == [(0, 4)]
    assert delete(world, 2) == [(0, 4)]


@pytest.mark.parametrize("offset", [11, -2])
def test_an_offset_out_of_range_is_1(offset):
    world = world_with_records()
    assert delete(world, offset) == [(1, -1)]
    assert world.log("t").machine.state.log_start_offset == 0


@pytest.mark.parametrize(
    ("offsets", "answer", "start"),
    [((1, 2), (0, 2), 2), ((4, 3), (0, 3), 3), ((5, 99), (1, -1), 0), ((99, 5), (0, 5), 5)],
)
def test_of_a_partition_that_is_named_twice_the_last_entry_counts(offsets, answer, start):
    """Measured on Apache Kafka 4.3.1, which keeps a map; both used to be done and answered."""
    world = world_with_records()
    assert delete(world, *offsets) == [answer]
    assert world.log("t").machine.state.log_start_offset == start


def test_a_topic_that_is_named_twice_has_one_entry_and_an_empty_one_none():
    world = world_with_records()
    world.topic("u")
    topics = [
        {"name": name, "partitions": [{"partition_index": each, "offset": 0} for each in parts]}
        for name, parts in [("t", [0]), ("u", [0]), ("t", [2, 0]), ("gone", [])]
    ]
    answer = world.ask("delete_records", 2, topics=topics, timeout=1000)
    told = [
        (each.name, [part.partition_index for part in each.partitions]) for each in answer.topics
    ]
    assert told == [("t", [0, 2]), ("u", [0])]


def test_deleting_where_nothing_is_or_somebody_else_leads():
    world = world_with_records()
    assert delete(world, 1, topic="no") == [(3, -1)]
    assert delete(world, 1, partition=2) == [(3, -1)]
    assert delete(world, 1, partition=-1) == [(3, -1)]
    assert delete(world, 1, partition=1) == [(6, -1)]
    world.log("t").follow(EPOCH + 1, leader=2)
    assert delete(world, 1) == [(6, -1)]


def test_what_is_not_decided_in_time_is_7():
    world = world_with_records()
    log = world.log("t")
    world.hold = True
    topics = [{"name": "t", "partitions": [{"partition_index": 0, "offset": 5}]}]
    exchange = world.begin("delete_records", 2, topics=topics, timeout=20)
    (asked,) = world.held()
    log.submit(asked)
    log.propose()
    log.sleep(asked.deadline - log.now)
    world.flush(log)
    assert exchange.answer.topics[0].partitions[0].error_code == 7
    log.commit()
    assert log.machine.state.log_start_offset == 5, "it was in the log, so it happened all the same"


# ---- OffsetForLeaderEpoch


def epoch_end(world, epoch, *, topic="t", partition=0, current=-1, version=4):
    asked = {"partition": partition, "leader_epoch": epoch, "current_leader_epoch": current}
    topics = [{"topic": topic, "partitions": [asked]}]
    answer = world.ask("offset_for_leader_epoch", version, topics=topics, replica_id=-1)
    (part,) = answer.topics[0].partitions
    return part.error_code, part.leader_epoch, part.end_offset


def world_with_epochs():
    """Offsets 0..3 written in `EPOCH`, 4 and 5 in `EPOCH + 3`, which is the current one."""
    world = ApiWorld()
    world.topic("t")
    log = world.log("t")
    log.produce(1, 2, 3, 4)
    log.lead(EPOCH + 3)
    log.commit()
    log.produce(5, 6)
    return world


@pytest.mark.parametrize("version", [2, 3, 4])
def test_an_epoch_ended_where_the_next_one_began(version):
    assert epoch_end(world_with_epochs(), EPOCH, version=version) == (0, EPOCH, 4)


def test_the_current_epoch_ends_at_the_log_end():
    assert epoch_end(world_with_epochs(), EPOCH + 3) == (0, EPOCH + 3, 6)


def test_an_epoch_in_between_is_answered_with_the_one_below():
    assert epoch_end(world_with_epochs(), EPOCH + 1) == (0, EPOCH, 4)


def test_an_epoch_before_the_log_s_first_ends_where_the_log_starts():
    """The records it wrote are gone, so a reader of it has to begin at the start (as in Kafka)."""
    assert epoch_end(world_with_epochs(), EPOCH - 1) == (0, EPOCH - 1, 0)


@pytest.mark.parametrize("epoch", [EPOCH + 4, -1])
def test_an_epoch_nobody_knows_is_undefined(epoch):
    assert epoch_end(world_with_epochs(), epoch) == (0, -1, -1)


@pytest.mark.parametrize(
    ("start", "epoch", "end"),
    [
        (2, EPOCH - 1, (0, EPOCH - 1, 2)),
        (2, EPOCH, (0, EPOCH, 4)),
        (4, EPOCH, (0, EPOCH, 4)),
        (5, EPOCH, (0, EPOCH, 5)),
        (5, EPOCH + 1, (0, EPOCH + 1, 5)),
        (6, EPOCH, (0, EPOCH, 6)),
        (6, EPOCH + 3, (0, EPOCH + 3, 6)),
    ],
)
def test_an_epoch_whose_records_are_deleted_ends_where_the_log_starts(start, epoch, end):
    """Kafka's epoch cache is cut at the log start (LeaderEpochFileCache.truncateFromStart)."""
    world = world_with_epochs()
    assert delete(world, start) == [(0, start)]
    assert epoch_end(world, epoch) == end


def test_what_is_named_twice_is_answered_twice():
    """Unlike in other requests; measured on Apache Kafka 4.3.1."""
    world = world_with_epochs()
    parts = [
        {"partition": 0, "leader_epoch": epoch, "current_leader_epoch": -1}
        for epoch in (EPOCH, EPOCH + 3)
    ]
    topics = [{"topic": "t", "partitions": parts}, {"topic": "t", "partitions": parts[:1]}]
    topics.append({"topic": "no", "partitions": []})
    answer = world.ask("offset_for_leader_epoch", 4, topics=topics, replica_id=-1)
    ends = [(each.topic, [part.end_offset for part in each.partitions]) for each in answer.topics]
    assert ends == [("t", [4, 6]), ("t", [4]), ("no", [])]


def test_only_minus_one_is_no_epoch():
    """Measured on Apache Kafka 4.3.1: -2 is an epoch like any other before the log's first."""
    assert epoch_end(world_with_epochs(), -2) == (0, -2, 0)
    assert epoch_end(world_with_epochs(), EPOCH, current=-2) == (74, -1, -1)


def test_the_client_s_idea_of_the_current_epoch_is_checked():
    world = world_with_epochs()
    assert epoch_end(world, EPOCH, current=EPOCH + 3) == (0, EPOCH, 4)
    assert epoch_end(world, EPOCH, current=EPOCH) == (74, -1, -1)
    assert epoch_end(world, EPOCH, current=EPOCH + 4) == (75, -1, -1)


def test_asking_where_nothing_is_or_somebody_else_leads():
    world = world_with_records()
    assert epoch_end(world, EPOCH, topic="no") == (3, -1, -1)
    assert epoch_end(world, EPOCH, partition=1) == (6, -1, -1)
    world.log("t").follow(EPOCH + 1, leader=2)
    assert epoch_end(world, EPOCH) == (6, -1, -1)


def test_several_partitions_are_answered_in_order_once_all_have_answered():
    world = ApiWorld()
    world.topic("a", partitions=2)
    world.topic("b")
    world.hold = True
    topics = [
        {"topic": "a", "partitions": [{"partition": n, "leader_epoch": EPOCH} for n in (1, 0, 7)]},
        {"topic": "b", "partitions": [{"partition": 0, "leader_epoch": EPOCH}]},
    ]
    exchange = world.begin("offset_for_leader_epoch", 4, topics=topics)
    before = exchange.answer
    world.release()
    topics = exchange.answer.topics
    got = [(t.topic, [(p.partition, p.error_code) for p in t.partitions]) for t in topics]
    assert before is None
    assert got == [("a", [(1, 0), (0, 0), (7, 3)]), ("b", [(0, 0)])]
