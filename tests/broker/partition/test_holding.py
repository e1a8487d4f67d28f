"""Profile `redpanda-24.3` in a partition: copies that hold the mutex, refusals that stand, and
failures that cost the leadership.

A driver has no consensus: that the machine asks to resign is seen in its outbox. That the node then
does is seen in the case `idempotence/a-batch-may-lie-across-the-wrap`.
"""

from __future__ import annotations

import pytest

from broker_core_partition import (
    ELSEWHERE,
    FULL,
    GAP,
    LAG,
    NONE,
    TIMED_OUT,
    PartitionDriver,
    make_partition,
    outcome,
)
from ottla.broker.errors import ErrorCode

PROFILE = "redpanda-24.3"
SHORT = 1_000_000


def serving(profile=PROFILE, **settings):
    made = PartitionDriver(make_partition(profile=profile, **settings))
    made.serve()
    return made


@pytest.fixture
def driver():
    return serving()


def resigns(driver):
    """Whether the machine resigns the term that it leads."""
    return driver.machine.outbox.resigns == driver.term


# ---- copies


def test_behind_a_copy_its_producer_waits_and_others_do_not(driver):
    driver.produce(7, 0)
    driver.propose()
    copy, successor, other = driver.produce(7, 0), driver.produce(7, 1), driver.produce(8, 0)
    driver.propose()
    assert driver.ranges() == [(7, 0), (8, 0)], "the successor has no place yet"
    driver.settle()
    assert [outcome(each) for each in (copy, successor, other)] == [(NONE, 0), (NONE, 2), (NONE, 1)]


def test_in_the_fix_of_2022_a_copy_releases_the_mutex():
    driver = serving("redpanda-5157")
    driver.produce(7, 0)
    driver.propose()
    driver.produce(7, 0)
    driver.produce(7, 1)
    driver.propose()
    assert driver.ranges() == [(7, 0), (7, 1)]


@pytest.mark.parametrize("acks", [0, 1])
def test_a_copy_waits_for_its_originals_outcome_whatever_its_own_acks_are(driver, acks):
    driver.produce(7, 0)
    driver.propose()
    copy = driver.produce(7, 0, acks=acks)
    assert not copy.done
    driver.settle()
    assert outcome(copy) == (NONE, 0)


def test_an_original_with_acks_1_is_enough_for_a_copy_with_acks_all(driver):
    driver.produce(7, 0, acks=1)
    waiting = driver.produce(7, 0)
    driver.propose()
    late = driver.produce(7, 0)
    assert [outcome(each) for each in (waiting, late)] == [(NONE, 0)] * 2


def test_a_copy_has_no_time_limit_of_its_own_and_shares_the_error(driver):
    driver.produce(7, 0, within=10 * SHORT)
    driver.propose()
    copy = driver.produce(7, 0, within=SHORT)
    driver.sleep(2 * SHORT)
    assert not copy.done
    driver.sleep(8 * SHORT)
    assert outcome(copy)[0] is TIMED_OUT
    assert resigns(driver)


def test_when_the_leadership_ends_all_that_waits_is_answered(driver):
    driver.produce(7, 0)
    driver.propose()
    waiting = [driver.produce(7, 0), driver.produce(7, 0), driver.produce(7, 1)]
    driver.follow(2, leader=2)
    assert [each.error for each in waiting] == [ELSEWHERE] * 3
    driver.serve(3)
    assert outcome_of(driver, 7, 1) == (NONE, 1), "what was in its log is committed"


def test_a_refused_proposal_is_the_outcome_of_copies_too(driver):
    """Once they waited for ever, because only items in purgatory woke them."""
    original, copy, waiting = driver.produce(7, 0), driver.produce(7, 0), driver.produce(7, 0)
    driver.propose(refuse=True)
    assert [each.error for each in (original, copy, waiting)] == [ELSEWHERE] * 3
    assert not resigns(driver), "leadership was about to be handed over, and is not"
    assert outcome_of(driver, 7, 0) == (NONE, 0)


def test_a_copy_of_a_batch_in_the_log_outlives_a_refused_proposal(driver):
    driver.produce(7, 0)
    driver.propose()
    copy, waiting, other = driver.produce(7, 0), driver.produce(7, 1), driver.produce(8, 0)
    driver.propose(refuse=True)
    assert [each.error for each in (waiting, other)] == [ELSEWHERE] * 2
    again, successor = driver.produce(7, 0), driver.produce(7, 1)
    assert not copy.done
    driver.settle()
    assert [outcome(each) for each in (copy, again, successor)] == [(NONE, 0), (NONE, 0), (NONE, 1)]


def test_a_copy_hands_on_no_mutex_but_its_own(driver):
    """Once it released the mutex of a request that had come after a refused proposal."""
    other = driver.produce(8, 0)
    driver.propose()
    driver.produce(7, 0)
    driver.produce(7, 0)
    driver.propose(refuse=True)
    first, second = driver.produce(7, 0), driver.produce(7, 1)
    driver.propose(inflight=FULL)
    driver.commit()
    assert outcome(other) == (NONE, 0)
    assert driver.ranges() == [(8, 0)]
    driver.settle()
    assert [outcome(each) for each in (first, second)] == [(NONE, 1), (NONE, 2)]


@pytest.mark.parametrize("refuse", [False, True])
def test_a_copy_is_answered_when_the_node_ends(driver, refuse):
    driver.produce(7, 0)
    driver.propose()
    copy = driver.produce(7, 0)
    driver.produce(8, 0)
    driver.propose(refuse=refuse)
    driver.close()
    assert copy.error is ELSEWHERE
    assert not driver.machine.admission.mutex.held(7)


def test_a_stored_batch_costs_no_leadership_although_its_copy_shares_an_error():
    driver = PartitionDriver(make_partition(profile=PROFILE, min_insync=2))
    driver.serve()
    driver.hear_followers()
    original = driver.produce(7, 0)
    driver.propose()
    copy = driver.produce(7, 0)
    driver.now += 2 * LAG
    driver.commit()
    stored = (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 0)
    assert [outcome(each) for each in (original, copy)] == [stored] * 2
    assert not resigns(driver)


def outcome_of(driver, *asked, **how):
    ticket = driver.produce(*asked, **how)
    driver.settle()
    return outcome(ticket)


# ---- refusals


def test_a_gap_is_a_gap_even_if_what_was_missing_arrives_before_the_barrier_ends(driver):
    late = driver.produce(7, 1)  # unknown, so it begins there
    driver.settle()
    missing = driver.produce(7, 3)
    driver.produce(7, 2)
    driver.settle()
    driver.barrier(confirmed=True)
    assert outcome(late) == (NONE, 0)
    assert outcome(missing)[0] is GAP
    assert not resigns(driver)


def test_the_reference_judges_it_again():
    driver = serving("reference")
    driver.produce(7, 1)
    driver.settle()
    missing = driver.produce(7, 3)
    driver.produce(7, 2)
    driver.settle()
    driver.barrier(confirmed=True)
    driver.settle()
    assert outcome(missing) == (NONE, 2)


def test_a_gap_without_proof_of_leadership_is_sent_elsewhere(driver):
    driver.produce(7, 0)
    driver.settle()
    missing = driver.produce(7, 2)
    driver.barrier(confirmed=False)
    assert outcome(missing)[0] is ELSEWHERE


def test_a_negative_sequence_is_a_gap(driver):
    refused = driver.produce(7, -1)
    driver.barrier(confirmed=True)
    assert outcome(refused)[0] is GAP


def test_too_many_producers_are_against_the_policy():
    driver = serving(max_producers=1)
    driver.produce(7, 0)
    driver.propose()
    assert outcome(driver.produce(8, 0))[0] is ErrorCode.POLICY_VIOLATION


def test_a_leader_that_knows_too_many_makes_enough_room_for_one_more():
    """They became too many under a leader that knew fewer: it had no reason to forget anybody.
    Once such a leader refused newcomers, and forgot one producer for each refusal."""
    predecessor = serving(max_producers=5)
    for producer in range(5):
        predecessor.produce(producer, 0)
    predecessor.settle()
    driver = PartitionDriver(make_partition(profile=PROFILE, max_producers=3))
    driver.follow(1, leader=2)
    driver.receive(predecessor.log)
    driver.serve(2)
    assert len(driver.machine.table) == 5
    assert outcome_of(driver, 9, 0) == (NONE, 5)
    assert [*driver.machine.table.describe()["producers"]] == [3, 4, 9]


# ---- failures


def test_a_batch_across_the_wrap_costs_the_leadership(driver):
    refused = driver.produce(7, 2**31 - 1, 2)
    assert outcome(refused)[0] is ErrorCode.INVALID_REQUEST
    assert resigns(driver)


def test_from_25_3_on_it_is_stored():
    driver = serving("redpanda-25.3")
    assert outcome_of(driver, 7, 2**31 - 1, 2) == (NONE, 0)
    assert outcome_of(driver, 7, 1) == (NONE, 2)
    assert not resigns(driver)


@pytest.mark.parametrize("inflight", [0, FULL], ids=["in the log", "in the queue"])
def test_a_time_limit_costs_the_leadership(driver, inflight):
    late = driver.produce(7, 0, within=SHORT)
    driver.propose(inflight=inflight)
    driver.sleep(SHORT)
    assert outcome(late)[0] is TIMED_OUT
    assert resigns(driver)


@pytest.mark.parametrize(("profile", "producer"), [(PROFILE, -1), ("redpanda-5157", 7)])
def test_not_without_a_producer_and_not_in_other_profiles(profile, producer):
    driver = serving(profile)
    late = driver.produce(producer, 0 if producer > 0 else -1, within=SHORT)
    driver.propose()
    driver.sleep(SHORT)
    assert outcome(late)[0] is TIMED_OUT
    assert not resigns(driver)
