"""LogAppendTime: the time a batch is stored with, and the one its copies are answered with.

Expectations from K-FIELDS and K-TIMES. The wall clock is handed in with each ticket; batches carry
times of their own, which such a topic overwrites.
"""

from __future__ import annotations

import pytest

from broker_core_partition import FULL, NONE, PartitionDriver, batch, make_partition, outcome
from ottla.log.inspection import RecordRules
from ottla.log.record_batch import crc_matches

FLAG = 8


@pytest.fixture
def driver():
    made = PartitionDriver(make_partition(records=RecordRules(append_time=True)))
    made.serve()
    return made


def times(driver):
    return [each.max_timestamp for each in driver.stored()]


def test_a_batch_has_the_time_at_which_it_came(driver):
    ticket = driver.send(batch(at=77), wall_ms=5000)
    driver.settle()
    (stored,) = driver.stored()
    assert (outcome(ticket), ticket.log_append_time) == ((NONE, 0), 5000)
    assert (stored.max_timestamp, stored.attributes, stored.base_timestamp) == (5000, FLAG, 77)
    assert crc_matches(stored)


def test_times_never_fall_within_a_leadership(driver):
    """Not when the clock is set back, nor when a producer's mutex lets a later batch pass."""
    driver.propose(inflight=FULL)
    for wall_ms in (5000, 4000, 6000):
        driver.send(batch(), wall_ms=wall_ms)
    driver.settle()
    assert times(driver) == [5000, 5000, 6000]


@pytest.mark.parametrize("acks", [-1, 1])
@pytest.mark.parametrize("enqueued", [False, True])
def test_a_parked_copy_is_answered_with_the_time_that_is_stored(driver, acks, enqueued):
    original = driver.send(batch(7, 0, at=77), wall_ms=5000)
    if enqueued:
        driver.propose()
    copy = driver.send(batch(7, 0, at=78), acks=acks, wall_ms=6000)
    driver.settle()
    assert set(driver.answered()) == {original, copy}
    assert (outcome(copy), copy.log_append_time) == ((NONE, 0), 5000)
    late = driver.send(batch(7, 0, at=79), wall_ms=7000)
    assert (outcome(late), late.log_append_time) == ((NONE, 0), 5000)


@pytest.mark.parametrize("acks", [-1, 1])
@pytest.mark.parametrize("enqueued", [False, True])
def test_also_where_the_time_is_the_producers(acks, enqueued):
    """The original hears -1, every copy the stored time (K-FIELDS)."""
    driver = PartitionDriver()
    driver.serve()
    original = driver.send(batch(7, 0, at=77))
    if enqueued:
        driver.propose()
    copy = driver.send(batch(7, 0, at=78), acks=acks)
    driver.settle()
    assert (original.log_append_time, copy.log_append_time) == (-1, 77)


def test_a_refused_place_leaves_no_time_behind(driver):
    first = driver.send(batch(7, 0), wall_ms=5000)
    driver.propose(refuse=True)
    assert first.done
    again = driver.send(batch(7, 0), wall_ms=5500)
    driver.settle()
    assert (outcome(again), again.log_append_time) == ((NONE, 0), 5500)
    assert times(driver) == [5500]
