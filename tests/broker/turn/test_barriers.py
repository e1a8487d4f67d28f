"""Answers that a leader gives only when it is proved that it leads.

Here is what readers and DeleteRecords ask of offsets above the log. Gaps are in
`tests/broker/partition/test_admission_order.py`.

A leader that was paused past its term knows less than the clients that went to its successor
meanwhile. Had it answered OFFSET_OUT_OF_RANGE, a consumer would have jumped to the log start.
"""

from __future__ import annotations

import pytest

from broker_core_partition import ELSEWHERE, GAP, NONE, PartitionDriver, outcome
from broker_core_replicas import GROUP, NOW, serving, synced
from ottla.broker.errors import ErrorCode
from ottla.broker.turn.tickets import ANY_EPOCH, FetchTicket
from ottla.raft.messages import Heartbeat

SOON = 1000
OUT_OF_RANGE = ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.fixture
def driver():
    """Offsets 0 to 5 are committed, 6 to 9 appended."""
    made = PartitionDriver()
    made.serve()
    made.produce(7, 0, 6)
    made.settle()
    made.produce(7, 6, 4)
    made.propose()
    made.answered()
    return made


def test_an_offset_above_the_log_end_is_out_of_range_for_a_leader_that_is_proved_to_lead(driver):
    fetch = driver.fetch(11)
    assert driver.answered() == []
    driver.barrier(confirmed=True)
    assert (driver.answered(), fetch.error) == ([fetch], OUT_OF_RANGE)


def test_and_is_for_another_leader_to_judge_where_the_proof_fails(driver):
    fetch = driver.fetch(11)
    driver.barrier(confirmed=False)
    assert (driver.answered(), fetch.error) == ([fetch], ELSEWHERE)


@pytest.mark.parametrize("offset", [-1, 0, 6, 10])
def test_what_no_other_leader_could_see_otherwise_is_answered_at_once(driver, offset):
    fetch = driver.fetch(offset)
    assert fetch.done
    assert fetch.error is (OUT_OF_RANGE if offset < 0 else NONE)
    assert not driver.machine.leadership.barriers.found


def test_below_the_log_start_no_proof_is_needed(driver):
    driver.delete_records(4)
    driver.settle()
    assert driver.fetch(3).error is OUT_OF_RANGE


def test_an_offset_that_is_written_meanwhile_is_in_range(driver):
    fetch = driver.fetch(11)
    assert driver.machine.leadership.take_barriers() == 1
    driver.produce(7, 10, 1)
    driver.settle()
    driver.machine.leadership.barriers.ended(True)
    assert (fetch.done, fetch.error, fetch.first_index, fetch.high_watermark) == (True, NONE, 0, 11)


def test_gaps_and_readers_share_a_barrier_and_are_answered_in_their_order(driver):
    gap, fetch = driver.produce(7, 20), driver.fetch(11)
    assert len(driver.machine.leadership.barriers.found) == 2
    assert driver.machine.leadership.take_barriers() == 1
    later = driver.fetch(12)
    assert driver.machine.leadership.take_barriers() == 1
    driver.machine.leadership.barriers.ended(True)
    assert driver.answered() == [gap, fetch]
    assert (outcome(gap)[0], fetch.error) == (GAP, OUT_OF_RANGE)
    driver.machine.leadership.barriers.ended(True)
    assert driver.answered() == [later]


@pytest.mark.parametrize(("confirmed", "error"), [(True, GAP), (False, ELSEWHERE)])
def test_a_new_epoch_whose_beginning_is_missing_waits_for_the_proof(driver, confirmed, error):
    ticket = driver.produce(7, 3, epoch=1)
    assert not ticket.done
    driver.barrier(confirmed=confirmed)
    assert (ticket.done, ticket.error) == (True, error)


def test_a_reader_without_patience_still_waits_for_the_proof(driver):
    """With max_wait 0 it would else be sent elsewhere, to nobody, again and again."""
    fetch = driver.fetch(11, within=0, proof_within=SOON)
    driver.sleep(0)
    assert driver.answered() == []
    assert driver.machine.deadline() == driver.now + SOON
    driver.barrier(confirmed=True)
    assert (driver.answered(), fetch.error) == ([fetch], OUT_OF_RANGE)


@pytest.mark.parametrize("asked", [0, 1])
def test_a_proof_that_takes_too_long_sends_the_reader_elsewhere(driver, asked):
    fetch = driver.fetch(11, within=SOON)
    for _ in range(asked):
        assert driver.machine.leadership.take_barriers() == 1
    driver.sleep(SOON)
    assert (driver.answered(), fetch.error) == ([fetch], ELSEWHERE)
    for _ in range(asked):
        driver.machine.leadership.barriers.ended(True)
    assert driver.answered() == []


@pytest.mark.parametrize("asked", [0, 1])
def test_who_waits_for_the_proof_hears_that_leadership_is_lost(driver, asked):
    fetch = driver.fetch(11)
    for _ in range(asked):
        assert driver.machine.leadership.take_barriers() == 1
    driver.follow(2, leader=3)
    assert (fetch.error, fetch.leader, fetch.leader_epoch) == (ELSEWHERE, 3, 2)
    for _ in range(asked):
        driver.machine.leadership.barriers.ended(False)
    assert driver.machine.leadership.take_barriers() == 0


@pytest.mark.parametrize(("confirmed", "error"), [(True, OUT_OF_RANGE), (False, ELSEWHERE)])
def test_deleting_up_to_an_offset_above_the_high_watermark_waits_for_the_proof(
    driver, confirmed, error
):
    ticket = driver.delete_records(7)
    assert not ticket.done
    driver.barrier(confirmed)
    assert (ticket.done, ticket.error) == (True, error)
    assert driver.delete_records(-2).error is OUT_OF_RANGE


def test_deleting_what_is_committed_meanwhile_is_done(driver):
    ticket = driver.delete_records(7)
    assert driver.machine.leadership.take_barriers() == 1
    driver.commit()
    driver.machine.leadership.barriers.ended(True)
    driver.settle()
    assert (ticket.error, ticket.log_start_offset) == (NONE, 7)


def test_a_leader_that_was_paused_past_its_term_asks_before_it_calls_an_offset_out_of_range():
    """The story of the defect: a consumer comes back from the new leader to the old one."""
    replica = serving()
    fetch = FetchTicket(5, 1000, ANY_EPOCH, lambda _: None, NOW + 10**6)
    replica.submit(fetch)
    effects = replica.turn(NOW)
    assert not fetch.done
    assert any(isinstance(each, Heartbeat) and each.context for each in effects.messages)
    replica.submit(Heartbeat(GROUP, 2, 1, 2, 0))
    synced(replica, replica.turn(NOW))
    assert (fetch.done, fetch.error, fetch.leader) == (True, ELSEWHERE, 2)
