"""What redpanda.md suspects of Redpanda (S1 to S14), asked of profile `reference`.

Those that concern one partition's leader and Raft are asked in
tests/broker/partition/test_suspects.py; docs/explanation/suspects.md answers them all.
"""

import pytest

from ottla.idempotency.decisions import Accept, Duplicate, Park, Reject
from ottla.idempotency.mutex import ProducerMutex
from ottla.idempotency.rulebooks import RULEBOOKS
from ottla.idempotency.rules import REFERENCE, Action, Fact, RejectReason, Verdict, compile_rules
from ottla.idempotency.sequence import MAX_SEQUENCE
from ottla.idempotency.table import ProducerTable
from ottla.log.types import BatchIdentity


def who(first, last, epoch=0, producer=7):
    return BatchIdentity(producer, epoch, first, last)


def fresh():
    return ProducerTable(RULEBOOKS["reference"], 10)


@pytest.fixture
def table():
    return fresh()


def write(table, batch, index):
    assert isinstance(table.decide(batch, 1), Accept)
    table.enqueued(table.begin(batch, 1), index)
    table.apply(batch, index * 10, -1, index=index, term=1)


def begin(table, batch, index):
    assert isinstance(table.decide(batch, 1), Accept)
    in_flight = table.begin(batch, 1)
    table.enqueued(in_flight, index)
    return in_flight


def refusal(table, batch, term=1):
    decision = table.decide(batch, term)
    assert isinstance(decision, Reject)
    return decision.reason


def test_s2_lower_epochs_are_fenced_and_deduplicate_nothing(table):
    write(table, who(0, 4), 1)
    write(table, who(0, 4, epoch=1), 2)
    write(table, who(5, 9, epoch=1), 3)
    assert refusal(table, who(10, 14)) is RejectReason.STALE_EPOCH, "next by its numbers"
    assert refusal(table, who(0, 4)) is RejectReason.STALE_EPOCH, "a range the new epoch stored too"
    assert refusal(table, who(0, 9)) is RejectReason.STALE_EPOCH


def test_s2_no_row_that_sees_an_older_epoch_lets_it_through():
    older = Fact.WELL_FORMED | Fact.KNOWN | Fact.OLDER
    rows = {
        row.label
        for facts, row in enumerate(compile_rules(REFERENCE))
        if row is not None and facts & older == older
    }
    assert rows == {"stale-epoch"}


def test_s3_a_refused_epoch_bump_wipes_nothing(table):
    write(table, who(0, 4), 1)
    waiting = begin(table, who(5, 9), 2)
    before = table.describe()
    assert refusal(table, who(5, 9, epoch=1)) is RejectReason.EPOCH_START
    assert table.describe() == before
    assert isinstance(table.decide(who(0, 4), 1), Duplicate)
    assert table.decide(who(5, 9), 1).in_flight is waiting
    assert isinstance(table.decide(who(10, 14), 1), Accept)


def test_s3_only_accepted_batches_act_on_the_stored_state():
    for row in REFERENCE:
        assert (row.action is Action.NOTHING) == (row.decision is not Verdict.ACCEPT)


def test_s4_a_blindly_accepted_producer_whose_write_was_lost_is_unknown_again(table):
    in_flight = begin(table, who(50, 54), 1)
    assert table.new_term(2) == [in_flight]
    assert table.describe() == fresh().describe(), "not known but empty: unknown"
    assert table.decide(who(50, 54), 2).row.label == "unknown-resumes"
    assert table.decide(who(55, 59), 2).row.label == "unknown-resumes"


def test_s4_the_same_when_it_never_got_a_place_in_the_log(table):
    table.abandon(table.begin(who(50, 54), 1))
    assert table.describe() == fresh().describe()


def test_s4_a_known_producer_without_a_tail_is_not_refused_for_its_sequence():
    rows = [row for row in REFERENCE if row.matches(Fact.WELL_FORMED | Fact.KNOWN)]
    assert [row.label for row in rows] == ["tail-lost"]
    assert rows[0].decision is Verdict.ACCEPT


def test_s5_parking_leaves_the_mutex_to_the_next_request(table):
    """The sequence of steps a partition takes: a copy parks, the successor passes at once."""
    mutex: ProducerMutex[str] = ProducerMutex()
    begin(table, who(0, 4), 1)
    assert mutex.acquire(7, "copy")
    assert not mutex.acquire(7, "successor")
    decision = table.decide(who(0, 4), 1)
    assert isinstance(decision, Park)
    table.park(decision.in_flight, "copy")
    assert mutex.release(7) == "successor", "the copy waits for its answer without the mutex"
    begin(table, who(5, 9), 2)
    assert mutex.release(7) is None
    assert list(table.apply(who(0, 4), 0, -1, index=1, term=1)) == ["copy"]


def test_s8_a_higher_epoch_meets_no_assertion_in_any_state(table):
    """States of every kind, and then a bump: a decision each time, and a working table after."""
    applied, flying, both = 1, 2, 4
    write(table, who(0, 4, producer=applied), 1)
    begin(table, who(0, 4, producer=flying), 2)
    write(table, who(0, 4, producer=both), 4)
    begin(table, who(5, 9, producer=both), 5)
    labels = {
        producer: table.decide(who(0, 4, epoch=3, producer=producer), 1).row.label
        for producer in (applied, flying, both, 5)
    }
    assert labels == {
        applied: "epoch-start",
        flying: "epoch-start",
        both: "epoch-start",
        5: "unknown-start",
    }
    for index, producer in enumerate((applied, flying, both, 5), 6):
        begin(table, who(0, 4, epoch=3, producer=producer), index)


def test_s9_an_epoch_bump_around_an_eviction_leaves_no_undead_producer(table):
    write(table, who(0, 4), 1)
    table.expire([7])
    begin(table, who(0, 4, epoch=1), 3)
    assert table.apply_expire([7], index=2) == 1
    table.apply(who(0, 4, epoch=1), 20, -1, index=3, term=1)
    assert table.longest_idle() == [7]
    assert isinstance(table.decide(who(5, 9, epoch=1), 1), Accept)
    table.expire([7])
    assert table.apply_expire([7], index=4) == 1
    assert len(table) == 0
    assert table.decide(who(5, 9, epoch=1), 1).row.label == "unknown-resumes"


def test_s11_an_old_epochs_batch_never_answers_for_the_new_epochs(table):
    """The same range in flight under both epochs; each is ended by its own entry."""
    write(table, who(0, 4), 1)
    old = begin(table, who(5, 9), 2)
    begin(table, who(0, 4, epoch=1), 3)
    new = begin(table, who(5, 9, epoch=1), 4)
    table.park(old, "old copy")
    table.park(new, "new copy")
    assert list(table.apply(who(5, 9), 20, -1, index=2, term=1)) == ["old copy"]
    decision = table.decide(who(5, 9, epoch=1), 1)
    assert isinstance(decision, Park)
    assert decision.in_flight is new, "not answered with offset 20"
    table.apply(who(0, 4, epoch=1), 30, -1, index=3, term=1)
    assert list(table.apply(who(5, 9, epoch=1), 40, -1, index=4, term=1)) == ["new copy"]
    assert table.decide(who(5, 9, epoch=1), 1).base_offset == 40


def test_s12_failed_flights_are_gone_with_the_leadership_and_block_no_eviction(table):
    write(table, who(0, 4), 1)
    begin(table, who(5, 9), 2)
    begin(table, who(10, 14), 3)
    assert table.longest_idle() == []
    table.new_term(2)
    assert table.longest_idle() == [7]
    assert list(table.in_flight()) == []


def test_s14_the_number_after_2147483647_is_0(table):
    write(table, who(MAX_SEQUENCE, MAX_SEQUENCE), 1)
    assert isinstance(table.decide(who(0, 4), 1), Accept)
    assert refusal(table, who(1, 4)) is RejectReason.GAP
    assert refusal(table, BatchIdentity(7, 0, -(2**31), 4)) is RejectReason.MALFORMED
    begin(table, who(0, 4), 2)
    assert isinstance(table.decide(who(5, 9), 1), Accept)
