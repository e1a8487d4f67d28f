"""The producer table: corners that transcripts and the machine do not spell out.

Waiters, the end of terms, who may be forgotten, how much room there is, and what is a
broken invariant.
"""

import pytest

from ottla.idempotency.decisions import Accept, Duplicate, Park, Reject
from ottla.idempotency.forgotten import MOST
from ottla.idempotency.rulebooks import RULEBOOKS
from ottla.idempotency.rules import Fact, RejectReason
from ottla.idempotency.table import ProducerTable
from ottla.log.types import BatchIdentity


def who(first, last, epoch=0, producer=7):
    return BatchIdentity(producer, epoch, first, last)


@pytest.fixture
def table():
    return ProducerTable(RULEBOOKS["reference"], 10)


def write(table, batch, index):
    table.apply(batch, index * 10, 77, index=index, term=1)


def begun(table, batch, index=0, term=1):
    assert isinstance(table.decide(batch, term), Accept)
    in_flight = table.begin(batch, term)
    if index:
        table.enqueued(in_flight, index)
    return in_flight


def test_a_duplicate_carries_offset_and_timestamp_of_the_original(table):
    write(table, who(0, 4), 1)
    duplicate = table.decide(who(0, 4), 1)
    assert isinstance(duplicate, Duplicate)
    assert (duplicate.base_offset, duplicate.max_timestamp) == (10, 77)


def test_parked_copies_wake_in_order_and_once(table):
    original = begun(table, who(0, 4), 1)
    for waiter in "abc":
        decision = table.decide(who(0, 4), 1)
        assert isinstance(decision, Park)
        assert decision.in_flight is original
        table.park(decision.in_flight, waiter)
    assert list(table.apply(who(0, 4), 0, -1, index=1, term=1)) == ["a", "b", "c"]
    assert list(table.apply(who(0, 4), 0, -1, index=1, term=1)) == []


def test_parked_copies_share_the_error(table):
    original = table.begin(who(0, 4), 1)
    table.park(original, "a")
    assert list(table.abandon(original)) == ["a"]
    assert list(table.abandon(original)) == []


def test_what_was_dropped_with_its_term_is_abandoned_without_harm(table):
    original = table.begin(who(0, 4), 1)
    table.new_term(2)
    again = begun(table, who(0, 4), 1, term=2)
    assert list(table.abandon(original)) == []
    assert list(table.in_flight()) == [again]


def test_a_request_in_flight_in_another_term_is_not_parked_on(table):
    begun(table, who(0, 4), 1, term=1)
    assert isinstance(table.decide(who(0, 4), 1), Park)
    assert table.decide(who(0, 4), 2).row.label == "gap"


@pytest.mark.parametrize(
    ("index", "term", "ends"), [(3, 2, True), (3, 1, False), (2, 2, False), (2, 1, False)]
)
def test_only_the_entry_at_its_own_index_and_term_ends_a_flight(table, index, term, ends):
    original = begun(table, who(0, 4), 3, term=2)
    table.park(original, "a")
    assert list(table.apply(who(0, 4), 5, -1, index=index, term=term)) == (["a"] if ends else [])
    assert list(table.in_flight()) == ([] if ends else [original])


def test_abandoning_in_the_middle_leaves_the_tail_with_the_newest(table):
    begun(table, who(0, 4))
    middle = begun(table, who(5, 9))
    begun(table, who(10, 14))
    table.abandon(middle)
    assert table.decide(who(15, 19), 1).row.label == "next"


def test_abandoning_the_newest_gives_its_place_back(table):
    begun(table, who(0, 4))
    newest = begun(table, who(5, 9))
    table.abandon(newest)
    assert table.decide(who(5, 9), 1).row.label == "next"
    assert table.decide(who(10, 14), 1).row.label == "gap"


def test_what_has_its_place_in_the_log_is_not_abandoned(table):
    """What became of it is for the log to say: a leader that cannot learn it resigns."""
    original = begun(table, who(0, 4), 1)
    with pytest.raises(AssertionError, match="has its place at 1"):
        table.abandon(original)


def test_ranges_are_compared_within_the_current_epoch_whatever_the_requests_epoch(table):
    """Facts say what is equal; the rows say what another epoch makes of it."""
    write(table, who(0, 4, epoch=1), 1)
    begun(table, who(5, 9, epoch=1), 2)
    for epoch, compared in ((0, Fact.OLDER), (1, Fact(0)), (2, Fact.NEWER)):
        known = Fact.WELL_FORMED | Fact.KNOWN | Fact.TAIL | compared
        assert table.facts(who(0, 4, epoch), 1) == known | Fact.FINISHED | Fact.ZERO
        assert table.facts(who(5, 9, epoch), 1) == known | Fact.IN_FLIGHT
        assert table.facts(who(10, 14, epoch), 1) == known | Fact.SUCCESSOR


def test_a_place_at_or_below_what_is_applied_is_a_broken_invariant(table):
    write(table, who(0, 4, producer=8), 5)
    in_flight = begun(table, who(0, 4))
    with pytest.raises(AssertionError, match="enqueued at 5, but 5 is applied already"):
        table.enqueued(in_flight, 5)


def test_a_flight_from_the_future_is_a_broken_invariant(table):
    begun(table, who(0, 4), term=3)
    with pytest.raises(AssertionError, match="in flight in 3, term 2 begins"):
        table.new_term(2)


def test_losing_leadership_within_the_term_drops_its_flights_too(table):
    in_flight = begun(table, who(0, 4), 1, term=3)
    assert table.new_term(3) == [in_flight]
    assert table.new_term(4) == []
    assert table.describe()["producers"] == {}


def test_what_the_log_says_is_taken_in_whatever_it_is(table):
    """Replicas never validate: gaps, other epochs, even older ones, follow the log."""
    for index, batch in enumerate([who(50, 59), who(7, 9), who(3, 3, 5), who(0, 9, 2)], 1):
        write(table, batch, index)
    assert table.describe()["producers"][7]["epoch"] == 2
    assert table.describe()["producers"][7]["finished"] == [[0, 9, 40, 77]]


def test_entries_at_or_below_the_applied_index_are_skipped(table):
    write(table, who(0, 4), 4)
    before = table.snapshot()
    for index in (1, 3, 4):
        write(table, who(5, 9), index)
        assert table.apply_expire([7], index=index) == 0
    assert table.snapshot() == before
    assert table.applied_index == 4


def test_expiry_counts_those_it_knew(table):
    write(table, who(0, 4), 1)
    assert table.apply_expire([7, 8], index=2) == 1
    assert len(table) == 0
    assert table.applied_index == 2


def test_a_producer_with_a_request_in_flight_is_no_candidate_and_cannot_expire(table):
    for producer in (7, 8, 9):
        write(table, who(0, 4, producer=producer), producer)
    begun(table, who(5, 9, producer=8))
    assert table.longest_idle(5) == [7, 9]
    assert table.longest_idle(1) == [7]
    assert table.idle_since(1) == [7, 9]
    with pytest.raises(AssertionError, match="producer 8 expires with 1 requests in flight"):
        table.expire([8])


def test_one_that_expires_already_is_no_candidate_again(table):
    write(table, who(0, 4), 1)
    table.expire([7])
    assert table.longest_idle() == []
    assert table.new_term(2) == []
    assert table.longest_idle() == [7]


def test_idle_is_who_applied_nothing_since(table):
    for index, (producer, now) in enumerate([(7, 100), (8, 200), (9, 300), (7, 400)], 1):
        table.apply(who(0, 4, producer=producer), index, -1, index=index, term=1, now=now)
    assert table.idle_since(200) == []
    assert table.idle_since(301) == [8, 9]
    assert table.idle_since(301, 1) == [8]
    assert table.idle_since(1000) == [8, 9, 7]


def full(table, producer):
    return table.decide(who(0, 4, producer=producer), 1).row.label == "table-full"


def test_room_counts_flights_of_new_producers_once(table):
    table.max_producers = 2
    write(table, who(0, 4), 1)
    begun(table, who(5, 9))
    begun(table, who(10, 14))
    assert not full(table, 8)
    begun(table, who(0, 4, producer=8))
    assert full(table, 9)
    assert not full(table, 7)
    assert not full(table, 8)


def test_room_given_by_an_expiry_is_taken_only_once(table):
    table.max_producers = 1
    write(table, who(0, 4), 1)
    assert full(table, 8)
    table.expire([7])
    assert not full(table, 8)
    begun(table, who(0, 4, producer=8))
    assert full(table, 9)
    assert full(table, 7), "it is on its way out"


def test_describe_is_plain_and_complete(table):
    write(table, who(0, 4), 1)
    table.park(begun(table, who(5, 9), 2), "a")
    assert table.describe() == {
        "rulebook": "reference",
        "applied_index": 1,
        "forgotten": False,
        "producers": {
            7: {
                "epoch": 0,
                "finished": [[0, 4, 10, 77]],
                "expiring": False,
                "in_flight": [
                    {
                        "epoch": 0,
                        "first": 5,
                        "last": 9,
                        "term": 1,
                        "index": 2,
                        "parked": 1,
                    }
                ],
            }
        },
    }


@pytest.fixture
def strict():
    return ProducerTable(RULEBOOKS["reference-strict"], 10)


def test_whether_anybody_was_forgotten_is_a_fact_that_reference_ignores(table):
    write(table, who(0, 4, producer=8), 1)
    before = table.decide(who(5, 9), 1)
    table.apply_expire([8], index=2)
    assert table.decide(who(5, 9), 1) is before


def test_strict_an_unknown_producer_resumes_only_where_it_was_forgotten(strict):
    """One that was forgotten opened the log to all, anywhere: 14 of 1,200 seeds with a short expiry
    failed, as clients take the success of a later batch for that of an earlier one."""
    write(strict, who(0, 4, producer=8), 1)
    refused = strict.decide(who(5, 9), 1)
    assert refused == Reject(RejectReason.GAP, refused.row, barrier=True)
    strict.apply_expire([9], index=2)
    assert strict.decide(who(5, 9, producer=9), 1) is refused, "nobody knew it"
    strict.apply_expire([8], index=3)
    assert strict.decide(who(5, 9), 1) is refused, "another one was forgotten"
    assert isinstance(strict.decide(who(5, 9, producer=8), 1), Accept)
    assert strict.decide(who(6, 9, producer=8), 1) is refused, "a batch before it is missing"
    assert strict.decide(who(5, 9, producer=8, epoch=1), 1) is refused, "as of any new epoch"
    assert isinstance(strict.decide(who(0, 9, producer=8, epoch=1), 1), Accept)


def test_strict_where_it_was_forgotten_last_counts(strict):
    for index, first in enumerate((0, 5), start=1):
        write(strict, who(first, first + 4), 3 * index)
        strict.apply_expire([7], index=3 * index + 1)
    assert isinstance(strict.decide(who(5, 9), 1), Reject)
    assert isinstance(strict.decide(who(10, 14), 1), Accept)


def test_strict_a_known_producer_without_an_epoch_is_unknown_to_one_with(strict):
    write(strict, who(0, 4, epoch=-1), 1)
    refused = strict.decide(who(5, 9), 1)
    assert refused == Reject(RejectReason.GAP, refused.row, barrier=True)
    strict.apply_expire([7], index=2)
    assert strict.decide(who(5, 9), 1) is refused
    assert isinstance(strict.decide(who(7, 9, epoch=-1), 1), Accept), "without order"


def test_strict_more_than_are_remembered_open_the_log_to_those_below_them(strict):
    forgotten = range(100, 100 + MOST + 1)
    for index, each in enumerate(forgotten, start=1):
        write(strict, who(0, 0, producer=each), index)
    strict.apply_expire([*forgotten], index=5000)
    for producer in (3, 100):
        assert isinstance(strict.decide(who(5, 9, producer=producer), 1), Accept)
    for producer in (101, 100 + MOST, 101 + MOST):
        assert isinstance(strict.decide(who(5, 9, producer=producer), 1), Reject)
    assert isinstance(strict.decide(who(1, 9, producer=101), 1), Accept)


def test_strict_a_decision_to_forget_counts_as_soon_as_it_lies_in_the_log(strict):
    write(strict, who(0, 4), 1)
    refused = strict.decide(who(5, 9, producer=8), 1)
    strict.expire([7])
    assert isinstance(strict.decide(who(5, 9), 1), Accept), "who is forgotten may resume"
    assert isinstance(strict.decide(who(9, 12), 1), Reject), "but not beyond"
    assert strict.decide(who(5, 9, producer=8), 1) is refused, "nobody else may"
    strict.keep([7])
    assert isinstance(strict.decide(who(0, 4), 1), Duplicate), "it was never made"
    strict.expire([7])
    strict.new_term(2)
    assert isinstance(strict.decide(who(0, 4), 2), Duplicate), "its leader is gone"
