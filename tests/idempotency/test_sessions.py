"""`SessionTable`: each epoch by itself, batches by their last sequence, and what was begun counts.

What the rows say is in `test_rules.py`; here is what lies between them: apply, failures, changes of
term, snapshots. Batches are pid, epoch, first and last sequence.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.idempotency.decisions import Accept, Duplicate, Park
from ottla.idempotency.rulebooks import RULEBOOKS
from ottla.idempotency.sessions import make_table
from ottla.log.types import BatchIdentity

BOTH = ("redpanda-5157", "redpanda-22.1.3")


def fresh(profile):
    return make_table(RULEBOOKS[profile], 10)


def batch(*who):
    return BatchIdentity(*who)


def begun(table, who, index, term):
    assert isinstance(table.decide(who, term), Accept)
    in_flight = table.begin(who, term)
    table.enqueued(in_flight, index)
    return in_flight


def label(table, who, term):
    return table.decide(who, term).row.label


@pytest.mark.parametrize("profile", BOTH)
def test_an_old_epoch_goes_on_where_it_was(profile):
    table = fresh(profile)
    table.apply(batch(7, 0, 0, 4), 0, -1, index=1, term=1)
    table.apply(batch(7, 1, 0, 9), 5, -1, index=2, term=1)
    assert isinstance(table.decide(batch(7, 0, 5, 5), 1), Accept)
    table.apply(batch(7, 0, 5, 5), 15, -1, index=3, term=1)
    assert table.decide(batch(7, 0, 0, 4), 1)[0] == 0
    assert table.decide(batch(7, 1, 0, 9), 1)[0] == 5
    assert isinstance(table.decide(batch(7, 1, 10, 10), 1), Accept)


@pytest.mark.parametrize("profile", BOTH)
def test_the_base_offset_of_a_duplicate_is_counted_back_from_its_end(profile):
    table = fresh(profile)
    table.apply(batch(7, 0, 0, 4), 100, 77, index=1, term=1)
    decision = table.decide(batch(7, 0, 2, 4), 1)
    assert isinstance(decision, Duplicate)
    assert decision[:2] == (102, 77)


def test_a_copy_of_what_is_in_flight_parks_on_it():
    table = fresh("redpanda-5157")
    original = begun(table, batch(7, 0, 0, 4), 1, 1)
    decision = table.decide(batch(7, 0, 0, 4), 1)
    assert isinstance(decision, Park)
    assert decision.in_flight is original
    table.park(original, "copy")
    assert table.apply(batch(7, 0, 0, 4), 0, -1, index=1, term=1) == ["copy"]


def test_the_fix_forgets_what_an_earlier_leadership_began():
    table = fresh("redpanda-5157")
    begun(table, batch(7, 0, 0, 4), 1, 1)
    assert [each.identity.last_sequence for each in table.new_term(2)] == [4]
    assert label(table, batch(7, 0, 5, 9), 2) == "session-start-missing"
    assert label(table, batch(7, 0, 0, 4), 2) == "unknown-start"


def test_before_the_fix_a_batch_that_failed_leaves_a_hole():
    """A is truncated away with its leadership. The same node leads again: A's retry is refused, its
    successor is stored."""
    table = fresh("redpanda-22.1.3")
    failed = begun(table, batch(7, 0, 0, 4), 1, 1)
    assert table.abandon(failed) == ()
    assert table.new_term(2) == []
    assert label(table, batch(7, 0, 0, 4), 3) == "begun-without-offset"
    begun(table, batch(7, 0, 5, 9), 2, 3)
    assert table.apply(batch(7, 0, 5, 9), 0, -1, index=2, term=3) == ()
    assert label(table, batch(7, 0, 10, 14), 3) == "begun-next"
    assert label(table, batch(7, 0, 0, 4), 3) == "begun-without-offset"


def test_before_the_fix_an_offset_comes_with_whoever_stores_the_batch():
    table = fresh("redpanda-22.1.3")
    begun(table, batch(7, 0, 0, 4), 1, 1)
    begun(table, batch(7, 0, 5, 9), 2, 1)
    table.new_term(2)
    table.apply(batch(7, 0, 0, 4), 40, -1, index=3, term=2)
    assert table.decide(batch(7, 0, 0, 4), 3)[0] == 40
    assert label(table, batch(7, 0, 5, 9), 3) == "begun-without-offset"
    assert label(table, batch(7, 0, 10, 14), 3) == "begun-next"
    table.apply(batch(7, 0, 5, 9), 45, -1, index=4, term=2)
    table.apply(batch(7, 0, 10, 14), 50, -1, index=5, term=2)
    assert label(table, batch(7, 0, 15, 19), 3) == "begun-next"


def test_before_the_fix_what_another_leader_stored_is_the_new_tail():
    table = fresh("redpanda-22.1.3")
    begun(table, batch(7, 0, 0, 4), 1, 1)
    table.new_term(2)
    table.apply(batch(7, 0, 0, 1), 0, -1, index=2, term=2)
    table.apply(batch(7, 0, 2, 9), 2, -1, index=3, term=2)
    assert label(table, batch(7, 0, 10, 10), 3) == "begun-next"
    assert label(table, batch(7, 0, 5, 5), 3) == "begun-gap"


def test_before_the_fix_only_a_window_of_failures_is_remembered():
    table = fresh("redpanda-22.1.3")
    for n in range(8):
        begun(table, batch(7, 0, n, n), n + 1, n + 1)
        table.new_term(n + 2)
    assert [each.identity.last_sequence for each in table.in_flight()] == [3, 4, 5, 6, 7]


@pytest.mark.parametrize("profile", BOTH)
def test_who_is_forgotten_is_named_by_id_and_epoch(profile):
    table = fresh(profile)
    table.apply(batch(7, 0, 0, 4), 0, -1, index=1, term=1)
    table.apply(batch(7, 1, 0, 4), 5, -1, index=2, term=1)
    victims = table.longest_idle(1)
    assert table.told(victims) == [[7, 0]]
    table.expire(victims)
    assert label(table, batch(7, 0, 5, 5), 1) == "session-start-missing"
    assert table.apply_expire(table.told(victims), index=3) == 1
    assert list(table.describe()["producers"]) == ["7/1"]


SESSIONS = st.tuples(st.sampled_from([0, 7, 2**63 - 1]), st.sampled_from([-1, 0, 32767]))


@pytest.mark.slow
@pytest.mark.parametrize("profile", BOTH)
@given(written=st.lists(st.tuples(SESSIONS, st.integers(0, 20)), max_size=30), cut=st.integers(0))
def test_replicas_that_applied_the_same_are_the_same(profile, written, cut):
    """One applied all of it, one came in by a snapshot (sim-I25)."""
    one, other = fresh(profile), fresh(profile)
    cut %= len(written) + 1
    for index, ((pid, epoch), first) in enumerate(written, 1):
        if index == cut:
            other.restore(one.snapshot())
            assert other.snapshot() == one.snapshot()
        one.apply(batch(pid, epoch, first, first), index, -1, index=index, term=1)
        if index >= cut:
            other.apply(batch(pid, epoch, first, first), index, -1, index=index, term=1)
    assert other.digest() == one.digest()
    assert other.describe() == one.describe()
