"""Who is remembered: room in the table, expiry, and both as decisions in the log.

Expectations (docs/decisions/0011; RP-EVICTION): state is bounded, nobody
with a request in flight is forgotten, and every replica forgets the same producers at the same
index.
"""

from __future__ import annotations

import msgpack
import pytest

from broker_core_partition import (
    EXPIRY,
    FULL,
    NONE,
    PartitionDriver,
    make_partition,
    outcome,
)
from ottla.broker.errors import ErrorCode
from ottla.raft.types import EntryKind


def small(room=2):
    driver = PartitionDriver(make_partition(max_producers=room))
    driver.serve()
    return driver


def commands(driver):
    found = [each for each in driver.log if each.kind is EntryKind.COMMAND]
    return [msgpack.unpackb(each.payload) for each in found]


# ---- room


def test_the_longest_idle_makes_room_by_a_decision_that_precedes_the_batch():
    driver = small()
    for producer_id in (7, 8, 9):
        driver.produce(producer_id, 0)
        driver.settle()
    assert commands(driver) == [["expire", [7]]]
    assert driver.ranges() == [(7, 0), (8, 0), (9, 0)]
    kinds = [each.kind for each in driver.log]
    assert kinds[-2:] == [EntryKind.COMMAND, EntryKind.BATCH]
    assert sorted(driver.machine.table.describe()["producers"]) == [8, 9]


def test_a_table_full_of_requests_in_flight_refuses_and_stores_nothing():
    driver = small()
    busy = [driver.produce(7, 0), driver.produce(8, 0)]
    driver.propose()
    refused = driver.produce(9, 0)
    assert outcome(refused)[0] is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert refused.log_start_offset == 0
    driver.settle()
    assert driver.ranges() == [(7, 0), (8, 0)]
    assert [outcome(each) for each in busy] == [(NONE, 0), (NONE, 1)]
    again = driver.produce(9, 0)
    driver.settle()
    assert outcome(again) == (NONE, 2)


def test_who_was_evicted_is_unknown_and_starts_anew():
    driver = small()
    for producer_id in (7, 8, 9):
        driver.produce(producer_id, 0)
        driver.settle()
    back = driver.produce(7, 1)
    driver.settle()
    assert outcome(back) == (NONE, 3)
    assert commands(driver)[1:] == [["expire", [8]]]


def test_an_eviction_that_never_reached_the_log_has_not_happened():
    driver = small()
    for producer_id in (7, 8):
        driver.produce(producer_id, 0)
        driver.settle()
    driver.produce(9, 0)
    driver.propose(refuse=True)
    assert commands(driver) == []
    copy = driver.produce(7, 0)
    driver.settle()
    assert outcome(copy) == (NONE, 0)
    assert driver.ranges() == [(7, 0), (8, 0)]


def test_nor_has_one_that_waits_in_the_queue_when_the_proposal_before_it_is_refused():
    driver = small()
    for producer_id in (7, 8):
        driver.produce(producer_id, 0)
        driver.settle()
    driver.produce(-1)
    driver.propose(inflight=FULL)
    driver.produce(9, 0)
    driver.propose(refuse=True)
    assert outcome(driver.produce(7, 0)) == (NONE, 0)
    fresh = driver.produce(9, 0)
    driver.settle()
    assert outcome(fresh) == (NONE, 2)
    assert commands(driver) == [["expire", [7]]]


def test_an_eviction_under_way_ends_with_its_leadership():
    driver = small()
    for producer_id in (7, 8):
        driver.produce(producer_id, 0)
        driver.settle()
    driver.produce(9, 0)
    driver.follow(2, leader=3)
    driver.serve(3)
    assert outcome(driver.produce(7, 0)) == (NONE, 0)


# ---- expiry


def test_idle_producers_expire_by_a_decision_in_the_log_and_busy_ones_do_not():
    driver = PartitionDriver()
    driver.serve()
    driver.produce(7, 0)
    driver.produce(8, 0)
    driver.settle()
    driver.sleep(EXPIRY // 2)
    driver.produce(8, 1)
    driver.settle()
    waits = driver.produce(7, 1, within=EXPIRY)
    driver.sleep(EXPIRY // 2 + 1)
    assert driver.propose()
    assert commands(driver) == []
    driver.settle()
    assert outcome(waits) == (NONE, 3)
    driver.sleep(EXPIRY // 2 + 1)
    driver.settle()
    assert commands(driver) == [["expire", [8]]]
    assert sorted(driver.machine.table.describe()["producers"]) == [7]


@pytest.mark.parametrize("epoch", [-1, 0, 32_767])
@pytest.mark.parametrize("full", [False, True])
def test_a_session_of_any_epoch_is_forgotten_where_epochs_are_apart(full, epoch):
    """The log refused the decision for epoch -1: the session stayed, and was unknown to its leader,
    which stored every retry again."""
    room = 1 if full else 10
    driver = PartitionDriver(make_partition(profile="redpanda-5157", max_producers=room))
    driver.serve()
    driver.produce(7, 0, epoch=epoch)
    driver.settle()
    if full:
        driver.produce(8, 0)
    else:
        driver.sleep(EXPIRY + 1)
    driver.settle()
    assert commands(driver) == [["expire", [[7, epoch]]]]
    table = driver.machine.table
    assert table.describe()["producers"].keys() == ({"8/0"} if full else set())
    driver.settle()
    stored = driver.ranges()
    retried = [driver.produce(7, 0, epoch=epoch) for _ in range(2)]
    driver.settle()
    assert outcome(retried[0]) == outcome(retried[1])
    assert len(driver.ranges()) == len(stored) + 1


def test_a_follower_expires_nobody_by_its_own_clock():
    driver = PartitionDriver()
    driver.serve()
    driver.produce(7, 0)
    driver.settle()
    driver.follow(2, leader=3)
    driver.sleep(10 * EXPIRY)
    assert driver.propose() == []
    assert len(driver.machine.table) == 1


def test_a_follower_forgets_who_the_log_says():
    driver, other = small(), PartitionDriver(make_partition(max_producers=2))
    for producer_id in (7, 8, 9):
        driver.produce(producer_id, 0)
        driver.settle()
    other.follow(1, leader=1)
    other.receive(driver.log)
    other.commit()
    assert other.machine.table.digest() == driver.machine.table.digest()
    assert sorted(other.machine.table.describe()["producers"]) == [8, 9]


@pytest.mark.parametrize("idle_before", [0, EXPIRY // 2])
def test_idle_time_starts_at_the_restore_not_at_the_beginning_of_time(idle_before):
    """The snapshot says nothing of clocks: idle for as long as this replica knows."""
    first = PartitionDriver()
    first.serve()
    for sequence in range(3):
        first.produce(7, sequence)
        first.settle()
    first.sleep(idle_before)
    first.delete_records(-1)
    first.settle()
    driver = PartitionDriver()
    driver.now = 100 * EXPIRY
    driver.log = list(first.log)
    driver.restore(first.compactions[-1])
    driver.lead(2)
    driver.commit()
    driver.sleep(EXPIRY - 1)
    driver.settle()
    assert commands(driver)[1:] == [], "expired though nobody knows that it was idle so long"
    driver.sleep(EXPIRY)
    driver.settle()
    assert commands(driver)[1:] == [["expire", [7]]]


# ---- an epoch of -1


@pytest.mark.parametrize(
    ("epoch", "stored", "then", "after"),
    [
        (-1, NONE, 0, NONE),
        (-1, NONE, -1, NONE),
        (0, NONE, -1, ErrorCode.INVALID_PRODUCER_EPOCH),
        (-2, ErrorCode.INVALID_PRODUCER_EPOCH, -1, NONE),
        (-5, ErrorCode.INVALID_PRODUCER_EPOCH, 0, NONE),
    ],
)
def test_a_producer_id_without_an_epoch_is_taken_and_fenced_by_any_epoch(
    epoch, stored, then, after
):
    """Measured on Apache Kafka 4.3.1 (K-RULES); the answer names the log start."""
    driver = PartitionDriver()
    driver.serve()
    first = driver.produce(7, 0, epoch=epoch)
    driver.settle()
    assert (outcome(first)[0], first.log_start_offset) == (stored, 0)
    second = driver.produce(7, 0, 2, epoch=then)
    driver.settle()
    assert (outcome(second)[0], second.log_start_offset) == (after, 0)


def test_a_table_ahead_of_a_log_that_lost_its_end_goes_back_to_it():
    """With the flush policy *off*: a follower takes a snapshot, all nodes lose what they had not
    synced, and it leads. It answered retries with places in the log that were lost, and what was
    new met an assertion: its index was known already."""
    first = PartitionDriver()
    first.serve()
    for producer_id, sequence in ((7, 0), (7, 1), (7, 2), (7, 3), (8, 0)):
        first.produce(producer_id, sequence)
        first.settle()
    first.delete_records(1)
    first.settle()
    (snapshot,) = first.compactions
    assert snapshot.index == 2
    driver = PartitionDriver()
    driver.log = first.log[:3]
    driver.restore(snapshot)
    driver.machine.appended(driver.log[2:])
    assert driver.machine.table.applied_index > len(driver.log) + 2
    driver.serve(term=2)
    again, resent, other = driver.produce(7, 1), driver.produce(7, 2), driver.produce(8, 0)
    driver.settle()
    assert [outcome(each) for each in (again, resent, other)] == [(NONE, 1), (NONE, 2), (NONE, 3)]
    assert driver.ranges()[2:] == [(7, 2), (8, 0)]
