"""Which replicas are in sync: Kafka's lag rule, with many appends under way and with none.

A dumb model that keeps the whole history of the log end says when a follower may not count as in
sync; the examples say when it must.
"""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ottla.broker.partition.in_sync import InSync

LAG = 100


@pytest.fixture
def view():
    """Node 1 leads since time 1000, its log ends at 5."""
    view = InSync(LAG, (1, 2, 3), 1)
    view.begin(1000, 5)
    return view


def test_all_voters_count_for_one_lag_time_from_the_start_of_a_leadership(view):
    assert view.in_sync(1000 + LAG) == (1, 2, 3)
    assert view.in_sync(1001 + LAG) == (1,)


def test_who_acknowledged_the_log_end_is_in_sync_for_one_lag_time(view):
    view.appended(6, 1010)
    view.note(2, 6, 6, 1050)
    assert view.in_sync(1050 + LAG) == (1, 2)
    assert view.in_sync(1051 + LAG) == (1,)


def test_who_never_reaches_the_log_end_falls_out(view):
    end = 5
    for now in range(1010, 1300, 10):
        end += 10
        view.appended(end, now)
        view.note(2, end, end, now)
        view.note(3, 5 + (now - 1010) // 10, end, now)
    assert view.in_sync(1300) == (1, 2)


@pytest.mark.parametrize("delay", [0, 1, 30, 45])
def test_who_is_steadily_behind_by_less_than_half_the_lag_stays_in_sync(view, delay):
    for now in range(1001, 1600):
        view.appended(now, now)
        if now - delay > 1000:
            view.note(2, now - delay, now, now)
        assert 2 in view.in_sync(now)


def test_who_is_steadily_behind_by_more_than_the_lag_falls_out(view):
    for now in range(1001, 1600):
        view.appended(now, now)
        if now - 120 > 1000:
            view.note(2, now - 120, now, now)
    assert view.in_sync(1600) == (1,)


def test_who_idles_along_stays_in_sync_as_long_as_it_is_heard_of(view):
    view.note(2, 5, 5, 1010)
    view.note(3, 5, 5, 1010)
    for now in range(1060, 2000, 50):
        view.contact(2, now)
    assert view.in_sync(2000) == (1, 2)


def test_who_idled_along_may_take_the_lag_time_for_the_next_append(view):
    view.note(2, 5, 5, 1010)
    view.note(3, 5, 5, 1010)
    view.contact(2, 1105)
    view.appended(6, 1200)
    assert view.in_sync(1200 + LAG) == (1, 2)
    assert view.in_sync(1201 + LAG) == (1,)


def test_life_is_not_enough_for_who_lacks_records(view):
    view.appended(6, 1001)
    for now in range(1010, 1300, 10):
        view.contact(2, now)
    assert view.in_sync(1300) == (1,)


def test_old_news_changes_nothing(view):
    view.note(2, 5, 5, 1090)
    view.contact(2, 1050)
    view.note(2, 3, 5, 1095)
    assert view.in_sync(1090 + LAG) == (1, 2)


def test_who_catches_up_comes_back(view):
    view.appended(6, 1001)
    assert not view.below_minimum(2, 1050)
    assert view.below_minimum(2, 1200)
    view.note(3, 6, 6, 1201)
    assert not view.below_minimum(2, 1201)
    assert view.in_sync(1201) == (1, 3)


def test_the_minimum_is_never_more_than_there_are_replicas():
    single = InSync(LAG, (1,), 1)
    single.begin(0, 0)
    assert not single.below_minimum(2, 10**9)
    assert single.in_sync(10**9) == (1,)


def test_each_minimum_is_held_against_the_same_count(view):
    view.note(2, 5, 5, 1090)
    now = 1101
    assert [view.below_minimum(minimum, now) for minimum in (0, 1, 2, 3, 4)] == [
        *(False, False, False),
        *(True, True),
    ]


def test_a_new_leadership_starts_afresh(view):
    view.appended(6, 1001)
    assert view.below_minimum(3, 1500)
    view.begin(1600, 6)
    assert not view.below_minimum(3, 1600)


def test_a_stranger_is_not_noted(view):
    view.note(9, 5, 5, 1001)
    view.contact(9, 1002)
    assert view.in_sync(1003) == (1, 2, 3)


events = st.lists(
    st.tuples(
        st.sampled_from(["append", "note", "contact"]),
        st.sampled_from([2, 3]),
        st.integers(0, 60),
        st.integers(0, 4),
    )
)


@given(events)
@example([("note", 2, 50, 0), ("note", 2, 51, 0), ("append", 2, 0, 0)])  # a search may miss P44
def test_in_sync_means_it_held_all_the_log_had_a_lag_time_ago(taken):
    """The dumb model keeps every log end with its time, and each follower's highest match."""
    view = InSync(LAG, (1, 2, 3), 1)
    view.begin(0, 0)
    now, end, matches, ends = 0, 0, {2: 0, 3: 0}, [(0, 0)]
    for event, follower, passed, amount in taken:
        now += passed
        if event == "append":
            end += amount
            ends.append((now, end))
            view.appended(end, now)
        elif event == "note":
            matches[follower] = min(end, matches[follower] + amount)
            view.note(follower, matches[follower], end, now)
        else:
            view.contact(follower, now)
        members = view.in_sync(now)
        end_then = max(e for at, e in ends if at < max(1, now - LAG))
        for node, match in matches.items():
            if node in members and now > LAG:
                assert match >= end_then
        count = len(members)
        assert [view.below_minimum(m, now) for m in (1, 2, 3)] == [m > count for m in (1, 2, 3)]
