"""The order of batches: mutex, queue, duplicates, gaps, sync and conditional replication.

Each test names the promise (promise-R1 to R5) that it holds. The leader queue is held by a
byte budget of one byte or by bytes that are said to be under way (`inflight=FULL`).
"""

from __future__ import annotations

import pytest

from broker_core_partition import (
    ELSEWHERE,
    FULL,
    GAP,
    NONE,
    PartitionDriver,
    batch,
    make_partition,
    outcome,
)
from ottla.broker.errors import ErrorCode
from ottla.raft.types import ENTRY_OVERHEAD_BYTES


@pytest.fixture
def driver():
    made = PartitionDriver()
    made.serve()
    return made


def held_queue():
    """A leader whose queue lets one batch through at a time."""
    driver = PartitionDriver(make_partition(queue_bytes=1))
    driver.serve()
    return driver


# ---- R1: mutex until enqueued, others pass


def test_r1_while_the_queue_is_held_the_same_producer_waits_and_another_passes():
    driver = held_queue()
    for producer_id, sequence in ((7, 0), (7, 1), (8, 0)):
        driver.produce(producer_id, sequence)
    assert driver.propose(inflight=FULL) == []
    mutex = driver.machine.admission.mutex
    assert (mutex.held(7), mutex.held(8)) == (True, True)
    assert (mutex.waiting(7), mutex.waiting(8)) == (1, 0)
    driver.settle()
    assert driver.ranges() == [(7, 0), (8, 0), (7, 1)]


def test_r1_waiters_are_served_first_come_first_served():
    driver = held_queue()
    tickets = [driver.produce(7, sequence) for sequence in range(6)]
    driver.settle()
    assert driver.ranges() == [(7, sequence) for sequence in range(6)]
    assert driver.answered() == tickets


def test_r1_the_mutex_is_free_as_soon_as_the_place_is_certain(driver):
    first = driver.send(batch(7, 0), staged=True)
    assert driver.machine.admission.mutex.held(7)
    assert driver.enqueued() == []
    driver.propose()
    assert driver.enqueued() == [first]
    assert not driver.machine.admission.mutex.held(7)
    assert not first.done, "enqueued is not replicated"
    second = driver.send(batch(7, 1), staged=True)
    driver.propose()
    assert driver.enqueued() == [second]
    driver.commit()
    assert driver.answered() == [first, second]


def test_r1_plain_batches_need_no_mutex_and_keep_their_order(driver):
    tickets = [driver.produce() for _ in range(3)]
    driver.settle()
    assert [outcome(each) for each in tickets] == [(NONE, 0), (NONE, 1), (NONE, 2)]


def test_the_byte_budget_counts_what_is_under_way_and_always_lets_one_through():
    size = len(batch(7, 0)) + ENTRY_OVERHEAD_BYTES
    driver = PartitionDriver(make_partition(queue_bytes=2 * size))
    driver.serve()
    for producer_id in (7, 8, 9):
        driver.produce(producer_id, 0)
    assert driver.propose(inflight=2 * size) == []
    assert len(driver.propose(inflight=size)) == 1
    assert len(driver.propose()) == 2
    driver.produce(10, 0, 100)
    assert len(driver.propose()) == 1, "larger than the budget, but nothing else is under way"


# ---- R2: duplicates and gaps


def test_r2_a_finished_duplicate_gets_the_original_offset_and_is_not_stored(driver):
    driver.produce(7, 0, 3)
    driver.produce(7, 3, 2)
    driver.settle()
    driver.answered()
    copy = driver.produce(7, 0, 3)
    assert driver.answered() == [copy]
    assert outcome(copy) == (NONE, 0)
    driver.settle()
    assert driver.ranges() == [(7, 0), (7, 3)]


def test_r2_the_last_five_batches_are_remembered_and_the_sixth_is_a_gap(driver):
    for sequence in range(6):
        driver.produce(7, sequence)
    driver.settle()
    for sequence in range(1, 6):
        assert outcome(driver.produce(7, sequence)) == (NONE, sequence)
    old = driver.produce(7, 0)
    driver.barrier(confirmed=True)
    assert outcome(old)[0] is GAP


def test_r2_a_duplicate_in_flight_is_parked_and_woken_with_the_offset(driver):
    driver.produce(-1)
    original = driver.produce(7, 0)
    driver.propose()
    copies = [driver.produce(7, 0) for _ in range(3)]
    assert driver.answered() == []
    driver.propose()
    assert driver.ranges() == [(-1, -1), (7, 0)]
    driver.commit()
    assert {original, *copies} <= set(driver.answered())
    assert {outcome(each) for each in (original, *copies)} == {(NONE, 1)}


def test_r2_a_parked_duplicate_hears_the_originals_error(driver):
    original = driver.produce(7, 0)
    driver.propose()
    copy = driver.produce(7, 0)
    driver.follow(2, leader=3)
    assert set(driver.answered()) == {original, copy}
    assert outcome(copy) == outcome(original) == (ELSEWHERE, 0)


def test_r2_a_parked_duplicate_keeps_no_mutex(driver):
    driver.produce(7, 0)
    driver.propose()
    driver.produce(7, 0)
    successor = driver.produce(7, 1)
    driver.settle()
    assert outcome(successor) == (NONE, 1)


def test_r2_a_gap_is_refused_only_after_the_barrier(driver):
    driver.produce(7, 0)
    driver.settle()
    driver.answered()
    gap = driver.produce(7, 2)
    driver.settle()
    assert driver.answered() == []
    driver.barrier(confirmed=True)
    assert driver.answered() == [gap]
    assert (*outcome(gap), gap.log_start_offset) == (GAP, -1, 0)
    assert driver.ranges() == [(7, 0)]


def test_r2_a_gap_goes_elsewhere_when_the_barrier_fails(driver):
    driver.produce(7, 0)
    driver.settle()
    gap = driver.produce(7, 2)
    driver.barrier(confirmed=False)
    assert outcome(gap)[0] is ELSEWHERE


def test_r2_what_was_a_gap_is_judged_again_after_the_barrier(driver):
    driver.produce(7, 0)
    driver.settle()
    gap = driver.produce(7, 2)
    assert driver.machine.leadership.take_barriers() == 1
    missing = driver.produce(7, 1)
    driver.machine.leadership.barriers.ended(True)
    driver.settle()
    assert (outcome(missing), outcome(gap)) == ((NONE, 1), (NONE, 2))


def test_r2_a_waiting_gap_holds_no_mutex_and_gaps_share_a_barrier(driver):
    driver.produce(7, 0)
    driver.produce(8, 0)
    driver.settle()
    gaps = [driver.produce(7, 5), driver.produce(8, 5), driver.produce(7, 9)]
    successor = driver.produce(7, 1)
    driver.settle()
    assert outcome(successor) == (NONE, 2)
    assert driver.machine.leadership.take_barriers() == 1
    assert driver.machine.leadership.take_barriers() == 0
    later = driver.produce(8, 9)
    assert driver.machine.leadership.take_barriers() == 1, (
        "a gap found after a barrier began needs another"
    )
    driver.machine.leadership.barriers.ended(True)
    assert [outcome(each)[0] for each in gaps] == [GAP] * 3
    assert not later.done
    driver.machine.leadership.barriers.ended(True)
    assert outcome(later)[0] is GAP


def test_r2_the_epoch_rules_reach_the_wire(driver):
    driver.produce(7, 0, epoch=1)
    driver.settle()
    stale = driver.produce(7, 1, epoch=0)
    assert outcome(stale)[0] is ErrorCode.INVALID_PRODUCER_EPOCH
    assert stale.log_start_offset == 0
    late_start = driver.produce(7, 3, epoch=2)
    driver.barrier(confirmed=True)
    assert outcome(late_start)[0] is GAP
    fresh = driver.produce(7, 0, epoch=2)
    driver.settle()
    assert outcome(fresh) == (NONE, 1)


def test_r2_sequences_wrap_between_batches_and_inside_one(driver):
    top = 2**31 - 1
    for sequence, count in ((top - 1, 2), (0, 1)):
        driver.produce(7, sequence, count)
    driver.produce(8, top, 3)
    driver.produce(8, 2, 1)
    driver.settle()
    for producer_id, order in ((7, [top - 1, 0]), (8, [top, 2])):
        assert [first for each, first in driver.ranges() if each == producer_id] == order
    assert outcome(driver.produce(8, top, 3))[0] is NONE


# ---- R3: sync() first, and replication on condition


def test_r3_nothing_is_admitted_before_the_first_entry_of_the_term_is_applied(driver):
    driver.produce(7, 0)
    driver.propose()
    driver.follow(2, leader=1)
    driver.lead(3)
    copy = driver.produce(7, 0)
    assert driver.propose() == []
    assert driver.answered()[1:] == [], "only the first hears of the lost leadership"
    driver.commit(len(driver.log) - 1)
    assert not copy.done
    assert driver.propose() == []
    driver.commit()
    assert outcome(copy) == (NONE, 0)
    assert driver.ranges() == [(7, 0)]


def test_r3_who_waited_for_the_sync_enters_in_order():
    driver = PartitionDriver()
    driver.lead(1)
    tickets = [driver.produce(7, sequence) for sequence in range(4)]
    driver.settle()
    assert [outcome(each) for each in tickets] == [(NONE, offset) for offset in range(4)]


def test_r3_a_batch_queued_in_an_older_term_fails_with_its_successors_for_good():
    driver = held_queue()
    queued = [driver.produce(7, 0), driver.produce(7, 1), driver.produce(8, 0)]
    plain = driver.produce()
    assert driver.propose(inflight=FULL) == []
    driver.propose(refuse=True)
    for ticket in (*queued, plain):
        assert outcome(ticket) == (ELSEWHERE, -1)
    driver.answered()
    driver.settle()
    driver.follow(2, leader=2)
    driver.serve(3)
    driver.settle()
    assert driver.stored() == []
    assert driver.answered() == []


def test_r3_no_a_c_b():
    """A committed, leadership moves, another leader writes C, leadership returns: B is doomed."""
    driver = PartitionDriver()
    driver.serve()
    driver.produce(7, 0)
    driver.settle()
    b = driver.produce(7, 1)
    assert driver.propose(inflight=FULL) == []
    driver.follow(2, leader=2)
    driver.receive([driver.empty_entry(2)])
    driver.commit()
    driver.serve(3)
    driver.settle()
    assert outcome(b)[0] is ELSEWHERE
    assert driver.ranges() == [(7, 0)]


# ---- R4: B cannot succeed without A; R5: uncertainty ends with the leadership


def test_r4_when_a_is_refused_its_place_b_is_a_gap():
    driver = PartitionDriver()
    driver.serve()
    driver.produce(7, 0)
    driver.settle()
    a = driver.produce(7, 1)
    driver.propose(refuse=True)
    b = driver.produce(7, 2)
    driver.barrier(confirmed=True)
    driver.settle()
    assert (outcome(a)[0], outcome(b)[0]) == (ELSEWHERE, GAP)
    assert driver.ranges() == [(7, 0)]


def test_r4_a_refused_proposal_leaves_what_is_in_the_log_alone():
    driver = PartitionDriver()
    driver.serve()
    kept = driver.produce(7, 0)
    driver.propose()
    copy = driver.produce(7, 0)
    refused = driver.produce(7, 1)
    driver.propose(refuse=True)
    assert driver.answered() == [refused]
    driver.commit()
    assert outcome(kept) == outcome(copy) == (NONE, 0)
    again = driver.produce(7, 1)
    driver.settle()
    assert outcome(again) == (NONE, 1)


def test_r5_the_next_leadership_reads_the_truth_from_the_log(driver):
    """A's fate is unknown when leadership goes; whether it is stored shows when it comes back."""
    a = driver.produce(7, 0)
    driver.propose()
    driver.follow(2, leader=0)
    assert outcome(a)[0] is ELSEWHERE
    driver.serve(3)
    assert outcome(driver.produce(7, 0)) == (NONE, 0), "A was in the log after all"
    b = driver.produce(7, 1)
    driver.settle()
    assert outcome(b) == (NONE, 1)


def test_r5_and_when_it_was_truncated_a_is_stored_anew(driver):
    driver.produce(8, 0)
    driver.settle()
    driver.produce(7, 0)
    driver.propose()
    driver.follow(2, leader=2)
    place = len(driver.log)
    other = driver.empty_entry(2)
    other.index = place
    driver.receive([other])
    driver.commit()
    driver.serve(3)
    again = driver.produce(7, 0)
    driver.settle()
    assert outcome(again) == (NONE, 1)
    assert driver.ranges() == [(8, 0), (7, 0)]
