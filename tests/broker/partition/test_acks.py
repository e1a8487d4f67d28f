"""When a produce request is answered, and with what: acks, time limits, min.insync.replicas.

Expectations from promise-K1 and K2, K-ACKS, K-WATERMARK and K-CODES. `PartitionDriver` plays
consensus: `propose` appends, `commit` commits, `sleep` lets time limits pass.
"""

from __future__ import annotations

import pytest

from broker_core_partition import (
    ELSEWHERE,
    FULL,
    LAG,
    NONE,
    TIMED_OUT,
    PartitionDriver,
    batch,
    make_partition,
    outcome,
)
from ottla.broker.errors import ErrorCode
from ottla.log.record_batch import read_beginning

SOON = 1000


@pytest.fixture
def driver():
    made = PartitionDriver()
    made.serve()
    return made


# ---- acks


@pytest.mark.parametrize("producer_id", [-1, 7])
def test_acks_all_is_answered_by_the_commit(driver, producer_id):
    sequence = 0 if producer_id >= 0 else -1
    ticket = driver.produce(producer_id, sequence, 3)
    driver.propose()
    assert driver.answered() == []
    driver.commit()
    assert driver.answered() == [ticket]
    assert (*outcome(ticket), ticket.log_start_offset) == (NONE, 0, 0)


@pytest.mark.parametrize("acks", [0, 1])
def test_acks_0_and_1_are_answered_after_the_append_not_before_and_not_by_the_commit(driver, acks):
    ticket = driver.produce(7, 0, acks=acks)
    assert driver.machine.outbox.now == driver.machine.outbox.after_append == []
    driver.propose()
    assert driver.machine.outbox.after_append == [ticket]
    assert driver.machine.outbox.now == []
    assert driver.answered() == [ticket]
    assert outcome(ticket) == (NONE, 0)
    assert driver.machine.state.high_watermark == 0
    driver.commit()
    assert driver.answered() == []


def test_acks_1_answers_a_copy_of_what_is_in_the_log_at_once_and_acks_all_waits(driver):
    original = driver.produce(7, 0)
    driver.propose()
    quick, slow = driver.produce(7, 0, acks=1), driver.produce(7, 0)
    assert driver.answered() == [quick]
    assert outcome(quick) == (NONE, 0)
    driver.commit()
    assert set(driver.answered()) == {original, slow}
    assert outcome(slow) == outcome(original) == (NONE, 0)
    assert driver.ranges() == [(7, 0)]


@pytest.mark.parametrize("original_acks", [-1, 1])
@pytest.mark.parametrize("acks", [0, 1])
def test_a_copy_that_came_before_its_originals_place_is_answered_with_it(
    driver, original_acks, acks
):
    """Both came in one turn: the copy waited for the commit, though its client asked for less."""
    original = driver.produce(7, 0, acks=original_acks)
    copy, slow = driver.produce(7, 0, acks=acks), driver.produce(7, 0)
    assert driver.answered() == []
    driver.propose()
    assert driver.machine.outbox.now == []
    assert copy in driver.machine.outbox.after_append
    assert set(driver.answered()) == {copy} | ({original} if original_acks == 1 else set())
    assert (*outcome(copy), copy.log_start_offset) == (NONE, 0, 0)
    driver.commit()
    assert set(driver.answered()) == {slow} | ({original} if original_acks == -1 else set())
    assert driver.ranges() == [(7, 0)]


def test_a_copy_of_what_never_gets_its_place_shares_the_refusal(driver):
    original, copy = driver.produce(7, 0, acks=1), driver.produce(7, 0, acks=1)
    driver.propose(refuse=True)
    assert set(driver.answered()) == {original, copy}
    assert outcome(original) == outcome(copy) == (ELSEWHERE, -1)


# ---- time limits


def test_an_overdue_batch_in_the_log_answers_its_real_offset_and_stays(driver):
    driver.produce(7, 0, 5)
    driver.settle()
    driver.answered()
    ticket = driver.produce(7, 5, within=SOON)
    driver.propose()
    driver.sleep(SOON)
    assert driver.answered() == [ticket]
    assert (*outcome(ticket), ticket.log_start_offset) == (TIMED_OUT, 5, 0)
    driver.commit()
    assert driver.answered() == []
    again = driver.produce(7, 5)
    assert outcome(again) == (NONE, 5)


def test_an_overdue_copy_of_a_batch_in_flight_answers_the_originals_offset(driver):
    driver.produce(-1, -1, 4)
    original = driver.produce(7, 0)
    driver.propose()
    parked = driver.produce(7, 0, within=SOON)
    assert driver.answered() == []
    assert driver.machine.deadline() == driver.now + SOON
    driver.sleep(SOON)
    assert driver.answered() == [parked]
    assert outcome(parked) == (TIMED_OUT, 4)
    driver.commit()
    assert original in driver.answered()
    assert outcome(parked) == (TIMED_OUT, 4)


def test_time_limits_in_the_queue_neither_drop_nor_reorder(driver):
    driver.propose(inflight=FULL)
    late, other, behind = (
        driver.produce(7, 0, within=SOON),
        driver.produce(8, 0),
        driver.produce(7, 1, within=SOON),
    )
    assert driver.propose(inflight=FULL) == []
    driver.sleep(SOON)
    assert set(driver.answered()) == {late, behind}
    assert outcome(late)[0] is outcome(behind)[0] is TIMED_OUT
    last = driver.produce(7, 2)
    driver.settle()
    assert driver.ranges() == [(7, 0), (8, 0), (7, 1), (7, 2)]
    assert driver.answered() == [other, last]


@pytest.mark.parametrize("within", [0, -5])
def test_no_patience_at_all_times_out_at_once_and_stores(driver, within):
    ticket = driver.produce(7, 0, within=within)
    driver.propose()
    driver.sleep(0)
    assert outcome(ticket) == (TIMED_OUT, 0)
    driver.commit()
    assert driver.machine.state.high_watermark == 1


def test_no_deadline_stays_behind_when_everything_is_answered(driver):
    before = driver.machine.deadline()
    driver.produce(7, 0, within=SOON)
    driver.settle()
    driver.sleep(SOON)
    assert driver.machine.deadline() == before


# ---- min.insync.replicas


def lone_leader(minimum=2):
    driver = PartitionDriver(make_partition(min_insync=minimum))
    driver.serve()
    driver.hear_followers()
    return driver


def test_below_the_minimum_nothing_is_stored_with_acks_all():
    driver = lone_leader()
    driver.sleep(LAG + 1)
    refused, taken = driver.produce(7, 0), driver.produce(-1, -1, acks=1)
    driver.settle()
    assert outcome(refused)[0] is ErrorCode.NOT_ENOUGH_REPLICAS
    assert refused.log_start_offset == 0
    assert outcome(taken) == (NONE, 0)
    assert driver.ranges() == [(-1, -1)]


def test_shrunk_after_the_append_the_record_is_stored_and_the_client_told():
    driver = lone_leader()
    original = driver.produce(7, 0)
    driver.propose()
    copy = driver.produce(7, 0)
    driver.sleep(LAG + 1)
    driver.commit()
    for ticket in (original, copy):
        assert outcome(ticket) == (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 0)
        assert ticket.log_start_offset == 0
    assert driver.ranges() == [(7, 0)]
    assert driver.machine.applied == len(driver.log)


def test_who_was_told_of_a_timeout_is_not_told_anything_else():
    driver = lone_leader()
    original = driver.produce(7, 0, within=SOON)
    driver.propose()
    copy = driver.produce(7, 0, within=SOON)
    driver.sleep(SOON)
    assert set(driver.answered()) == {original, copy}
    driver.sleep(LAG)
    driver.commit()
    assert driver.answered() == []
    assert outcome(original) == outcome(copy) == (TIMED_OUT, 0)


def test_the_minimum_is_never_more_than_there_are_replicas():
    driver = PartitionDriver(make_partition(min_insync=5, voters=(1,)))
    driver.serve()
    driver.sleep(LAG + 1)
    ticket = driver.produce(7, 0)
    driver.settle()
    assert outcome(ticket) == (NONE, 0)


def test_the_minimum_is_checked_before_the_duplicate_window():
    driver = lone_leader()
    driver.produce(7, 0)
    driver.settle()
    driver.sleep(LAG + 1)
    assert outcome(driver.produce(7, 0))[0] is ErrorCode.NOT_ENOUGH_REPLICAS


def test_a_refused_proposal_does_not_count_as_the_log_end_followers_must_reach():
    driver = lone_leader()
    driver.produce(7, 0)
    driver.propose(refuse=True)
    for _ in range(5):
        driver.sleep(LAG)
        for follower in (2, 3):
            driver.machine.leadership.follower_contact(follower, driver.now)
    ticket = driver.produce(7, 0)
    driver.settle()
    assert outcome(ticket) == (NONE, 0)


# ---- leadership lost while waiting


def test_who_waits_for_the_commit_hears_where_it_lay(driver):
    original = driver.produce(7, 0, 2)
    driver.propose()
    copy = driver.produce(7, 0, 2)
    driver.follow(2, leader=3)
    assert set(driver.answered()) == {original, copy}
    for ticket in (original, copy):
        assert (*outcome(ticket), ticket.log_start_offset) == (ELSEWHERE, 0, 0)
        assert (ticket.leader, ticket.leader_epoch) == (3, 2)


def test_who_never_reached_the_log_hears_no_offset(driver):
    ticket = driver.produce(7, 0)
    driver.follow(2, leader=3)
    assert (*outcome(ticket), ticket.log_start_offset) == (ELSEWHERE, -1, -1)
    late = driver.produce(7, 0)
    assert (*outcome(late), late.leader) == (ELSEWHERE, -1, 3)


def test_a_malformed_batch_is_refused_before_it_has_a_place(driver):
    bad = batch(7, 0)
    bad.crc ^= 1
    ticket = driver.send(bad)
    assert outcome(ticket) == (ErrorCode.CORRUPT_MESSAGE, -1)
    driver.settle()
    assert driver.stored() == []


@pytest.mark.parametrize(
    ("base_offset", "error", "start"),
    [(0, ErrorCode.CORRUPT_MESSAGE, -1), (1, ErrorCode.INVALID_RECORD, 0)],
)
def test_a_batch_that_ends_inside_its_header_is_refused_behind_its_base_offset(
    driver, base_offset, error, start
):
    """In the order of Apache Kafka 4.3.1; it used to be the first thing that was looked at."""
    short = base_offset.to_bytes(8, "big") + (39).to_bytes(4, "big") + bytes(4) + b"\2" + bytes(34)
    ticket = driver.send(read_beginning(short))
    assert (*outcome(ticket), ticket.log_start_offset) == (error, -1, start)
    driver.settle()
    assert driver.stored() == []
