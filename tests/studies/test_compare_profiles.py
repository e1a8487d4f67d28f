"""What study `compare-profiles` says of hand-made answers, where one profile gives some alone.

Such an answer counts as another one, as in table differences: a join of the two profiles' answers
left it out of every figure.
"""

import pytest

from ottla.sim.studies.findings import table_of
from ottla.sim.studies.names import VARIANTS
from ottla.sim.studies.pairs import PAIRS, pairs_query
from ottla.sim.studies.sentences import answer
from ottla.sim.studies.sheets import GOLD
from ottla.sim.studies.study import catalogue, parse
from ottla.sim.studies.worst import worst_runs
from studies_cases import make, put_silver, put_typed

STUDY = parse(catalogue()["compare-profiles"])
PROFILES = ("reference", "reference-strict", "redpanda-5157", "redpanda-22.1.3")
SEEDS = (7, 8)


def rows_of_answers():
    """Each profile answers the same, but the last one: with seed 8 it never answers the second
    batch, and decides otherwise about the first."""
    for variant, _ in enumerate(PROFILES):
        for seed in SEEDS:
            other = variant == 3 and seed == 8
            for op, decided in ((0, "gap" if other else "accept"), (4, "accept")):
                if not (other and op):
                    yield {
                        "run_id": (seed - 7) * 4 + variant,
                        "variant": variant,
                        "seed": seed,
                        "client": 1,
                        "partition": 0,
                        "op": op,
                        "nth": 1,
                        "t_us": 1_000 + op,
                        "code": "NONE",
                        "decided": decided,
                    }


@pytest.fixture(scope="module", autouse=True)
def made(engine):
    runs = [
        {
            "run_id": (seed - 7) * 4 + variant,
            "variant": variant,
            "seed": seed,
            "judged": True,
            "broke": 0,
            "verdict": "ok",
            "digest": (seed - 7) * 4 + variant,
        }
        for seed in SEEDS
        for variant, _ in enumerate(PROFILES)
    ]
    put_silver(engine, {"silver runs": runs, "silver answers": list(rows_of_answers())})
    types = {"variant": "BIGINT", "profile": "VARCHAR"}
    named = [{"variant": number, "profile": each} for number, each in enumerate(PROFILES)]
    put_typed(engine, VARIANTS, types, named)
    engine.make(PAIRS, pairs_query(STUDY.variants))
    make(engine, GOLD, f"{STUDY.text} gold_differences")


def test_the_sentence_counts_what_only_one_of_them_answered(engine):
    said = answer(STUDY.answer, engine.rows(STUDY.answer.sql))
    assert said == (
        "Profiles reference and redpanda-22.1.3 differ in the most seeds: in 1 of 2 at least one "
        "answer, or the decision behind it, is not the same (50.00\u00a0% of 4 answers compared; 1 "
        "of the differing answers was given by only one of the two); other pairs differ in as many "
        "seeds. Profiles reference-strict and redpanda-5157 differ in the fewest: in 0, as do "
        "other pairs."
    )


def test_it_is_counted_as_table_differences_counts_it(engine):
    (counted,) = engine.rows("SELECT SUM(times) AS n, MIN(asked) AS asked FROM gold_differences")
    (parted,) = engine.rows("SELECT SUM(differing) AS n, SUM(alone) AS alone FROM gold_partings")
    assert (counted["n"], counted["asked"]) == (6, 4)
    assert (parted["n"], parted["alone"]) == (6, 3)


def test_the_chart_tells_silence_from_another_answer(engine):
    (chart,) = STUDY.charts
    found = {(row["series"], row["x"]): row["y"] for row in engine.rows(chart.sql) if row["y"] > 0}
    assert found == {
        (series, f"{profile}, redpanda-22.1.3"): 50
        for series in ("a different decision", "an answer that only one gave")
        for profile in PROFILES[:3]
    }


def test_the_first_difference_of_a_seed_is_where_they_part(engine):
    table = table_of("", engine.rows(STUDY.tables[0].sql))
    assert table.rows == tuple(
        (profile, "redpanda-22.1.3", "accept", "NONE", "gap", "NONE", "1")
        for profile in PROFILES[:3]
    )


def test_headings_say_whose_decision_and_whose_answer(engine):
    """They said `one decides` and `and answers`."""
    table = table_of("", engine.rows(STUDY.tables[0].sql))
    assert [each.head for each in table.columns] == [
        "first profile",
        "second profile",
        "decision of the first",
        "answer of the first",
        "decision of the second",
        "answer of the second",
        "seeds",
    ]


def test_the_worst_run_says_how_many_answers_are_not_the_same(engine):
    first, *_ = worst_runs(STUDY, engine)
    assert (first.seed, first.at, first.partition) == (8, 1_000, 0)
    assert first.why == (
        "Compared with profile redpanda-22.1.3 under the same seed, 2 of 2 answers differ, in the "
        "answer itself or in the decision behind it; 1 of these was given by only one of the two. "
        "The first difference is at 0.001 s."
    )
