"""What study `failover` says of hand-made failovers, of which some ended for nobody.

Variants are run with the same seeds. One that has the same failovers as another says nothing new,
and makes no interval narrower.
"""

from dataclasses import replace

import pytest

from ottla.sim.studies.findings import table_of
from ottla.sim.studies.names import VARIANTS
from ottla.sim.studies.pairs import PAIRS, pairs_query
from ottla.sim.studies.sentences import answer
from ottla.sim.studies.sheets import GOLD, QUANTILES
from ottla.sim.studies.study import catalogue, parse
from ottla.sim.studies.worst import worst_runs
from studies_cases import make, put_silver, put_typed

STUDY = parse(catalogue()["failover"])
COLUMNS = ("variant", "election_timeout_ms", "heartbeat_ms", "rtt_us", "sync_us")
SEEDS = 50


def fill(engine, copies):
    """So many variants that differ in nothing that is seen; failovers of 1 to 100 ms in each, two
    a run, and one more that ended for nobody. The last variant has only such a one."""
    variants = [dict(zip(COLUMNS, (each, 500, each, 400, 300), strict=True)) for each in range(9)]
    runs = [
        {"run_id": seed * 9 + variant, "variant": variant, "seed": seed, "judged": True, "broke": 0}
        for seed in range(SEEDS)
        for variant in range(copies)
    ]
    failovers = [
        {
            "run_id": run["run_id"],
            "variant": run["variant"],
            "term": 2 + strike,
            "elections": 1,
            "ok_us": 1,
            "gave_up": 0,
            "detection_us": ms * 1_000,
            "total_us": ms * 1_000,
        }
        for run in runs
        for strike in range(2)
        for ms in [1 + 2 * run["seed"] + strike]
    ]
    vain = [{"run_id": each, "variant": each, "term": 4, "gave_up": 3} for each in (0, 8)]
    acked = [
        {"run_id": run["run_id"], "variant": run["variant"], "latency_us": 1_500 * run["seed"]}
        for run in runs
    ]
    put_typed(engine, VARIANTS, dict.fromkeys(COLUMNS, "BIGINT"), variants)
    put_silver(
        engine, {"silver runs": runs, "silver failovers": failovers + vain, "silver acked": acked}
    )
    engine.make(PAIRS, pairs_query(()))
    make(engine, GOLD, STUDY.text)
    make(engine, QUANTILES)


def drawn(engine):
    found = ([dict(row) for row in engine.rows(chart.sql)] for chart in STUDY.charts)
    return [[row for row in rows if row["y"]] for rows in found]


@pytest.fixture(scope="module")
def charts(engine):
    """Of one variant, and of eight that are copies of it; the tables are those of the eight."""
    found = []
    for copies in (1, 8):
        fill(engine, copies)
        found.append(drawn(engine))
    return found


@pytest.mark.slow
def test_the_interval_of_a_median_is_that_of_its_ranks(charts):
    (row,) = charts[0][0]
    assert (row["y"], row["low"], row["high"]) == (50, 41, 61)


def test_copies_of_a_draw_make_no_interval_narrower(charts):
    for once, often in zip(*charts, strict=True):
        assert len(once) == len(often) > 0
        for one, other in zip(once, often, strict=True):
            assert (one["series"], one["x"]) == (other["series"], other["x"])
            for each in ("y", "low", "high"):
                assert one[each] == pytest.approx(other[each], abs=1)


@pytest.mark.usefixtures("charts")
def test_failovers_that_ended_for_nobody_are_told(engine):
    said = answer(STUDY.answer, engine.rows(STUDY.answer.sql))
    assert "half of 800 failovers were over within 50 ms" in said
    assert (
        "election. In 2 more failovers no record that waited was acknowledged. The median" in said
    )
    (asked,) = STUDY.tables
    found = table_of("", engine.rows(asked.sql))
    heads = [each.head for each in found.columns]
    told = [
        (row[heads.index("failovers")], row[heads.index("nobody served")]) for row in found.rows
    ]
    assert told == [("100", "1"), *[("100", "0")] * 7, ("0", "1")]


def fill_with_one_in_vain(engine):
    """The outage of run 1 that ended for nobody comes before one of 95 s, those of the others end;
    run 3 had none."""
    variants = [dict.fromkeys(COLUMNS, 500) | {"variant": each} for each in range(4)]
    runs = [
        {"run_id": run, "variant": run, "seed": 0, "verdict": "ok", "lost": 0, "broke": 0}
        for run in range(4)
    ]
    phases = {"lost_us": 1_500_000, "detection_us": 400_000, "election_us": 5_000}
    failovers = [
        {"run_id": run, "variant": run, "term": term, **phases, **outage}
        for run, term, outage in (
            (0, 2, {"ok_us": 91_500_000, "gave_up": 7, "total_us": 90_000_000}),
            (1, 2, {"gave_up": 1}),
            (1, 3, {"ok_us": 96_500_000, "gave_up": 0, "total_us": 95_000_000}),
            (2, 2, {"ok_us": 1_501_000, "gave_up": 0, "total_us": 1_000}),
            (3, 2, {"gave_up": 0}),
        )
    ]
    put_typed(engine, VARIANTS, dict.fromkeys(COLUMNS, "BIGINT"), variants)
    put_silver(engine, {"silver runs": runs, "silver failovers": failovers})


def test_an_outage_that_ended_for_nobody_is_worse_than_any_that_ended(engine):
    fill_with_one_in_vain(engine)
    worst = worst_runs(STUDY, engine)
    assert [each.run_id for each in worst] == [1, 0, 2]
    assert worst[0].at == 1_500_000
    phases = "400 ms until a node starts an election, 5 ms until a leader that"
    slow = "For 90,000 ms, 180.0 times the election timeout, nobody serves, from 1.500 s on"
    vain = "From 1.500 s on, no record that waited was acknowledged, 1 was given up"
    assert [each.why for each in worst[:2]] == [
        f"{vain}: {phases} was to serve has won.",
        f"{slow}: {phases} serves has won.",
    ]


def test_it_is_so_too_where_a_study_does_not_say_what_is_worst(engine):
    fill_with_one_in_vain(engine)
    worst = worst_runs(replace(STUDY, worst=None), engine)
    assert [each.run_id for each in worst] == [1, 0, 2]
    told = (
        "verdict ok; 0 acknowledged records lost (any in 0 of 4 runs; with 95 % confidence at "
        "most 53 in 100 runs lose any);"
    )
    assert [each.why for each in worst] == [
        f"{told} no record that waited for a leader was acknowledged, 1 was given up",
        f"{told} longest without a leader that serves: 90,000 ms",
        f"{told} longest without a leader that serves: 1 ms",
    ]
