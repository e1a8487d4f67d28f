"""Whoever waits in a partition is answered at the deadline, once, and no deadline stays behind.

A deadline that stayed in the past would wake its replica in every turn for nothing. A copy of a
batch in the log is told the place of its original, however it ends.
"""

from __future__ import annotations

from broker_api_world import ApiWorld
from ottla.broker.errors import ErrorCode
from ottla.broker.turn.tickets import DeleteRecordsTicket, ProduceTicket
from ottla.log.build import build_batch
from ottla.log.record_batch import read_batch
from ottla.log.types import NO_TIMESTAMP, RecordBatch

SOON = 1000


def partition():
    world = ApiWorld()
    world.topic("t")
    log = world.log("t")
    log.produce(1, 2, producer_id=7, producer_epoch=0, base_sequence=0)
    return log


def produce(log, base_sequence):
    data = build_batch([b"x"], producer_id=7, producer_epoch=0, base_sequence=base_sequence)
    batch = read_batch(data)
    assert isinstance(batch, RecordBatch)
    ticket = ProduceTicket(batch, -1, lambda _: None, log.now + SOON)
    log.submit(ticket)
    return ticket


def delete_records(log):
    ticket = DeleteRecordsTicket(1, lambda _: None, log.now + SOON)
    log.submit(ticket)
    return ticket


def assert_overdue(log, ticket, error):
    assert log.machine.deadline() == log.now + SOON
    log.sleep(SOON - 1)
    assert log.answered() == []
    log.sleep(1)
    assert (log.answered(), ticket.error) == ([ticket], error)
    assert log.machine.deadline() is None or log.machine.deadline() > log.now


def test_a_gap_that_waits_for_its_barrier_goes_elsewhere():
    for asked in (0, 1):
        log = partition()
        gap = produce(log, 9)
        for _ in range(asked):
            assert log.machine.leadership.take_barriers() == 1
        assert_overdue(log, gap, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if asked:
            log.machine.leadership.barriers.ended(True)
        log.settle()
        assert log.answered() == []


def test_a_batch_that_waits_for_its_commit_times_out_and_stays():
    log = partition()
    ticket = produce(log, 2)
    log.propose()
    assert_overdue(log, ticket, ErrorCode.REQUEST_TIMED_OUT)
    assert ticket.base_offset == 2
    log.settle()
    assert (log.answered(), log.machine.state.high_watermark) == ([], 3)


def test_a_copy_that_times_out_has_the_place_of_its_original():
    """Its append time was missing; a live Kafka answers it (K-FIELDS)."""
    log = partition()
    original = produce(log, 2)
    log.propose()
    copy = produce(log, 2)
    log.sleep(SOON)
    assert log.answered() == [copy, original]
    assert copy.error is ErrorCode.REQUEST_TIMED_OUT
    assert (copy.base_offset, copy.log_append_time) == (2, original.batch.max_timestamp)
    assert original.log_append_time == NO_TIMESTAMP


def test_a_copy_whose_leader_resigns_has_the_place_of_its_original():
    log = partition()
    original = produce(log, 2)
    log.propose()
    copy = produce(log, 2)
    log.machine.resign()
    assert log.answered() == [copy, original]
    assert copy.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (copy.base_offset, copy.log_append_time) == (2, original.batch.max_timestamp)


def test_a_log_start_on_its_way_times_out_queued_or_proposed_and_moves_all_the_same():
    for proposed in (False, True):
        log = partition()
        ticket = delete_records(log)
        if proposed:
            log.propose()
        assert_overdue(log, ticket, ErrorCode.REQUEST_TIMED_OUT)
        log.settle()
        assert (log.answered(), log.machine.state.log_start_offset) == ([], 1)
