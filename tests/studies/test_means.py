"""The 95 % intervals of means, in the studies that draw them: Student's, over seeds.

With three seeds 1.96 standard errors on each side would hold the true mean 81 times in 100. What is
drawn is held against tabled quantiles, and Python's own `statistics`.
"""

from math import sqrt
from statistics import mean, stdev

import pytest

from ottla.sim.studies.names import STUDENT_T, VARIANTS
from ottla.sim.studies.sheets import QUANTILES
from ottla.sim.studies.study import catalogue, parse
from studies_cases import make, put_silver, put_typed

TABLED = {1: 12.706, 2: 4.303, 3: 3.182, 9: 2.262, 10: 2.228, 30: 2.042, 100: 1.984, 1000: 1.962}
T_OF_THREE = 4.30265
VALUES = (30.0, 36.0, 33.0)
"""One of each seed."""


def test_student_s_t_is_what_tables_say(engine):
    make(engine, QUANTILES)
    rows = engine.rows(f"SELECT degrees, t FROM {STUDENT_T} ORDER BY degrees")
    found = {row["degrees"]: round(row["t"], 3) for row in rows}
    assert {each: found[each] for each in TABLED} == TABLED
    assert [row["degrees"] for row in rows] == list(range(1, 1001))
    told = [row["t"] for row in rows]
    assert told == sorted(told, reverse=True)
    assert told[-1] > 1.96


def lost(engine, values):
    """Study `acks`: so many records lost with each seed."""
    types = {"variant": "BIGINT", "acks": "BIGINT", "line": "VARCHAR", "flush": "VARCHAR"}
    one = {"variant": 0, "acks": 1, "line": "acks=1", "flush": "each-turn", "failure": "none"}
    put_typed(engine, VARIANTS, {**types, "failure": "VARCHAR"}, [one])
    runs = [{"run_id": n, "variant": 0, "seed": n, "lost": each} for n, each in enumerate(values)]
    put_silver(engine, {"silver runs": runs})


def waited(engine, values):
    """Study `failover`: so many percent of records wait for longer than 2 ms, with each seed."""
    names = ("variant", "election_timeout_ms", "rtt_us", "sync_us")
    row = dict(zip(names, (0, 500, 400, 300), strict=True))
    put_typed(engine, VARIANTS, dict.fromkeys(names, "BIGINT"), [row])
    acked = [
        {"run_id": n, "variant": 0, "latency_us": 2_001 if place < each else 1}
        for n, each in enumerate(values)
        for place in range(100)
    ]
    runs = [{"run_id": n, "variant": 0, "seed": n} for n, _ in enumerate(values)]
    put_silver(engine, {"silver runs": runs, "silver acked": acked})


def latency(engine, values):
    """Study `idempotence`: so many times the latency of the baseline, with each seed."""
    types = {"variant": "BIGINT", "profile": "VARCHAR", "idempotent": "BOOLEAN"}
    at = {"load_ms": 1_560, "in_flight": 5}
    brokers = (("reference", False), ("redpanda-5157", True))
    named = [
        {"variant": n, "profile": profile, "idempotent": idempotent, **at}
        for n, (profile, idempotent) in enumerate(brokers)
    ]
    put_typed(engine, VARIANTS, {**types, **dict.fromkeys(at, "BIGINT")}, named)
    runs = [
        {"run_id": 2 * n + variant, "variant": variant, "seed": n}
        for n, _ in enumerate(values)
        for variant in (0, 1)
    ]
    acked = [
        {
            "run_id": run["run_id"],
            "variant": run["variant"],
            "op": 40,
            "latency_us": int(values[run["seed"]]) if run["variant"] else 1,
        }
        for run in runs
    ]
    put_silver(engine, {"silver runs": runs, "silver acked": acked})


def rate(engine, values):
    """Study `pipelining`: so many records a second, with each seed."""
    names = ("variant", "client_rtt_us", "in_flight", "batch_records")
    row = dict(zip(names, (0, 70_000, 1, 85), strict=True))
    types = {**dict.fromkeys(names, "BIGINT"), "idempotent": "BOOLEAN"}
    put_typed(engine, VARIANTS, types, [{**row, "idempotent": False}])
    requests = [
        {
            "run_id": n,
            "variant": 0,
            "outcome": "ok",
            "latency_us": 70_000,
            "done_us": 1 + last * round(85 * 10_000_000 / each),
        }
        for n, each in enumerate(values)
        for last in (0, 1)
    ]
    put_silver(engine, {"silver requests": requests})


STUDIES = {"acks": lost, "failover": waited, "idempotence": latency, "pipelining": rate}
"""Each with what puts values into its tables, one a seed."""
CHARTED = {"failover": -1}
"""Which of its charts is one of means over seeds; the first, if not said."""


def drawn(engine, name, values):
    """The interval of the only point that is not a published one, and its middle."""
    make(engine, QUANTILES)
    STUDIES[name](engine, values)
    chart = parse(catalogue()[name]).charts[CHARTED.get(name, 0)]
    rows = [row for row in engine.rows(chart.sql) if not row.get("published")]
    assert len(rows) == 1
    return rows[0]["y"], rows[0]["low"], rows[0]["high"]


@pytest.mark.parametrize("name", STUDIES)
def test_the_interval_of_three_seeds_is_student_s(engine, name):
    reach = T_OF_THREE * stdev(VALUES) / sqrt(3)
    expected = (mean(VALUES), mean(VALUES) - reach, mean(VALUES) + reach)
    assert drawn(engine, name, VALUES) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", STUDIES)
def test_one_seed_has_no_interval(duck, name):
    assert drawn(duck, name, VALUES[:1]) == (pytest.approx(VALUES[0]), None, None)


def test_no_interval_of_a_ratio_goes_below_nothing(engine):
    """Of two seeds far apart 12.7 standard errors reach below 0: the table said so."""
    _, low, high = drawn(engine, "idempotence", (2.0, 40.0))
    (row,) = engine.rows(parse(catalogue()["idempotence"]).tables[0].sql)[1:]
    assert low == row["times_the_baseline_low"] == 0
    assert high == pytest.approx(row["times_the_baseline_high"])


def test_tables_have_the_intervals_that_charts_have(duck):
    for name, column in (
        ("idempotence", "times_the_baseline"),
        ("pipelining", "records_per_second"),
    ):
        y, low, high = drawn(duck, name, VALUES)
        table = parse(catalogue()[name]).tables[0]
        row = duck.rows(table.sql)[-1]
        found = (row[column], row[f"{column}_low"], row[f"{column}_high"])
        assert found == pytest.approx((y, low, high))
