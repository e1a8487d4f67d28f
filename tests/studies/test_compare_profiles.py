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
    make(engine, GOLD)


def test_the_sentence_counts_what_only_one_of_them_answered(engine):
    said = answer(STUDY.answer, engine.rows(STUDY.answer.sql))
    assert said == (
        "No pair of profiles differs in more seeds than reference and redpanda-22.1.3: in 1 of 2 "
        "some answer, or what was decided behind it, is another (50.00\u00a0% of 4 compared; of "
        "those that differ 1 was given by only one of the two); other pairs in as many. "
        "None differs in fewer than reference-strict and redpanda-5157: in 0, others in as few."
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
        for series in ("another decision", "an answer of one alone")
        for profile in PROFILES[:3]
    }


def test_the_first_difference_of_a_seed_is_where_they_part(engine):
    table = table_of("", engine.rows(STUDY.tables[0].sql))
    assert table.rows == tuple(
        (profile, "redpanda-22.1.3", "accept", "NONE", "gap", "NONE", "1")
        for profile in PROFILES[:3]
    )


def test_the_worst_run_says_how_many_answers_are_not_the_same(engine):
    first, *_ = worst_runs(STUDY, engine)
    assert (first.seed, first.at, first.partition) == (8, 1_000, 0)
    assert first.why == (
        "Of 2 answers that it or profile redpanda-22.1.3 gave with the same seed, 2 are not the "
        "same, or what was decided behind them is not; 1 of them only one of the two gave. The "
        "first: at 0.001 s."
    )
