"""Profile `kafka-4.3`: acks=all, its copies and readers wait for all replicas in sync (K-ACKS).

A copy has its original's offset when that is replicated, and its own time limit. Below the minimum
in sync, everybody waits. What `reference` does instead: `test_acks.py` and `test_visible.py`.
"""

from __future__ import annotations

import pytest

from broker_core_partition import (
    ELSEWHERE,
    LAG,
    NONE,
    TIMED_OUT,
    PartitionDriver,
    make_partition,
    outcome,
)
from ottla.broker.errors import ErrorCode

SECOND = 1_000_000
BEFORE = ErrorCode.NOT_ENOUGH_REPLICAS


def serving(min_insync=1, profile="kafka-4.3"):
    """Offset 0 is shown; both followers have it."""
    made = PartitionDriver(make_partition(min_insync=min_insync, profile=profile))
    made.serve()
    made.produce(7, 0)
    made.settle()
    made.hear_followers()
    assert made.machine.state.high_watermark == 1
    made.answered()
    return made


@pytest.fixture
def driver():
    return serving()


def high(driver):
    return driver.machine.state.high_watermark


def test_a_majority_is_not_enough(driver):
    ticket, watch = driver.produce(7, 1, 2), driver.watch(1)
    driver.settle()
    driver.progress(2, len(driver.log))
    assert (ticket.done, watch.done, high(driver)) == (False, False, 1)
    driver.progress(3, len(driver.log))
    assert (outcome(ticket), watch.done, high(driver)) == ((NONE, 1), True, 3)


def test_the_reference_asks_for_no_more_than_a_majority():
    driver = serving(profile="reference")
    ticket = driver.produce(7, 1)
    driver.settle()
    assert outcome(ticket) == (NONE, 1)


def test_readers_see_as_far_as_all_replicas_in_sync_are(driver):
    for sequence in (1, 2, 3):
        driver.produce(7, sequence)
        driver.settle()
    end = len(driver.log)
    driver.progress(2, end)
    driver.progress(3, end - 1)
    assert high(driver) == 3
    assert driver.fetch(1).last_index == end - 1
    driver.progress(3, end)
    assert high(driver) == 4


@pytest.mark.parametrize("acks", [0, 1])
def test_other_acks_do_not_wait_and_readers_do(driver, acks):
    ticket = driver.produce(7, 1, acks=acks)
    driver.settle()
    assert (outcome(ticket), high(driver)) == ((NONE, 1), 1)


def test_a_replica_that_falls_out_of_sync_is_not_waited_for(driver):
    """Nothing else happens: the leader wakes up by itself."""
    ticket = driver.produce(7, 1)
    driver.settle()
    driver.progress(2, len(driver.log))
    silent_since = driver.now
    driver.sleep(LAG - SECOND)
    driver.progress(2, len(driver.log))
    assert not ticket.done
    due = driver.machine.deadline()
    assert due is not None
    assert due <= silent_since + LAG + 1
    driver.sleep(SECOND + 1)
    assert (outcome(ticket), high(driver)) == ((NONE, 1), 2)


def test_when_the_last_follower_falls_out_what_is_committed_is_shown(driver):
    ticket = driver.produce(7, 1)
    driver.settle()
    driver.sleep(LAG + 1)
    assert (outcome(ticket), high(driver)) == ((NONE, 1), 2)


def test_below_the_minimum_it_waits_until_its_time_is_up():
    """The reference answers NOT_ENOUGH_REPLICAS_AFTER_APPEND as soon as it is committed."""
    driver = serving(min_insync=2)
    ticket = driver.produce(7, 1, within=LAG + 5 * SECOND)
    driver.propose()
    driver.sleep(LAG + SECOND)
    driver.commit()
    refused = driver.produce(7, 2)
    driver.settle()
    assert (ticket.done, refused.error, high(driver)) == (False, BEFORE, 1)
    driver.sleep(4 * SECOND)
    assert (outcome(ticket), high(driver)) == ((TIMED_OUT, 1), 1)


def test_a_copy_waits_for_the_offset_of_its_original(driver):
    """In flight when it comes, or committed and not shown yet: the answer is the same."""
    original = driver.produce(7, 1)
    driver.propose()
    parked = driver.produce(7, 1)
    driver.commit()
    late, hurried = driver.produce(7, 1), driver.produce(7, 1, acks=1)
    assert outcome(hurried) == (NONE, 1)
    assert not (original.done)
    assert not (parked.done)
    assert not (late.done)
    driver.hear_followers()
    assert [outcome(each) for each in (original, parked, late)] == [(NONE, 1)] * 3
    assert outcome(driver.produce(7, 1)) == (NONE, 1)


def test_a_copy_has_its_own_time_limit_and_the_offset(driver):
    driver.produce(7, 1)
    driver.settle()
    copy = driver.produce(7, 1, within=SECOND)
    driver.sleep(SECOND + 1)
    assert outcome(copy) == (TIMED_OUT, 1)


def test_who_waits_when_the_leadership_ends_is_told_so_with_the_offset(driver):
    original = driver.produce(7, 1)
    driver.settle()
    copy = driver.produce(7, 1)
    driver.follow(2, leader=2)
    assert [outcome(each) for each in (original, copy)] == [(ELSEWHERE, 1)] * 2
    assert high(driver) == 2, "a follower holds nothing back"


def test_what_a_snapshot_has_replaced_is_not_held(driver):
    """The command that moved the log start is not on every replica; its entry is gone, so there is
    nothing left to look up."""
    driver.produce(7, 1)
    driver.settle()
    driver.hear_followers()
    driver.delete_records(-1)
    driver.settle()
    assert driver.compactions
    driver.produce(7, 2)
    driver.settle()
    assert high(driver) == 2
    driver.hear_followers()
    assert high(driver) == 3


def test_the_leader_alone_is_not_enough_as_it_is_in_kafka(driver):
    """Kafka's leader would go on alone with a minimum of 1; Raft has no commit without a
    majority."""
    ticket = driver.produce(7, 1, within=LAG + SECOND)
    driver.propose()
    driver.sleep(LAG + 1)
    assert driver.machine.state.in_sync.in_sync(driver.now) == (1,)
    assert not ticket.done
    driver.sleep(SECOND)
    assert outcome(ticket) == (TIMED_OUT, 1)


def test_a_new_leader_serves_nobody_before_its_first_entry_is_committed(driver):
    """Kafka's new leader serves at once, from its own log."""
    driver.follow(2, leader=2)
    driver.lead(3)
    ticket, fetch = driver.produce(7, 1, acks=1), driver.fetch(0)
    assert driver.propose() == []
    assert not (ticket.done)
    assert not (fetch.done)
    driver.settle()
    assert (outcome(ticket), fetch.high_watermark) == ((NONE, 1), 1)


def test_a_new_leader_shows_what_its_predecessors_left(driver):
    driver.follow(2, leader=2)
    driver.lead(3)
    driver.commit()
    driver.sleep(LAG)
    assert high(driver) == 1
    assert driver.machine.leadership.synced
