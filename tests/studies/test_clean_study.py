"""What study `clean` says of hand-made runs, one of which ended before anybody saw its logs."""

import pytest

from ottla.sim.studies.findings import table_of
from ottla.sim.studies.names import VARIANTS
from ottla.sim.studies.pairs import PAIRS, pairs_query
from ottla.sim.studies.sentences import answer
from ottla.sim.studies.sheets import GOLD
from ottla.sim.studies.study import catalogue, parse
from ottla.sim.sweeps.bounds import upper_bound
from studies_cases import make, put_silver, put_typed

STUDY = parse(catalogue()["clean"])


def run_of(seed, **others):
    return {
        "run_id": seed,
        "variant": 0,
        "seed": seed,
        "judged": True,
        "broke": 0,
        "verdict": "ok",
        "simulated_us": 3_600_000_000,
        "handed": 30,
        "acknowledged": 30,
        "lost": 0,
        "copies": 0,
        "faults": 5,
        "elections": 2,
        "events": 700,
        "steps": 900,
        **others,
    }


def fill(engine, runs):
    put_typed(engine, VARIANTS, {"variant": "BIGINT"}, [{"variant": 0}])
    put_silver(engine, {"silver runs": runs})
    engine.make(PAIRS, pairs_query(()))
    make(engine, GOLD, STUDY.text)


def test_what_nobody_looked_at_is_neither_lost_nor_whole(engine):
    cut_short = run_of(2, verdict="failed", noticed="sim-I35", lost=None, copies=None)
    fill(engine, [run_of(0), run_of(1), cut_short])
    said = answer(STUDY.answer, engine.rows(STUDY.answer.sql))
    assert said.startswith("1 of 3 seeds failed")
    assert said.endswith(
        "0 of 60 acknowledged records were lost (in 0 of 2 runs; with 95 % confidence at most 78 "
        "in 100 runs lose any), 0 stored twice (in 0 of them; with 95 % confidence at most 78 in "
        "100 runs store any twice), not counting 1 of the runs, which ended before their logs were "
        "read."
    )
    (asked,) = (each for each in STUDY.tables if each.title == "What the runs were")
    found = table_of("", engine.rows(asked.sql))
    heads = [each.head for each in found.columns]
    places = [heads.index(each) for each in ("verdict", "lost", "not looked at")]
    assert sorted(tuple(row[each] for each in places) for row in found.rows) == [
        ("failed", "\N{EN DASH}", "1"),
        ("ok", "0", "0"),
    ]


@pytest.mark.slow
def test_where_all_were_looked_at_nothing_is_said_of_it(engine):
    fill(engine, [run_of(0), run_of(1)])
    said = answer(STUDY.answer, engine.rows(STUDY.answer.sql))
    assert said.endswith("at most 78 in 100 runs store any twice).")

    fill(engine, [run_of(0), run_of(1, lost=2)])
    said = answer(STUDY.answer, engine.rows(STUDY.answer.sql))
    assert "2 of 60 acknowledged records were lost (in 1 of 2 runs; with 95 % confidence" in said
    assert "at most 98 in 100 runs lose any), 0 stored twice (in 0 of them; " in said


def test_the_table_bounds_what_it_counts_as_the_sentence_does(engine):
    fill(engine, [run_of(each) for each in range(20)])
    (asked,) = (each for each in STUDY.tables if each.title == "What the runs were")
    (row,) = engine.rows(asked.sql)
    for name in ("runs_with_loss_share", "runs_with_copies_share"):
        found = row[name], row[f"{name}_low"], row[f"{name}_high"]
        assert found == pytest.approx((0.0, 0.0, upper_bound(0, 20)))
