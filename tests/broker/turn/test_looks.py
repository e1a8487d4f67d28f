"""A batch that is looked into over several turns: who waits behind it, and what becomes of them.

The allowance of the node is used up by hand; each batch gets some of it all the same
(`AT_LEAST`), and a `LookOnTicket` is what the driver puts into the inbox for the next slice.
"""

from __future__ import annotations

import pytest

from broker_core_partition import (
    ELSEWHERE,
    NONE,
    TIMED_OUT,
    PartitionDriver,
    batch,
)
from ottla.broker.errors import ErrorCode
from ottla.broker.turn.looks import AT_LEAST, Looks
from ottla.broker.turn.tickets import LookOnTicket
from ottla.log.build import build_batch, seal
from ottla.log.record_batch import read_batch
from ottla.log.record_walk import SLICE

MANY = 4 * AT_LEAST
SOON = 1000


@pytest.fixture
def driver():
    made = PartitionDriver()
    made.serve()
    looks(made).left = 0
    return made


def looks(driver):
    return driver.machine.settings.looks


def look_on(driver, left=AT_LEAST):
    """The next slice."""
    assert looks(driver).refill() == [driver.machine.settings.group]
    looks(driver).left = left
    driver.submit(LookOnTicket())


def to_the_end(driver):
    while looks(driver).waiting:
        look_on(driver)
    driver.settle()


def send_five(driver):
    return [
        driver.send(batch(7, 0, MANY)),
        driver.send(batch(7, MANY)),
        driver.send(batch(8, 0, 3)),
        driver.send(batch()),
        driver.send(batch(7, MANY + 1)),
    ]


def test_later_batches_wait_behind_it_and_their_order_is_that_of_one_look(driver):
    tickets = send_five(driver)
    driver.settle()
    assert driver.answered() == []
    slices = 0
    while looks(driver).waiting:
        look_on(driver)
        slices += 1
    assert slices >= 3, "it went through at once"
    driver.settle()
    endless = PartitionDriver()
    endless.serve()
    at_once = send_five(endless)
    endless.settle()
    found = [(each.error, each.base_offset) for each in tickets]
    assert found == [(each.error, each.base_offset) for each in at_once]
    assert driver.ranges() == endless.ranges()
    assert set(driver.answered()) == set(tickets)


def test_a_batch_of_few_records_is_judged_at_once_however_little_is_left(driver):
    looks(driver).left = -(10**6)
    tickets = [driver.send(batch(7, 0, 64)), driver.send(batch(8, 0, 100))]
    driver.settle()
    assert driver.answered() == tickets
    assert not looks(driver).waiting


def test_one_that_is_refused_lets_those_behind_it_pass(driver):
    sound = build_batch([b"v"] * MANY)
    broken = read_batch(seal(sound[:-1] + b"\x02"))
    refused, stored = driver.send(broken), driver.send(batch(7, 0))
    to_the_end(driver)
    assert (refused.error, refused.log_start_offset) == (ErrorCode.INVALID_RECORD, 0)
    assert (stored.error, stored.base_offset) == (NONE, 0)


def test_reads_pass(driver):
    driver.send(batch(7, 0, MANY))
    read = driver.fetch(0)
    assert (driver.answered(), read.error) == ([read], NONE)


@pytest.mark.parametrize("end", ["another leads", "another term", "the node ends"])
def test_who_waits_is_told_when_this_node_leads_no_longer(driver, end):
    tickets = [driver.send(batch(7, 0, MANY)), driver.send(batch(8, 0)), driver.send(batch())]
    if end == "another leads":
        driver.follow(2, leader=3)
    elif end == "another term":
        driver.lead(2)
    else:
        driver.close()
    assert driver.answered() == tickets
    assert {each.error for each in tickets} == {ELSEWHERE}
    assert list(driver.machine.admission.open_tickets()) == []
    looks(driver).refill()
    driver.submit(LookOnTicket())
    assert driver.answered() == []


def test_a_time_limit_begins_when_the_batch_is_judged(driver):
    """Batches whose limit had passed were answered at once, without an offset, and stored later: 40
    cheap requests of one peer kept a partition busy for a minute after it had gone."""
    hasty = driver.send(batch(7, 0, MANY), within=SOON)
    behind = driver.send(batch(7, MANY), within=SOON)
    driver.sleep(10 * SOON)
    assert driver.answered() == []
    while looks(driver).waiting:
        look_on(driver)
    assert driver.machine.deadline() == driver.now + SOON
    driver.propose()
    driver.sleep(SOON)
    assert driver.answered() == [hasty, behind]
    assert [(each.error, each.base_offset) for each in (hasty, behind)] == [
        (TIMED_OUT, 0),
        (TIMED_OUT, MANY),
    ]


def test_who_has_no_patience_has_a_millisecond_once_it_is_judged(driver):
    """Kafka answers timeouts of 0 and below with success where one replica is all there is."""
    hasty = driver.send(batch(7, 0, MANY), within=0)
    driver.sleep(SOON)
    to_the_end(driver)
    assert (driver.answered(), hasty.error) == ([hasty], NONE)


def test_what_waited_for_sync_and_for_a_look_enters_in_order():
    driver = PartitionDriver()
    looks(driver).left = 0
    driver.lead(1)
    tickets = [driver.send(batch(7, 0, MANY)), driver.send(batch(7, MANY))]
    while looks(driver).waiting:
        look_on(driver)
    assert driver.answered() == []
    driver.commit()
    driver.settle()
    assert [each.base_offset for each in tickets] == [0, MANY]


def test_who_had_nothing_of_a_slice_goes_first_in_the_next():
    """One huge batch holds up only what comes behind it in its own partition."""
    found = Looks()
    for group, worked in ((1, True), (2, False), (3, True), (4, False)):
        found.wait(group, worked)
    assert found.waiting
    assert found.refill() == [2, 4, 1, 3]
    assert (found.waiting, found.left) == (False, SLICE)
    assert found.refill() == []
