"""What readers see: the high watermark, waiting for sync, ranges, epochs, the log start.

Expectations from promise-K3, K-WATERMARK and K-FETCH. The log of most tests holds
six records in two batches, at indexes 2 and 3.
"""

from __future__ import annotations

import pytest

from broker_core_partition import (
    ELSEWHERE,
    NONE,
    TIMED_OUT,
    PartitionDriver,
    ignore,
    make_partition,
    outcome,
)
from ottla.broker.errors import ErrorCode
from ottla.broker.turn.tickets import EpochEndTicket, ListOffsetsTicket
from ottla.raft.types import Entry, EntryKind

SOON = 1000
OUT_OF_RANGE = ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.fixture
def driver():
    made = PartitionDriver()
    made.serve()
    for sequence in (0, 3):
        made.produce(7, sequence, 3)
    made.settle()
    made.answered()
    return made


def seen(ticket):
    """First and last index of what the answer names, and its high watermark."""
    assert (ticket.done, ticket.error) == (True, NONE)
    return ticket.first_index, ticket.last_index, ticket.high_watermark


# ---- the high watermark


def test_records_above_the_high_watermark_are_invisible(driver):
    driver.produce(7, 6, 4)
    driver.propose()
    end = len(driver.log)
    assert seen(driver.fetch(0)) == (2, end - 1, 6)
    assert seen(driver.fetch(6)) == (0, 0, 6)
    assert driver.list_offsets(-1).offset == 6
    driver.commit()
    assert seen(driver.fetch(6)) == (end, end, 10)


def test_a_fetch_names_the_batch_that_holds_the_offset(driver):
    assert [seen(driver.fetch(offset))[0] for offset in range(6)] == [2, 2, 2, 3, 3, 3]


def test_a_watcher_hears_of_the_first_commit_beyond_its_offset(driver):
    at_once, later = driver.watch(5), driver.watch(6)
    assert (at_once.done, at_once.error, later.done) == (True, NONE, False)
    driver.produce(7, 6)
    driver.propose()
    assert not later.done
    driver.commit()
    assert (later.done, later.error) == (True, NONE)


def test_a_watcher_whose_time_is_up_hears_so_and_a_cancelled_one_hears_nothing(driver):
    late, gone = driver.watch(6, within=SOON), driver.watch(6, within=SOON)
    gone.cancelled = True
    driver.sleep(SOON)
    assert driver.answered() == [late]
    assert late.error is TIMED_OUT
    assert driver.machine.deadline() > driver.now


def test_the_high_watermark_is_no_lower_after_a_truncation(driver):
    driver.produce(7, 6, 4)
    driver.propose()
    driver.follow(2, leader=2)
    driver.receive([Entry(len(driver.log), 2, EntryKind.EMPTY, b"")])
    driver.commit()
    assert driver.machine.state.high_watermark == 6
    driver.serve(3)
    assert driver.list_offsets(-1).offset == 6
    again = driver.produce(7, 6, 4)
    driver.settle()
    assert outcome(again) == (NONE, 6)


# ---- waiting for sync


def test_readers_wait_for_the_first_entry_of_the_term_and_see_all_of_earlier_terms(driver):
    driver.produce(7, 6, 4)
    driver.propose()
    driver.follow(2, leader=0)
    driver.answered()
    driver.lead(3)
    fetch, latest, end = driver.fetch(0), driver.list_offsets(-1), driver.epoch_end(1)
    driver.commit(len(driver.log) - 1)
    assert driver.answered() == []
    driver.commit()
    assert seen(fetch)[2] == latest.offset == 10
    assert end.end == (1, 10)


def test_readers_that_waited_too_long_for_it_go_elsewhere(driver):
    driver.follow(2, leader=2)
    driver.lead(3)
    fetch = driver.fetch(0, within=SOON)
    driver.sleep(SOON)
    assert (fetch.error, driver.answered()) == (ELSEWHERE, [fetch])


def test_a_follower_sends_readers_to_the_leader_it_knows(driver):
    driver.follow(4, leader=3)
    fetch = driver.fetch(0)
    assert (fetch.error, fetch.leader, fetch.leader_epoch) == (ELSEWHERE, 3, 4)


# ---- ranges and epochs


@pytest.mark.parametrize(
    ("offset", "error"), [(-1, OUT_OF_RANGE), (0, NONE), (6, NONE), (7, OUT_OF_RANGE)]
)
def test_offsets_outside_the_log_are_out_of_range(driver, offset, error):
    fetch = driver.fetch(offset)
    driver.barrier(confirmed=True)
    assert (fetch.done, fetch.error) == (True, error)


def test_an_offset_between_high_watermark_and_log_end_is_in_range_and_empty(driver):
    driver.produce(7, 6, 4)
    driver.propose()
    for offset in (7, 10):
        assert seen(driver.fetch(offset)) == (0, 0, 6)
    beyond = driver.fetch(11)
    driver.barrier(confirmed=True)
    assert beyond.error is OUT_OF_RANGE


@pytest.mark.parametrize(
    ("claimed", "error"),
    [
        (-1, NONE),
        (1, NONE),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (-2, ErrorCode.FENCED_LEADER_EPOCH),
        (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_reader_that_names_a_leader_epoch_must_name_this_one(driver, claimed, error):
    assert driver.fetch(0, epoch=claimed).error is error


@pytest.mark.parametrize("leader", [0, 2])
@pytest.mark.parametrize(
    ("claimed", "error"),
    [
        (-1, ELSEWHERE),
        (4, ELSEWHERE),
        (1, ErrorCode.FENCED_LEADER_EPOCH),
        (-2, ErrorCode.FENCED_LEADER_EPOCH),
        (5, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_follower_compares_epochs_before_it_sends_readers_on(driver, leader, claimed, error):
    """Measured on a follower of Apache Kafka 4.3.1; here it used to say first that others lead."""
    driver.follow(4, leader=leader)
    fetch = driver.fetch(0, epoch=claimed)
    latest = ListOffsetsTicket(-1, claimed, ignore, driver.now + SOON)
    end = EpochEndTicket(1, claimed, ignore, driver.now + SOON)
    driver.submit(latest)
    driver.submit(end)
    assert [ticket.error for ticket in (fetch, latest, end)] == [error] * 3
    assert fetch.leader == (leader if error is ELSEWHERE else 0)


def test_epochs_end_where_the_next_one_began_to_write(driver):
    driver.follow(4, leader=2)
    driver.serve(5)
    driver.produce(7, 6, 2)
    driver.settle()
    ends = [driver.epoch_end(epoch).end for epoch in (1, 3, 5)]
    assert ends == [(1, 6), (1, 6), (5, 8)]


@pytest.fixture
def of_two_epochs(driver):
    """Offsets 0 to 5 of epoch 1, 6 and 7 of epoch 5."""
    driver.follow(4, leader=2)
    driver.serve(5)
    driver.produce(7, 6, 2)
    driver.settle()
    driver.answered()
    return driver


# last epoch of the reader, offset it asks for, where the logs part
DIVERGING = [
    (1, 7, (1, 6)),  # epoch 1 ended at 6: whoever has more of it has what was never committed
    (1, 99, (1, 6)),
    (3, 6, (1, 6)),  # no such epoch here
    (3, 3, (1, 6)),
    (5, 9, (5, 8)),
    (5, 99, (5, 8)),
    (0, 3, (0, 0)),
]


@pytest.mark.parametrize(("epoch", "offset", "end"), DIVERGING)
def test_a_reader_whose_log_is_another_one_is_told_where_the_two_part(
    of_two_epochs, epoch, offset, end
):
    """KIP-595, and measured on Apache Kafka 4.3.1: no records, and no error above the log end
    either; the epoch used to be ignored. What this log does not have may be in that of a newer
    leader, so it is proved first that there is none."""
    fetch = of_two_epochs.fetch(offset, last_epoch=epoch)
    assert not fetch.done
    of_two_epochs.barrier(confirmed=True)
    assert seen(fetch) == (0, 0, 8)
    assert fetch.diverging == end


@pytest.mark.parametrize(("epoch", "offset"), [(6, 3), (6, 8), (99, 99)])
def test_an_epoch_later_than_all_is_out_of_range(of_two_epochs, epoch, offset):
    """Measured on Apache Kafka 4.3.1."""
    fetch = of_two_epochs.fetch(offset, last_epoch=epoch)
    of_two_epochs.barrier(confirmed=True)
    assert (fetch.done, fetch.error, fetch.diverging) == (True, OUT_OF_RANGE, None)


@pytest.mark.parametrize(("epoch", "offset"), [(1, 6), (1, 3), (5, 8), (5, 0), (0, 0), (-1, 7)])
def test_a_reader_whose_log_is_this_one_is_served(of_two_epochs, epoch, offset):
    fetch = of_two_epochs.fetch(offset, last_epoch=epoch)
    assert seen(fetch)[2] == 8
    assert (fetch.diverging, fetch.first_index > 0) == (None, offset < 8)


def test_below_the_log_start_all_epochs_are_out_of_range(of_two_epochs):
    """Also one that diverges (measured on Apache Kafka 4.3.1: offset -1)."""
    of_two_epochs.delete_records(4)
    of_two_epochs.settle()
    for epoch in (-1, 0, 1, 3, 5):
        fetch = of_two_epochs.fetch(3, last_epoch=epoch)
        if not fetch.done:
            of_two_epochs.barrier(confirmed=True)
        assert (fetch.done, fetch.error, fetch.diverging) == (True, OUT_OF_RANGE, None)


def test_a_leader_that_was_deposed_meanwhile_tells_nobody_that_its_log_is_the_right_one(
    of_two_epochs,
):
    fetch = of_two_epochs.fetch(7, last_epoch=1)
    of_two_epochs.barrier(confirmed=False)
    assert (fetch.error, fetch.diverging) == (ELSEWHERE, None)


def test_earliest_and_latest(driver):
    earliest, latest = driver.list_offsets(-2), driver.list_offsets(-1)
    assert (earliest.offset, latest.offset, latest.leader_epoch) == (0, 6, 1)


# ---- the log start


def test_delete_records_moves_the_log_start_when_it_is_committed(driver):
    ticket = driver.delete_records(4)
    driver.propose()
    assert not ticket.done
    assert driver.list_offsets(-2).offset == 0
    driver.commit()
    assert (ticket.error, ticket.log_start_offset) == (NONE, 4)
    assert driver.list_offsets(-2).offset == 4
    assert driver.fetch(3).error is OUT_OF_RANGE
    assert seen(driver.fetch(4))[0] == 3


def test_minus_one_means_the_high_watermark(driver):
    driver.produce(7, 6)
    driver.propose()
    ticket = driver.delete_records(-1)
    driver.settle()
    assert (ticket.error, ticket.log_start_offset) == (NONE, 6)
    assert driver.fetch(6).error is NONE


@pytest.mark.parametrize("offset", [7, -2])
def test_the_log_start_never_passes_the_high_watermark(driver, offset):
    driver.produce(7, 6)
    driver.propose()
    ticket = driver.delete_records(offset)
    driver.barrier(confirmed=True)
    assert ticket.error is OUT_OF_RANGE


def test_the_log_start_never_goes_back(driver):
    driver.delete_records(4)
    driver.settle()
    ticket = driver.delete_records(2)
    assert (ticket.error, ticket.log_start_offset) == (NONE, 4)
    assert driver.propose() == []


def test_nor_does_it_when_two_deletions_are_under_way(driver):
    far, near = driver.delete_records(4), driver.delete_records(2)
    driver.settle()
    assert (far.error, far.log_start_offset) == (NONE, 4)
    assert (near.error, near.log_start_offset) == (NONE, 4)
    assert driver.machine.state.log_start_offset == 4


def test_answers_name_the_log_start_in_force(driver):
    driver.delete_records(4)
    driver.settle()
    ticket = driver.produce(7, 6)
    driver.settle()
    assert ticket.log_start_offset == 4
    copy = driver.produce(7, 0, 3)
    assert (*outcome(copy), copy.log_start_offset) == (NONE, 0, 4), "known, though deleted"


def test_only_a_serving_leader_moves_the_log_start(driver):
    driver.follow(2, leader=2)
    assert driver.delete_records(1).error is ELSEWHERE
    driver.lead(3)
    assert driver.delete_records(1).error is ELSEWHERE


# ---- snapshots


def state_of(machine):
    state = machine.state
    return (
        state.applied,
        state.high_watermark,
        state.log_start_offset,
        state.index.next_offset,
        machine.table.digest(),
        machine.table.applied_index,
        list(state.index.epoch_starts()),
    )


@pytest.mark.parametrize("offset", [1, 3, 4, 6, -1])
@pytest.mark.parametrize("follow_up", [0, 2])
def test_snapshot_and_replay_make_the_same_state_as_having_been_there(driver, offset, follow_up):
    driver.produce(8, 0)
    driver.propose()
    driver.delete_records(offset)
    driver.settle()
    for sequence in range(follow_up):
        driver.produce(8, sequence + 1)
    driver.settle()
    compaction = driver.compactions[-1]
    fresh = PartitionDriver(make_partition())
    fresh.log = driver.log[: compaction.index]
    fresh.restore(compaction)
    assert fresh.machine.applied == compaction.index
    assert fresh.machine.last_index == compaction.index
    fresh.follow(1, leader=1)
    fresh.receive(driver.log)
    fresh.commit()
    assert state_of(fresh.machine) == state_of(driver.machine)


def test_a_snapshot_stands_only_for_what_lies_below_the_log_start(driver):
    driver.delete_records(3)
    driver.settle()
    (compaction,) = driver.compactions
    assert driver.log[compaction.index - 1].payload.last_offset == 2
    assert driver.machine.state.index.first_index == compaction.index + 1


def test_the_table_in_a_snapshot_is_ahead_of_its_entries_and_replay_does_not_harm_it(driver):
    for sequence in range(6, 14):
        driver.produce(7, sequence)
    driver.settle()
    driver.delete_records(3)
    driver.settle()
    compaction = driver.compactions[-1]
    fresh = PartitionDriver(make_partition())
    fresh.log = driver.log[: compaction.index]
    fresh.restore(compaction)
    ahead = fresh.machine.table.digest()
    assert ahead == driver.machine.table.digest()
    fresh.follow(1, leader=1)
    for entry in driver.log[compaction.index :]:
        fresh.receive([entry])
        fresh.commit()
        assert fresh.machine.table.digest() == ahead
    fresh.serve(2)
    assert outcome(fresh.produce(7, 13)) == (NONE, 13)
