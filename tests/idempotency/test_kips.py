"""Sentences of KIP-98 and KIP-360 about the broker's side of idempotent produce, one test each.

The sentences are paraphrased in the tests' names. Transactions are not part of it, nor is what
clients do when they are refused.
"""

import pytest

from ottla.idempotency.decisions import Accept, Duplicate, Reject
from ottla.idempotency.rulebooks import RULEBOOKS
from ottla.idempotency.rules import RejectReason
from ottla.idempotency.sequence import MAX_SEQUENCE
from ottla.idempotency.table import ProducerTable
from ottla.log.types import BatchIdentity


def who(first, last, epoch=0, producer=7):
    return BatchIdentity(producer, epoch, first, last)


@pytest.fixture
def table():
    return ProducerTable(RULEBOOKS["reference"], 10)


def write(table, batch):
    """Accept and commit one batch at the next index."""
    assert isinstance(table.decide(batch, 1), Accept)
    index = table.applied_index + 1
    table.enqueued(table.begin(batch, 1), index)
    table.apply(batch, index * 100, -1, index=index, term=1)


def reason(decision):
    assert isinstance(decision, Reject)
    return decision.reason


def test_kip98_sequences_start_at_zero_and_rise_by_the_number_of_records(table):
    write(table, who(0, 2))
    write(table, who(3, 3))
    write(table, who(4, 13))


def test_kip98_a_batch_that_starts_one_above_the_last_is_accepted(table):
    write(table, who(0, 4))
    assert isinstance(table.decide(who(5, 5), 1), Accept)


def test_kip98_a_sequence_too_high_is_out_of_order(table):
    write(table, who(0, 4))
    assert reason(table.decide(who(6, 9), 1)) is RejectReason.GAP


def test_kip98_a_sequence_already_stored_is_a_duplicate_answered_with_its_offset(table):
    write(table, who(0, 4))
    write(table, who(5, 9))
    assert table.decide(who(0, 4), 1).base_offset == 100
    assert table.decide(who(5, 9), 1).base_offset == 200


def test_kip98_sequences_wrap_at_the_maximum_of_an_int32(table):
    write(table, who(MAX_SEQUENCE - 1, MAX_SEQUENCE))
    write(table, who(0, 1))


def test_kip98_state_is_per_producer_id(table):
    write(table, who(0, 4))
    assert isinstance(table.decide(who(0, 4, producer=8), 1), Accept)


def test_kip98_a_higher_epoch_fences_the_lower(table):
    write(table, who(0, 4))
    write(table, who(0, 4, epoch=1))
    assert reason(table.decide(who(5, 9, epoch=0), 1)) is RejectReason.STALE_EPOCH


def test_kip98_the_broker_remembers_five_batches_so_five_may_be_in_flight(table):
    for n in range(5):
        write(table, who(n, n))
    for n in range(5):
        assert isinstance(table.decide(who(n, n), 1), Duplicate)


def test_kip98_producer_state_is_rebuilt_from_the_log(table):
    write(table, who(0, 4))
    write(table, who(5, 9, producer=8))
    rebuilt = ProducerTable(table.rulebook, 10)
    rebuilt.apply(who(0, 4), 100, -1, index=1, term=1)
    rebuilt.apply(who(5, 9, producer=8), 200, -1, index=2, term=1)
    assert rebuilt.digest() == table.digest()


def test_kip360_an_unknown_producer_is_accepted_at_any_sequence(table):
    assert isinstance(table.decide(who(1234, 1240, epoch=3), 1), Accept)


def test_kip360_after_losing_its_state_a_producer_goes_on_without_a_fatal_error(table):
    write(table, who(0, 4))
    table.apply_expire([7], index=2)
    assert isinstance(table.decide(who(5, 9), 1), Accept)


def test_kip360_a_bumped_epoch_starts_its_sequences_at_zero(table):
    write(table, who(0, 4))
    assert isinstance(table.decide(who(0, 4, epoch=1), 1), Accept)
    assert reason(table.decide(who(5, 9, epoch=1), 1)) is RejectReason.EPOCH_START


def test_kip360_the_window_of_the_old_epoch_ends_with_the_first_batch_of_the_new(table):
    write(table, who(0, 4))
    write(table, who(5, 9))
    write(table, who(0, 4, epoch=1))
    assert reason(table.decide(who(5, 9), 1)) is RejectReason.STALE_EPOCH
    assert isinstance(table.decide(who(5, 9, epoch=1), 1), Accept)


def test_kip360_a_producer_that_lost_its_epoch_range_gets_a_new_id_and_starts_anew(table):
    write(table, who(0, 4, epoch=32767))
    assert reason(table.decide(who(0, 4, epoch=32768), 1)) is RejectReason.MALFORMED
    assert isinstance(table.decide(who(0, 4, producer=8), 1), Accept)
