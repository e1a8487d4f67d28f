"""ListOffsets as a client sees it; answers as measured (K-LIST-OFFSETS).

The partition behind the handler is real and led by hand. Its log in most tests: offsets 0 to 2 with
times 10, 30, 20 in `EPOCH`, then offsets 3 and 4 with times 40 and 25 in `EPOCH + 2`.
"""

from __future__ import annotations

import gzip

import pytest

from broker_api_world import EPOCH, ApiWorld
from ottla.broker.turn.commands import CreateTopic
from ottla.broker.turn.tickets import DeleteRecordsTicket, ProduceTicket
from ottla.log.build import Codec, NewRecord, build_batch, seal
from ottla.log.errors import CompactedError, StoreError
from ottla.log.record_batch import read_batch
from ottla.log.types import RecordBatch

LATEST, EARLIEST, LARGEST, LOCAL_START = -1, -2, -3, -4
NOTHING = (0, -1, -1, -1)


def world_with_times(codec=Codec.NONE):
    world = ApiWorld()
    world.topic("t")
    log = world.log("t")
    log.produce(10, 30, 20, codec=codec)
    log.lead(EPOCH + 2)
    log.commit()
    log.produce(40, 25, codec=codec)
    return world


def part(timestamp, partition=0, current=-1):
    return {
        "partition_index": partition,
        "timestamp": timestamp,
        "current_leader_epoch": current,
        "max_num_offsets": 1,
    }


def ask(world, *parts, topic="t", version=8, **fields):
    """(error, offset, timestamp, leader epoch) of each partition asked for."""
    fields = {"replica_id": -1, "isolation_level": 0, **fields}
    topics = [{"name": topic, "partitions": parts}]
    answer = world.ask("list_offsets", version, topics=topics, **fields)
    return [
        (each.error_code, each.offset, each.timestamp, getattr(each, "leader_epoch", None))
        for each in answer.topics[0].partitions
    ]


def one(world, timestamp, **options):
    return ask(world, part(timestamp), **options)[0]


def delete_before(world, offset):
    log = world.log("t")
    log.submit(DeleteRecordsTicket(offset, lambda _: None, log.now + 10**6))
    log.settle()
    log.answered()


@pytest.mark.parametrize("version", range(1, 9))
def test_latest_earliest_and_a_time_in_every_version(version):
    world = world_with_times()
    epochs = (EPOCH + 2, EPOCH, EPOCH) if version >= 4 else (None, None, None)
    assert one(world, LATEST, version=version) == (0, 5, -1, epochs[0])
    assert one(world, EARLIEST, version=version) == (0, 0, -1, epochs[1])
    assert one(world, 11, version=version) == (0, 1, 30, epochs[2])


TIMES = [(0, 0, 10), (10, 0, 10), (11, 1, 30), (30, 1, 30), (31, 3, 40), (40, 3, 40)]


@pytest.mark.parametrize(("timestamp", "offset", "found"), TIMES)
@pytest.mark.parametrize("codec", list(Codec))
def test_a_time_finds_the_first_record_that_is_not_older(timestamp, offset, found, codec):
    epoch = EPOCH if offset < 3 else EPOCH + 2
    assert one(world_with_times(codec), timestamp) == (0, offset, found, epoch)


def test_a_time_behind_all_records_finds_nothing():
    assert one(world_with_times(), 41) == NOTHING


def test_the_largest_time_is_that_of_its_first_record():
    world = world_with_times()
    assert one(world, LARGEST) == (0, 3, 40, EPOCH + 2)
    world.log("t").produce(40)
    assert one(world, LARGEST) == (0, 3, 40, EPOCH + 2)


def test_an_empty_log_begins_and_ends_at_0_and_has_no_times():
    world = ApiWorld()
    world.topic("t")
    assert one(world, LATEST) == (0, 0, -1, EPOCH)
    assert one(world, EARLIEST) == (0, 0, -1, EPOCH)
    assert one(world, LARGEST) == NOTHING
    assert one(world, 0) == NOTHING


UNSUPPORTED = [(LARGEST, 6), (LOCAL_START, 7), (-5, 8), (-6, 8), (-7, 7), (-99, 1)]


@pytest.mark.parametrize(("timestamp", "version"), UNSUPPORTED)
def test_a_special_timestamp_the_version_does_not_know_is_35_in_its_partition(timestamp, version):
    world = world_with_times()
    world.topic("t2")
    (unsupported,) = ask(world, part(timestamp), version=version)
    assert unsupported[:3] == (35, -1, -1)
    assert one(world, LATEST, version=version)[0] == 0


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [(-7, (0, -6)), (-5, (1, -5)), (-4, (2, -1)), (-3, (2, -1)), (0, (3, 10))],
)
def test_before_3_0_other_negative_times_are_searched_and_no_time_is_minus_one(timestamp, found):
    """Measured on Apache Kafka 2.8.2 (found by `ottla compare --fuzz`): a record without a time was
    passed over."""
    world = ApiWorld(profile="kafka-2.8")
    world.topic("t")
    world.log("t").produce(-6, -5)
    world.log("t").produce(-1)
    world.log("t").produce(10)
    assert one(world, timestamp, version=6)[:3] == (0, *found)


@pytest.mark.parametrize("version", [7, 8])
def test_the_largest_time_is_served_from_version_7_and_the_local_start_from_8(version):
    world = world_with_times()
    assert one(world, LARGEST, version=version)[:3] == (0, 3, 40)
    local = one(world, LOCAL_START, version=version)
    assert local == ((0, 0, -1, EPOCH) if version == 8 else (35, -1, -1, -1))


def test_records_below_the_log_start_do_not_count():
    world = world_with_times()
    delete_before(world, 2)
    assert one(world, EARLIEST) == (0, 2, -1, EPOCH)
    assert one(world, 10) == (0, 2, 20, EPOCH), "10 and 30 lie in the same batch and are deleted"
    assert one(world, 30) == (0, 3, 40, EPOCH + 2)
    delete_before(world, 4)
    assert one(world, EARLIEST) == (0, 4, -1, EPOCH + 2)
    delete_before(world, 5)
    assert one(world, EARLIEST) == (0, 5, -1, EPOCH + 2)
    assert one(world, 0) == NOTHING


# Measured on Kafka 4.3.1: -3 names the record of the largest time of whole batches. Ottla once left
# out the records below the log start, and then the 500 of another batch, too.
CUT = [
    ([[100, 500, 200, 300, 400]], 2, (1, 500)),
    ([[100, 500, 200, 300, 400]], 1, (1, 500)),
    ([[100, 500, 200, 300, 400], [450, 350]], 2, (1, 500)),
    ([[100, 500, 200, 300, 400], [600, 350]], 2, (5, 600)),
    ([[100, 500, 200, 300, 400], [500, 350]], 2, (1, 500)),
    ([[500, 100, 500, 50]], 1, (0, 500)),
    ([[500, 100, 500, 50]], 3, (0, 500)),
    ([[-1, -1, -1]], 1, (0, -1)),
    ([[-1, -1], [-5, -1], [-7, -1]], 3, (3, -1)),
]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize(("batches", "start", "largest"), CUT)
def test_the_largest_time_is_that_of_whole_batches_also_where_the_log_start_cuts_one(
    batches, start, largest, codec
):
    world = ApiWorld()
    world.topic("t")
    for times in batches:
        world.log("t").produce(*times, codec=codec)
    delete_before(world, start)
    assert one(world, LARGEST)[:3] == (0, *largest)
    assert one(world, EARLIEST)[1] == start


def test_batches_below_the_log_start_have_no_largest_time():
    """Kafka's answer there is that of their segment, as long as it has it: (0, 900) here."""
    world = ApiWorld()
    world.topic("t")
    world.log("t").produce(900, 800)
    world.log("t").produce(100, 200, 150)
    delete_before(world, 2)
    assert one(world, LARGEST)[:3] == (0, 3, 200)
    delete_before(world, 5)
    assert one(world, LARGEST) == NOTHING


def test_a_batch_whose_header_promises_too_much_is_passed_over():
    world = ApiWorld()
    world.topic("t")
    log = world.log("t")
    log.produce_bytes(claiming(900, NewRecord(b"v", timestamp=100)))
    assert one(world, 500) == NOTHING
    log.produce(600)
    assert one(world, 500) == (0, 1, 600, EPOCH)
    assert one(world, 100) == (0, 0, 100, EPOCH)


def claiming(max_timestamp, *records):
    """A batch with another max_timestamp in its header (bytes 35 to 42) than its records have."""
    data = build_batch(records)
    return seal(data[:35] + max_timestamp.to_bytes(8, "big") + data[43:])


def test_a_batch_that_cannot_be_read_is_an_error_of_this_partition_only():
    world = ApiWorld()
    world.topic("t")
    data = build_batch([NewRecord(b"value", timestamp=5)])
    # Of compressed records no length is believed when they are taken in, as in Kafka.
    payload = gzip.compress(bytes([data[61] + 2]) + data[62:])
    head = data[:8] + (49 + len(payload)).to_bytes(4, "big") + data[12:22] + bytes([Codec.GZIP])
    world.log("t").produce_bytes(seal(head + data[23:61] + payload))
    assert one(world, 1) == (87, -1, -1, -1)
    assert one(world, LATEST) == (0, 1, -1, EPOCH)


def test_where_no_record_has_a_time_the_first_is_the_largest():
    """As measured: offset 0 with timestamp -1; nothing where all lie before -1."""
    world = ApiWorld()
    world.topic("t")
    assert one(world, LARGEST) == NOTHING
    world.log("t").produce(-1, -1)
    world.log("t").produce(-1)
    assert one(world, LARGEST)[:3] == (0, 0, -1)
    assert one(world, 0) == NOTHING
    before = ApiWorld()
    before.topic("t")
    before.log("t").produce(-5, -7)
    assert one(before, LARGEST) == NOTHING


def test_asking_where_nothing_is_or_somebody_else_leads():
    world = world_with_times()
    world.controlling.decided(CreateTopic("far", assignments=((0, (2, 3)),)))
    assert ask(world, part(LATEST), topic="no") == [(3, -1, -1, -1)]
    assert ask(world, part(LATEST, 1), part(LATEST, -1)) == [(3, -1, -1, -1)] * 2
    assert ask(world, part(LATEST), topic="far") == [(6, -1, -1, -1)]
    world.log("t").follow(EPOCH + 3, leader=2)
    assert one(world, LATEST) == (6, -1, -1, -1)


def test_the_client_s_idea_of_the_current_epoch_is_checked():
    world = world_with_times()
    answers = ask(world, part(LATEST, current=EPOCH + 2))
    answers += ask(world, part(11, current=EPOCH))
    answers += ask(world, part(EARLIEST, current=EPOCH + 3))
    assert [each[0] for each in answers] == [0, 74, 75]
    assert answers[1:] == [(74, -1, -1, -1), (75, -1, -1, -1)]


def ask_exactly(world, *topics, version=8, **fields):
    """Topic, partition and error of everything answered, as it was grouped."""
    asked = [{"name": name, "partitions": parts} for name, *parts in topics]
    options = {"replica_id": -1, "isolation_level": 0} | fields
    answer = world.ask("list_offsets", version, topics=asked, **options)
    return [
        (topic.name, [(each.partition_index, each.error_code) for each in topic.partitions])
        for topic in answer.topics
    ]


@pytest.mark.parametrize("version", [1, 8])
def test_a_partition_that_is_named_twice_is_42_and_answered_once(version):
    """Before all else that may be wrong with it; and a topic that is named twice has one entry, one
    without partitions none (measured on Apache Kafka 4.3.1; there were two entries)."""
    world = world_with_times()
    world.topic("t2", partitions=2)
    latest, nonsense = part(LATEST), part(-99)
    two = ("t2", part(LATEST, 1), latest, part(EARLIEST))
    assert ask_exactly(world, two, version=version) == [("t2", [(1, 0), (0, 42)])]
    apart = ("t2", latest), ("t", latest), ("t2", part(LATEST, 1)), ("t", latest), ("no",)
    answered = [("t2", [(0, 0), (1, 0)]), ("t", [(0, 42)])]
    assert ask_exactly(world, *apart, version=version) == answered
    for where in ("t", "no"):
        twice = (where, nonsense, nonsense)
        assert ask_exactly(world, twice, version=version) == [(where, [(0, 42)])]
    assert ask_exactly(world, ("no", nonsense), version=version) == [("no", [(0, 35)])]


def test_a_new_leader_is_waited_for_at_most_one_election_timeout():
    world = world_with_times()
    log = world.log("t")
    log.lead(EPOCH + 9)
    patient = world.begin("list_offsets", 8, **request(LATEST))
    world.hold = True
    late = world.begin("list_offsets", 8, **request(EARLIEST))
    (asked,) = world.held()
    assert asked.deadline == world.now() + world.config.election_timeout_ms * 1000
    log.commit()
    world.flush(log)
    (answer,) = patient.answer.topics[0].partitions
    assert (answer.error_code, answer.offset, answer.leader_epoch) == (0, 5, EPOCH + 9)
    log.lead(EPOCH + 10)
    log.submit(asked)
    log.sleep(asked.deadline - log.now)
    world.flush(log)
    assert late.answer.topics[0].partitions[0].error_code == 6


def request(timestamp):
    topics = [{"name": "t", "partitions": [part(timestamp)]}]
    return {"topics": topics, "replica_id": -1, "isolation_level": 0}


def test_a_log_start_that_moves_before_the_batch_is_read_makes_it_ask_again():
    world = world_with_times()
    world.fail_reads.append(CompactedError(1, 2, 3))
    assert one(world, 11) == (0, 1, 30, EPOCH)
    assert world.fail_reads == []


def test_a_store_that_fails_is_56():
    world = world_with_times()
    world.fail_reads.append(StoreError("disk on fire"))
    assert one(world, 11) == (56, -1, -1, -1)


def test_no_topics_give_an_empty_answer():
    world = ApiWorld()
    fields = {"replica_id": -1, "isolation_level": 0}
    assert world.ask("list_offsets", 8, topics=(), **fields).topics == ()


# ---- who asks


def world_with_an_open_batch():
    """Offsets 5 and 6 are appended and not committed."""
    world = world_with_times()
    log = world.log("t")
    batch = read_batch(build_batch([b"v", b"v"]))
    assert isinstance(batch, RecordBatch)
    log.submit(ProduceTicket(batch, -1, lambda _: None, log.now + 10**9))
    log.propose()
    return world


@pytest.mark.parametrize(("replica", "latest"), [(-1, 5), (-2, 7), (2, 7)])
def test_only_consumers_are_told_the_high_watermark(replica, latest):
    """Any other replica id is told the log end (K-LIST-OFFSETS)."""
    world = world_with_an_open_batch()
    assert one(world, LATEST, replica_id=replica) == (0, latest, -1, EPOCH + 2)
    assert one(world, EARLIEST, replica_id=replica) == (0, 0, -1, EPOCH)
    assert one(world, 11, replica_id=replica) == (0, 1, 30, EPOCH)


@pytest.mark.parametrize(("replica", "error"), [(-1, 6), (2, 6), (-2, 0)])
def test_a_debugger_is_answered_by_any_replica_from_its_own_log(replica, error):
    """Measured on a leader that was just deposed (K-LIST-OFFSETS)."""
    world = world_with_an_open_batch()
    world.log("t").follow(EPOCH + 3, leader=2)
    nothing = (6, -1, -1, -1)
    found = (0, 7, -1, EPOCH + 3) if error == 0 else nothing
    assert one(world, LATEST, replica_id=replica) == found
    found = (0, 0, -1, EPOCH) if error == 0 else nothing
    assert one(world, EARLIEST, replica_id=replica) == found


@pytest.mark.parametrize("isolation", [2, 7, -1])
def test_an_isolation_level_that_does_not_exist_fails_every_partition(isolation):
    """Measured on Apache Kafka 4.3.1."""
    world = world_with_times()
    answers = ask(world, part(LATEST), part(EARLIEST, 1), isolation_level=isolation)
    assert answers == [(-1, -1, -1, -1)] * 2
    named = ("no", part(LATEST)), ("t", part(-99), part(-99)), ("t", part(LATEST))
    every = [("no", [(0, -1)]), ("t", [(0, -1), (0, -1)]), ("t", [(0, -1)])]
    assert ask_exactly(world, *named, isolation_level=isolation) == every
    assert one(world, LATEST, isolation_level=1) == (0, 5, -1, EPOCH + 2)
