"""The pipeline from seeds to gold on the engine of one machine.

Studies here are a few runs each; what is asked is which rows there are, and that they are those of
the runs that the simulator makes of the same seeds.
"""

import pytest

from ottla.sim.chance.choices import Drawn
from ottla.sim.settings.settings import RunConfig
from ottla.sim.studies.pipeline import in_batches
from ottla.sim.whole import run_whole
from studies_tiny import TINY, contents, study


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    pipeline = study(tmp_path_factory.mktemp("tiny"))
    yield pipeline
    pipeline.engine.close()


@pytest.mark.slow
def test_every_run_has_one_row(tiny):
    runs = contents(tiny, "runs")
    assert sorted((row["run_id"], row["seed"], row["variant"]) for row in runs) == [
        (run, run // 2, run % 2) for run in range(8)
    ]
    assert all(row["verdict"] == "ok" and row["judged"] and row["handed"] == 12 for row in runs)


def test_a_run_is_the_run_that_the_simulator_makes_of_its_seed(tiny):
    plain, _ = run_whole(Drawn(1), RunConfig(load_ms=1000, records=12, acks=-1))
    (row,) = (row for row in contents(tiny, "runs") if row["run_id"] == 3)
    assert row["digest"] == int.from_bytes(bytes.fromhex(plain.digest), "big", signed=True)
    assert row["events"] == len(plain.rows)


def test_gold_has_a_line_for_each_variant(tiny):
    kills = contents(tiny, "gold_kills")
    assert [(row["variant"], row["runs"], row["failed"]) for row in kills] == [(0, 4, 0), (1, 4, 0)]
    assert all(row["low"] == 0 and 0.5 < row["high"] < 0.65 for row in kills)


MUTANT = """
name = "early"
title = "Runs that end early"
question = "Is anything lost that nobody looked for?"
seeds = 3
swarm = true
[settings]
profile = "reference-strict"
load_ms = 2000
records = 60
mutants = "M06"
[answer]
sql = "SELECT COUNT(*) AS runs FROM runs"
text = "{runs} runs."
"""


@pytest.mark.slow
def test_what_a_run_that_an_anomaly_ends_has_lost_nobody_knows(tmp_path):
    """Its history ends before its logs were told: every acknowledged record counted as lost, and
    sim-I01 and I11 as broken, in Python as in SQL; later as one that is not lost."""
    pipeline = study(tmp_path, MUTANT, seeds=3)
    try:
        runs = contents(pipeline, "runs")
        broken = {(row["run_id"], row["invariant"]) for row in contents(pipeline, "verdicts")}
    finally:
        pipeline.engine.close()
    failed = [row for row in runs if row["verdict"] == "failed"]
    assert any(row["acknowledged"] for row in failed)
    assert {row["noticed"] for row in failed} == {"sim-I09"}
    assert all(row["reason"].startswith("sim-I09 at event ") for row in failed)
    assert all((row["lost"], row["copies"]) == (None, None) for row in failed)
    assert all(row["lost"] == 0 for row in runs if row not in failed)
    told = ("sim-I09", "sim-I52")  # the step that was not allowed is a row of its own
    assert broken == {(row["run_id"], each) for row in failed for each in told}


@pytest.mark.slow
def test_that_nothing_goes_wrong_is_a_word_in_the_table_of_variants(tmp_path, duck):
    """NULL there: a bar over `failure` was left out, and asking for 'none' found nothing."""
    plans = ["none", "all lose power"]
    text = TINY.replace("acks = [1, -1]", f"failure = {plans}").replace("1000", "7000")
    told = study(tmp_path / "grid", text, seeds=1, engine=duck)
    assert [row["failure"] for row in told.engine.rows("SELECT failure FROM variants")] == plans
    silent = study(tmp_path / "plain", seeds=1, engine=duck)
    assert {row["failure"] for row in contents(silent, "variants")} == {"none"}


@pytest.mark.slow
def test_no_batch_has_more_rows_than_allowed_but_for_one_wave(tmp_path):
    """A run has some 270 rows, a wave three runs; all are judged."""
    pipeline = study(tmp_path, batch_rows=1_700)
    try:
        for table in ("runs", "verdicts"):
            folders = sorted((tmp_path / "silver" / table).iterdir())
            assert [each.name for each in folders] == ["batch=00000", "batch=00001"]
        assert len(contents(pipeline, "runs")) == 8
    finally:
        pipeline.engine.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "batches"),
    [
        ([], [[]]),
        ([9], [[0]]),
        ([5, 5, 1], [[0, 1], [2]]),
        ([4, 7, 3, 0, 0], [[0], [1, 2, 3, 4]]),
        ([30, 1, 30], [[0], [1], [2]]),
    ],
)
def test_waves_are_put_in_batches_in_their_order(rows, batches):
    assert in_batches(rows, 10) == batches
