"""Which runs SQL judges: all of a small study, else whatever failed and a share of the others.

The share is drawn by a hash of the run, so it is the same wherever and whenever it is asked for.
"""

import pytest

from ottla.sim.studies.bronze import Work, histories
from ottla.sim.studies.plan import JUDGED_WHOLLY, SHARE, plan_of
from ottla.sim.studies.study import parse
from studies_tiny import TINY, contents, study

RUNS = 10_000
LONE = TINY.replace("[grid]\nacks = [1, -1]\n", "")
"""Without variants: a seed is a run."""
EARLY = TINY.replace("acks = [1, -1]", 'mutants = ["", "M06"]')
"""Every other run fails."""


def chosen(share, first=0, runs=range(RUNS)):
    work = Work(TINY, first, share)
    return [run for run in runs if work.chosen(run)]


def test_the_share_is_near_what_was_asked_and_of_every_kind_of_run():
    drawn = chosen(SHARE)
    assert 400 < len(drawn) < 600
    for variant in (0, 1):
        assert 200 < sum(run % 2 == variant for run in drawn) < 300
    for begin in range(0, RUNS, 1_000):
        assert 20 < sum(begin <= run < begin + 1_000 for run in drawn) < 80


def test_which_runs_are_drawn_is_the_same_each_time_and_another_where_seeds_are_others():
    drawn = chosen(SHARE)
    assert chosen(SHARE) == drawn
    assert chosen(SHARE, runs=reversed(range(RUNS))) == drawn[::-1]
    assert len(set(drawn) & set(chosen(SHARE, first=1))) < 60
    assert set(drawn) < set(chosen(2 * SHARE))


def test_a_share_of_nothing_is_no_run_and_of_all_every_one():
    assert chosen(0.0) == []
    assert chosen(1.0) == list(range(RUNS))


@pytest.mark.slow
def test_a_run_that_failed_is_judged_whatever_the_share(tmp_path):
    """And what it has broken is kept, by Python with its history, and by SQL."""
    found = study(tmp_path, EARLY, share=0.0)
    try:
        runs = contents(found, "runs")
        judged = {row["run_id"] for row in contents(found, "verdicts")}
    finally:
        found.engine.close()
    failed = {row["run_id"] for row in runs if row["verdict"] == "failed"}
    assert failed == {1, 3, 5, 7}
    assert len(runs) == 8
    assert {row["run_id"] for row in runs if row["judged"]} == failed
    assert judged == failed
    events = [
        row
        for batch in histories(Work(EARLY, 0, 0.0), range(8))
        for row in batch.select(["run_id", "kind"]).to_pylist()
    ]
    assert {row["run_id"] for row in events if row["kind"] == "verdict"} == failed


@pytest.mark.parametrize(
    ("runs", "share"), [(1, 1.0), (JUDGED_WHOLLY, 1.0), (JUDGED_WHOLLY + 1, SHARE)]
)
def test_a_small_study_is_judged_wholly_and_a_share_of_a_larger_one(runs, share):
    assert plan_of(parse(LONE), runs, 0).share == share
    assert all(plan_of(parse(LONE), runs, 0, asked).share == asked for asked in (0.0, 0.5, 1.0))


def test_it_is_runs_that_count_and_not_seeds():
    seeds = JUDGED_WHOLLY // 2
    assert [plan_of(parse(TINY), each, 0).share for each in (seeds, seeds + 1)] == [1.0, SHARE]


def test_the_numbers_are_those_of_the_documentation():
    """`docs/reference/studies.md`, at --share."""
    assert (JUDGED_WHOLLY, SHARE) == (2_000, 0.05)
