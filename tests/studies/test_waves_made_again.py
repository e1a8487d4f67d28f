"""A wave that is made again may have other rows: what was made of it before is made again, too.

A run that its process died of for want of memory lives the second time. Silver kept its old row;
and as batches are told by rows, waves lay in two of them and were counted twice, or in none.
"""

import json

import pytest
from pyarrow import Table, parquet

from ottla.sim.studies.bronze import Work, histories
from ottla.sim.studies.lake import Lake, made, making
from ottla.sim.studies.pipeline import Pipeline
from ottla.sim.studies.plan import plan_of
from ottla.sim.studies.sheets import GOLD, JUDGING, SILVER, sheets
from ottla.sim.studies.study import parse
from studies_tiny import SEEDS, TINY, WAVE, contents

pytestmark = pytest.mark.slow

PREFIXES = {SILVER: "", JUDGING: "", GOLD: "gold_"}
TABLES = [
    prefix + each.name
    for layer, prefix in PREFIXES.items()
    for each in sheets(layer)
    if not each.shared
]
IN_ONE, IN_TWO, IN_THREE = 10_000, 1_250, 1_000
"""Rows of a batch: with all runs alive three waves are so many batches."""
LIVING, ONE_DEAD, ALL_DEAD = (), (1,), (0, 1, 2)
MADE_AGAIN = "not known to be made of the waves that are there; made again"


def done(out, engine, deadly, batch_rows):
    """A study whose first wave was made with such runs; all its tables, and what was said."""
    lake = Lake(out, plan_of(parse(TINY), SEEDS, 0, wave=WAVE, batch_rows=batch_rows))
    try:
        with making(lake.bronze(0)) as folder:
            rows = Table.from_batches(histories(Work(TINY, 0, 1.0, deadly), range(WAVE)))
            parquet.write_table(rows, folder / "part-0.parquet")
        return gone_on(lake, engine)
    finally:
        lake.close()


def gone_on(lake, engine):
    said: list[str] = []
    pipeline = Pipeline(lake, engine, lambda _: None, said.append)
    pipeline.run()
    return {table: contents(pipeline, table) for table in TABLES}, said


def folders(out):
    return sorted(each.parent.relative_to(out) for each in out.rglob("_SUCCESS"))


@pytest.mark.parametrize(
    ("before", "after", "batch_rows"),
    [
        pytest.param(ONE_DEAD, LIVING, IN_ONE, id="in the same batch"),
        pytest.param(ONE_DEAD, LIVING, IN_TWO, id="another begins earlier"),
        pytest.param(LIVING, ONE_DEAD, IN_TWO, id="another begins later"),
        pytest.param(ALL_DEAD, LIVING, IN_THREE, id="there is one more"),
        pytest.param(LIVING, ALL_DEAD, IN_THREE, id="there is one less"),
    ],
)
def test_all_is_as_if_the_wave_had_been_made_so_at_once(tmp_path, duck, before, after, batch_rows):
    once, _ = done(tmp_path / "once", duck, after, batch_rows)
    done(tmp_path / "again", duck, before, batch_rows)
    again, _ = done(tmp_path / "again", duck, after, batch_rows)
    assert [row["run_id"] for row in again["runs"] if row["broke"]] == [*after]
    assert sorted(row["run_id"] for row in again["runs"]) == list(range(2 * SEEDS))
    assert again == once
    assert folders(tmp_path / "again") == folders(tmp_path / "once")


def test_it_is_said_and_costs_what_was_made_of_that_wave(tmp_path, duck):
    done(tmp_path, duck, ONE_DEAD, IN_THREE)
    before = {each: made(tmp_path / each) for each in folders(tmp_path)}
    _, said = done(tmp_path, duck, (0,), IN_THREE)
    assert said == [
        "canary M06 and M03: noticed by sim-I09 and sim-I25, as kept with the runs",
        f"silver/runs/batch=00000 and 7 more: {MADE_AGAIN}",
        f"silver/verdicts/batch=00000: {MADE_AGAIN}",
        f"gold/verdicts and 8 more: {MADE_AGAIN}",
    ]
    after = {each: made(tmp_path / each) for each in folders(tmp_path)}
    other = [str(each) for each in after if after[each] != before[each]]
    assert other
    assert all(each.endswith("=00000") or each.startswith("gold/") for each in other)


def test_a_wave_that_comes_out_the_same_costs_nothing_more(tmp_path, duck):
    first, _ = done(tmp_path, duck, LIVING, IN_TWO)
    before = {each: each.stat().st_mtime_ns for each in (tmp_path / "silver").rglob("*.parquet")}
    again, said = done(tmp_path, duck, LIVING, IN_TWO)
    after = {each: each.stat().st_mtime_ns for each in (tmp_path / "silver").rglob("*.parquet")}
    assert after == before
    assert again == first
    assert said == ["canary M06 and M03: noticed by sim-I09 and sim-I25, as kept with the runs"]


@pytest.mark.parametrize("folder", ["silver/acked/batch=00001", "gold/losses"])
def test_a_folder_that_does_not_say_what_it_was_made_of_is_made_again(tmp_path, duck, folder):
    """Whoever was killed before that could be kept."""
    first, _ = done(tmp_path, duck, LIVING, IN_TWO)
    success = tmp_path / folder / "_SUCCESS"
    told = json.loads(success.read_text())
    success.write_text(json.dumps({name: told[name] for name in told if name != "of"}))
    again, said = done(tmp_path, duck, LIVING, IN_TWO)
    assert f"{folder}: {MADE_AGAIN}" in said
    assert again == first
    assert json.loads(success.read_text())["of"] == told["of"]


@pytest.mark.parametrize("kind", ["batch", "wave"])
def test_only_folders_of_the_study_are_taken_away(tmp_path, kind):
    """A copy that somebody had kept ended the study with a traceback."""
    lake = Lake(tmp_path, plan_of(parse(TINY), SEEDS, 0, wave=WAVE, batch_rows=IN_ONE))
    beyond = lake.bronze(1) if kind == "wave" else lake.silver("runs", 1)
    kept = [beyond.with_name(f"{kind}={each}") for each in ("00000", "00003.bak", "7")]
    for folder in (*kept, beyond):
        folder.mkdir(parents=True)
    lake.end_before(beyond)
    lake.close()
    assert all(each.is_dir() for each in kept)
    assert not beyond.exists()
