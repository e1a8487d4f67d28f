"""SQL and Python judge alike: labelled histories, changed real ones, the ones Hypothesis picks.

What silver tables say of losses is compared too, record by record, down to the row that cut a log:
Python's table of losses is worked out from the same histories.
"""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import studies_golden as golden
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.judge import judge
from ottla.sim.invariants.losses import losses
from ottla.sim.invariants.registry import INVARIANTS
from ottla.sim.studies import judging
from ottla.sim.studies.judging import Difference
from ottla.sim.studies.names import VERDICTS
from ottla.sim.studies.sheets import SILVER, sheet
from ottla.sim.studies.worst import command
from sim_histories import histories
from sim_perturb import perturbed
from studies_cases import Run, make_silver, put, write

ROUNDS = 3
TOOK = {
    "undecided": "in a log, not committed when the run ended",
    "never arrived": "never reached a log",
    "unknown": "unexplained",
}


def changed_runs():
    """Each run that is kept, three times, with one to five changes."""
    return [
        perturbed(events, Random(number * ROUNDS + times), 1 + 2 * times)
        for number, events in golden.kept().items()
        for times in range(ROUNDS)
    ]


@pytest.fixture(scope="module", params=["duck", pytest.param("spark", marks=pytest.mark.slow)])
def engine(request):
    """Spark takes minutes for all statements on all histories."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def judged(engine, tmp_path_factory):
    """Histories that the engine has judged: labelled ones, real ones, and those changed."""
    runs = [*(each.events for each in histories()), *golden.kept().values(), *changed_runs()]
    judge_all(engine, runs, tmp_path_factory.mktemp("judged"))
    return runs


def judge_all(engine, runs, out):
    folder = write([Run(events) for events in runs], out / "bronze")
    judging.judge_waves(engine, [folder], out / VERDICTS)
    make_silver(engine, folder, "runs python_verdicts acked")
    engine.define(VERDICTS, [out / VERDICTS])


@pytest.mark.slow
def test_sql_says_what_python_says(engine, judged):
    assert judging.differences(engine) == []
    told = {(run, each) for run, events in enumerate(judged) for each in judge(events).broken}
    found = engine.rows(f"SELECT run_id, invariant, n FROM {VERDICTS}")
    assert {(row["run_id"], row["invariant"]) for row in found} == told
    assert all(row["n"] > 0 for row in found)
    assert len({each for _, each in told}) > len(judging.judged()) - 3, "too little is broken"


def test_what_is_lost_and_what_took_it_is_what_python_says(engine, judged):
    """Record by record, down to the row that cut the log."""
    found: Counter[tuple[int, int, str]] = Counter()
    for row in engine.rows("SELECT * FROM acked WHERE lost = 1"):
        found[row["run_id"], row["acks"], said(row)] += 1
    expected: Counter[tuple[int, int, str]] = Counter()
    for run, events in enumerate(judged):
        for each in losses(Index(events)):
            for reason, count in each.explained:
                expected[run, each.acks, short(reason)] += count
    assert +found == +expected
    assert len({key[2].partition(" ")[0] for key in +found}) > 4, "too little is lost"


def said(row):
    if row["took"] in ("truncate", "crash"):
        return f"{row['took']} (row {row['took_eid']})"
    return f"refused: {row['took_code']}" if row["took"] == "refused" else TOOK[row["took"]]


def short(reason):
    """Without the node, which the row tells."""
    kind, on, rest = reason.partition(" on node ")
    return f"{kind} {rest.partition(' ')[2]}" if on else reason


def test_how_many_were_acknowledged_and_lost_is_what_python_says(engine, judged):
    found = {
        (row["run_id"], row["acks"]): (row["n"], row["lost"])
        for row in engine.rows(
            "SELECT run_id, acks, COUNT(*) AS n, CAST(COALESCE(SUM(lost), 0) AS BIGINT) AS lost "
            "FROM acked GROUP BY run_id, acks"
        )
    }
    assert found == {
        (run, each.acks): (each.acknowledged, each.lost)
        for run, events in enumerate(judged)
        for each in losses(Index(events))
    }


@pytest.mark.slow
@settings(max_examples=8)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(golden.kept())), st.integers(0, 1 << 32), st.integers(1, 6)
        ),
        min_size=1,
        max_size=12,
    )
)
def test_sql_says_what_python_says_of_histories_that_nobody_thought_of(
    duck, tmp_path_factory, picked
):
    kept = golden.kept()
    runs = [perturbed(kept[run], Random(seed), times) for run, seed, times in picked]
    judge_all(duck, runs, tmp_path_factory.mktemp("picked"))
    assert judging.differences(duck) == []


def test_a_difference_names_the_run_the_invariant_and_how_to_do_it_again(duck):
    put(duck, SILVER, "runs", [{"run_id": 7, "seed": 3, "variant": 1}, {"run_id": 8}])
    put(duck, SILVER, "python_verdicts", [
        {"run_id": 7, "invariant": "sim-I01"}, {"run_id": 7, "invariant": "sim-I02"},
    ])  # fmt: skip
    put(duck, "judging", VERDICTS, [
        {"run_id": 7, "invariant": "sim-I01"}, {"run_id": 7, "invariant": "sim-I04"},
    ])  # fmt: skip
    found = judging.differences(duck)
    assert found == [
        Difference(7, 3, 1, "sim-I02", "Python"),
        Difference(7, 3, 1, "sim-I04", "SQL"),
    ]
    study = golden.study()
    again = command(study.variants[1], 3, swarm=False)
    assert found[0].told(study) == (
        f"Python finds sim-I02 broken in run 7 (variant 1), SQL does not: {again}"
    )
    assert found[1].told(study).startswith("SQL finds sim-I04 broken in run 7 (variant 1), Python")


def own_verdicts(duck, rows, broken):
    """Judged runs with what they said of themselves, and what both judges find in run 0."""
    plain = {"seed": 3, "variant": 1, "judged": True, "verdict": "failed", "lost": 0}
    runs = [{"run_id": run, **plain, **row} for run, row in enumerate(rows)]
    put(duck, SILVER, "runs", runs)
    for layer, table in ((SILVER, "python_verdicts"), ("judging", VERDICTS)):
        put(duck, layer, table, [{"run_id": 0, "invariant": each} for each in broken])
    return judging.differences(duck)


def test_a_run_that_calls_itself_ok_while_both_judges_do_not_is_a_difference(duck):
    found = own_verdicts(duck, [{"verdict": "ok"}, {"verdict": "ok"}], ["sim-I01"])
    assert found == [Difference(0, 3, 1, "sim-I01", "SQL and Python")]
    told = "SQL and Python find sim-I01 broken in run 0 (variant 1), whose own verdict is ok: ottla"
    assert found[0].told(golden.study()).startswith(told)
    assert own_verdicts(duck, [{"verdict": "weakened"}], ["sim-I01"]) == []
    assert own_verdicts(duck, [{"noticed": "sim-I01"}], ["sim-I01", "sim-I02"]) == []


def test_what_a_run_noticed_and_nobody_finds_in_its_history_is_a_difference(duck):
    found = own_verdicts(duck, [{}, {"noticed": "sim-I24"}], [])
    assert found == [Difference(1, 3, 1, "sim-I24", "the run")]
    told = "run 1 (variant 1) noticed that sim-I24 is broken, SQL and Python do not find it: ottla"
    assert found[0].told(golden.study()).startswith(told)
    assert own_verdicts(duck, [{"noticed": "sim-I31"}], []) != []


@pytest.mark.parametrize(
    "row",
    [
        {"noticed": "sim-I00"},
        {"noticed": "sim-I31", "lost": None},
        {"noticed": "sim-I24", "judged": False},
        {"noticed": None},
    ],
    ids=["the broker broke", "it came to no rest", "it is not judged", "older bronze"],
)
def test_what_no_history_shows_is_no_difference(duck, row):
    assert own_verdicts(duck, [row], []) == []


@pytest.mark.parametrize(("many", "more"), [(0, None), (3, None), (4, 1), (1_203, 1_200)])
def test_three_differences_are_told_and_all_are_counted(duck, many, more):
    put(duck, SILVER, "runs", [{"run_id": run, "seed": 3, "variant": 1} for run in range(many)])
    put(duck, SILVER, "python_verdicts", [
        {"run_id": run, "invariant": "sim-I02"} for run in range(many)
    ])  # fmt: skip
    put(duck, "judging", VERDICTS, [])
    told = judging.differences_told(duck, golden.study())
    assert told.count("Python finds") == min(many, 3)
    assert told.endswith(f"; and {more:,} more") if more else " more" not in told


def test_every_invariant_that_is_judged_has_a_statement():
    assert set(judging.judged()) == {each.id for each in INVARIANTS if each.judge is not None}
    assert all(f"'{each}'" in judging.verdict(each) for each in judging.judged())


@pytest.mark.slow
def test_only_judged_runs_are_judged(duck, tmp_path):
    from pyarrow import parquet

    broken = next(each for each in histories() if "sim-I01" in each.broken)
    folder = write([Run(broken.events), Run(broken.events)], tmp_path / "bronze")
    path = folder / "part-0.parquet"
    rows = parquet.read_table(path)
    only = [run == 1 for run in rows["run_id"].to_pylist()]
    rows = rows.set_column(3, rows.schema.field(3), [only])
    parquet.write_table(rows, path)
    judging.judge_waves(duck, [folder], tmp_path / VERDICTS)
    duck.define(VERDICTS, [tmp_path / VERDICTS], sheet("judging", VERDICTS).types)
    assert {row["run_id"] for row in duck.rows(f"SELECT * FROM {VERDICTS}")} == {1}
