"""Which producers are forgotten: by the leader's clock, or by the times of records (K-EXPIRY)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broker_core_partition import EXPIRY, NONE, PartitionDriver, batch, make_partition, outcome
from ottla.broker.partition.expiry import KAFKAS_PERIOD
from ottla.broker.partition.partition import Partition

DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000
EXPIRY_MS = EXPIRY // 1000


def serving(profile):
    made = PartitionDriver(make_partition(profile=profile))
    made.serve()
    return made


def write(driver, producer_id, sequence, at):
    """Write a batch with this record time; the wall clock is at `NOW_MS`."""
    ticket = driver.send(batch(producer_id, sequence, at=at), acks=1, wall_ms=NOW_MS)
    driver.settle()
    driver.hear_followers()
    return outcome(ticket)


def known(driver):
    return sorted(driver.machine.table.describe()["producers"])


def check(driver):
    """The next look for idle producers, and what comes of it."""
    driver.sleep(driver.machine.expiry.period)
    driver.settle()
    driver.hear_followers()


def test_by_timestamp_a_producer_of_old_records_is_idle_at_once():
    driver = serving("kafka-4.3")
    write(driver, 7, 0, NOW_MS - EXPIRY_MS)
    write(driver, 8, 0, NOW_MS)
    check(driver)
    assert known(driver) == [8]


def test_by_timestamp_a_producer_of_records_from_the_future_is_kept():
    driver = serving("kafka-4.3")
    write(driver, 7, 0, NOW_MS + EXPIRY_MS)
    write(driver, 8, 0, NOW_MS)
    for _ in range(5):
        check(driver)
    assert known(driver) == [7]


def test_after_that_any_sequence_begins_anew_and_a_copy_is_stored_again():
    driver = serving("kafka-4.3")
    assert write(driver, 7, 0, NOW_MS - EXPIRY_MS) == (NONE, 0)
    check(driver)
    assert write(driver, 7, 0, NOW_MS) == (NONE, 1)
    assert write(driver, 9, 5, NOW_MS) == (NONE, 2)


def test_the_reference_goes_by_its_own_clock():
    driver = serving("reference")
    write(driver, 7, 0, NOW_MS - 2 * EXPIRY_MS)
    check(driver)
    assert known(driver) == [7]


def test_nobody_is_forgotten_by_a_leader_that_does_not_know_the_time():
    driver = serving("kafka-4.3")
    write(driver, 7, 0, NOW_MS - EXPIRY_MS)
    driver.follow(2, leader=2)
    driver.machine.state.clock = None  # another node
    driver.lead(3)
    driver.commit()
    check(driver)
    assert known(driver) == [7]
    write(driver, 8, 0, NOW_MS)
    check(driver)
    assert known(driver) == [8]


@pytest.mark.parametrize(("profile", "period"), [("kafka-4.3", KAFKAS_PERIOD), ("reference", None)])
def test_kafka_looks_every_ten_minutes(profile, period):
    made = make_partition(profile=profile)
    day = replace(made.settings, producer_expiry=DAY_MS * 1000)
    assert Partition(day, made.state.in_sync).expiry.period == (period or DAY_MS * 250)
