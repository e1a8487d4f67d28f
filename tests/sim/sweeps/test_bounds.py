"""How often at most, once so many were hit of so many: against tables, and against its own law."""

import doctest

import pytest

from ottla.sim.sweeps import bounds
from ottla.sim.sweeps.bounds import RISK, bounded, interval, upper_bound


def test_examples():
    assert doctest.testmod(bounds).failed == 0
    assert doctest.testmod(bounds).attempted > 0


@pytest.mark.parametrize(
    ("hits", "runs", "share"),
    [
        (0, 1, 0.95),
        (0, 10, 0.25887),
        (0, 20, 0.13911),
        (0, 100, 0.029513),
        (1, 10, 0.39416),
        (2, 10, 0.50690),
        (5, 10, 0.77756),
        (1, 100, 0.046560),
        (10, 100, 0.163720),
        (10, 10, 1.0),
        (0, 0, 1.0),
    ],
)
def test_it_is_what_tables_of_clopper_and_pearson_say(hits, runs, share):
    assert upper_bound(hits, runs) == pytest.approx(share, rel=1e-4)


@pytest.mark.parametrize("runs", [1, 7, 420, 10_000, 1_000_000])
def test_so_few_come_up_once_in_twenty_times_at_the_bound(runs):
    assert (1 - upper_bound(0, runs)) ** runs == pytest.approx(RISK)


def test_the_rule_of_three():
    assert upper_bound(0, 12_345) * 12_345 == pytest.approx(3.0, abs=0.01)


def test_words_never_promise_more_than_the_bound():
    for runs in range(1, 3_000):
        few, of = bounded(runs).removeprefix("with 95 % confidence at most ").split(" in ")
        assert int(few) / int(of.replace(",", "")) >= upper_bound(0, runs) - 1e-9, runs


@pytest.mark.parametrize("tries", range(1, 60))
def test_an_interval_contains_its_share_and_ends_at_none_and_at_all(tries):
    for hits in range(tries + 1):
        share, low, high = interval(hits, tries)
        assert (low == 0) if hits == 0 else (0 < low < share)
        assert (high == 1) if hits == tries else (share < high < 1)


@pytest.mark.parametrize("runs", [1, 3, 20, 1_000])
def test_where_none_was_hit_a_table_says_what_a_sentence_says(runs):
    """The page of `clean` had Wilson's 17 % in its table and 14 in 100 in its sentence."""
    assert interval(0, runs)[2] == upper_bound(0, runs)
    assert interval(runs, runs)[1] == pytest.approx(1 - upper_bound(0, runs))


def test_some_hits_are_bounded_in_words_too():
    assert bounded(20, 3) == "with 95 % confidence at most 35 in 100"
    assert bounded(1_000, 1) == "with 95 % confidence at most 1 in 211"
    assert bounded(2, 2) == "with 95 % confidence at most 100 in 100"
