"""The high watermark and min.insync.replicas: what is committed and not shown (K-WATERMARK).

While fewer replicas are in sync than the minimum, the high watermark stands still, also for what
was written with acks 0 and 1 (KAFKA-15583). Raft commits all the same: nothing here is ever lost.
Why, and what is answered meanwhile: docs/decisions/0014-high-watermark-below-the-minimum.md.
"""

from __future__ import annotations

import pytest

from broker_core_partition import LAG, NONE, PartitionDriver, make_partition, outcome
from ottla.broker.errors import ErrorCode
from ottla.raft.types import Entry, EntryKind

AFTER_APPEND = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


@pytest.fixture
def driver():
    """Offsets 0 to 2 are shown; then the followers fall silent for longer than the lag time."""
    made = PartitionDriver(make_partition(min_insync=2))
    made.serve()
    made.produce(7, 0, 3)
    made.settle()
    made.hear_followers()
    made.sleep(LAG + 1)
    made.answered()
    return made


def high(driver):
    assert driver.list_offsets(-1).offset == driver.machine.state.high_watermark
    return driver.machine.state.high_watermark


@pytest.mark.parametrize("acks", [0, 1])
def test_it_stands_still_below_the_minimum(driver, acks):
    ticket = driver.produce(7, 3, acks=acks)
    driver.settle()
    assert outcome(ticket) == (NONE, 3)
    assert high(driver) == 3
    assert driver.machine.applied == len(driver.log)


def test_readers_see_nothing_beyond_it(driver):
    for sequence in (3, 4):
        driver.produce(7, sequence, acks=1)
        driver.settle()
    watch = driver.watch(3)
    fetch, middle = driver.fetch(3), driver.fetch(0)
    assert (fetch.error, fetch.first_index, fetch.high_watermark) == (NONE, 0, 3)
    assert driver.log[middle.last_index - 1].payload.last_offset == 2
    beyond = driver.list_offsets(1)
    assert (watch.done, beyond.index) == (False, 0)
    deleted = driver.delete_records(-1)
    driver.settle()
    assert deleted.log_start_offset == 3


def test_a_follower_that_catches_up_lets_it_go_on(driver):
    driver.produce(7, 3, 2, acks=1)
    driver.settle()
    watch = driver.watch(3)
    end = len(driver.log)
    driver.progress(2, end - 1)
    assert (high(driver), watch.done) == (3, False)
    driver.progress(2, end)
    assert (high(driver), watch.done) == (5, True)
    assert driver.fetch(3).last_index == end


def test_a_follower_that_lacks_nothing_and_is_heard_again_lets_it_go_on(driver):
    """It acknowledges nothing, so nobody looked again, and readers waited for the next record."""
    driver.produce(7, 3, acks=1)
    driver.settle()
    driver.progress(2, len(driver.log))
    driver.sleep(LAG + 1)
    driver.produce(7, 4, acks=1)
    driver.settle()
    end = len(driver.log)
    driver.machine.leadership.follower_progress(2, end, end, driver.now - LAG - 1)
    assert (high(driver), driver.fetch(4).last_index) == (4, 0)
    driver.machine.leadership.follower_contact(2, driver.now)
    assert high(driver) == 5
    assert driver.fetch(4).last_index == end


def test_the_next_commit_with_enough_in_sync_shows_everything_before_it(driver):
    driver.produce(7, 3, acks=1)
    driver.settle()
    driver.progress(2, len(driver.log) - 1)
    driver.produce(7, 4, acks=1)
    driver.propose()
    driver.progress(2, len(driver.log))
    driver.commit()
    assert high(driver) == 5


def test_a_command_alone_shows_it_too(driver):
    driver.produce(7, 3, acks=1)
    driver.settle()
    driver.delete_records(1)
    driver.propose()
    driver.hear_followers()
    driver.commit()
    assert high(driver) == 4


def test_who_asked_for_all_is_told_that_they_were_not_enough(driver):
    driver.hear_followers()
    ticket = driver.produce(7, 3)
    driver.propose()
    driver.sleep(LAG + 1)
    driver.commit()
    assert outcome(ticket) == (AFTER_APPEND, 3)
    assert high(driver) == 3
    driver.hear_followers()
    assert high(driver) == 4


def test_it_never_goes_back_and_a_follower_knows_all_that_is_committed(driver):
    driver.produce(7, 3, acks=1)
    driver.settle()
    driver.follow(2, leader=3)
    assert driver.machine.state.high_watermark == 4
    driver.receive([Entry(len(driver.log) + 1, 2, EntryKind.EMPTY, b"")])
    driver.commit()
    driver.serve(3)
    assert high(driver) == 4


def test_what_a_predecessor_left_is_shown_when_it_commits_however_late(driver):
    """The predecessor may have shown it, and the high watermark never goes back. sim-I43 called it
    wrong, in seed 65 of that time."""
    driver.hear_followers()
    driver.produce(7, 3, acks=1)
    driver.propose()
    driver.follow(2, leader=3)
    driver.lead(3)
    driver.sleep(LAG + 1)
    driver.commit()
    assert high(driver) == 4
    driver.produce(7, 4, acks=1)
    driver.settle()
    assert high(driver) == 4


def test_a_lone_replica_is_enough():
    """The effective minimum is never more than there are replicas."""
    driver = PartitionDriver(make_partition(min_insync=2, voters=(1,)))
    driver.serve()
    driver.sleep(LAG + 1)
    driver.produce(7, 0, acks=1)
    driver.settle()
    assert high(driver) == 1


def test_without_a_minimum_nobody_is_asked():
    driver = PartitionDriver()
    driver.serve()
    driver.sleep(LAG + 1)
    driver.produce(7, 0, acks=1)
    driver.settle()
    assert high(driver) == 1
