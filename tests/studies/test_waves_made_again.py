"""A wave that is made again may have other rows: what was made of it before is made again, too.

A run that its process died of for want of memory lives the second time. Silver kept its old row;
and as batches are told by rows, waves lay in two of them and were counted twice, or in none.
"""

import json
import shutil
from functools import cache
from pathlib import Path

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


@pytest.fixture(scope="module")
def begun(tmp_path_factory, duck):
    """A study whose first wave was made with such runs, by these and the rows of a batch: its
    folder, and all its tables. Each is run once."""

    @cache
    def of(deadly, batch_rows):
        out = tmp_path_factory.mktemp("begun")
        return out, done(out, duck, deadly, batch_rows)[0]

    return of


@pytest.fixture
def again(begun, tmp_path):
    """A copy of such a folder, to go on in."""

    def of(deadly, batch_rows):
        return Path(shutil.copytree(begun(deadly, batch_rows)[0], tmp_path / "again"))

    return of


def folders(out):
    return sorted(each.parent.relative_to(out) for each in out.rglob("_SUCCESS"))


@pytest.mark.parametrize(
    "case",
    [
        pytest.param((ONE_DEAD, LIVING, IN_ONE), id="in the same batch"),
        pytest.param((ONE_DEAD, LIVING, IN_TWO), id="another begins earlier"),
        pytest.param((LIVING, ONE_DEAD, IN_TWO), id="another begins later"),
        pytest.param((ALL_DEAD, LIVING, IN_THREE), id="there is one more"),
        pytest.param((LIVING, ALL_DEAD, IN_THREE), id="there is one less"),
    ],
)
def test_all_is_as_if_the_wave_had_been_made_so_at_once(begun, again, duck, case):
    before, after, batch_rows = case
    at_once, known = begun(after, batch_rows)
    out = again(before, batch_rows)
    found, _ = done(out, duck, after, batch_rows)
    assert [row["run_id"] for row in found["runs"] if row["broke"]] == [*after]
    assert sorted(row["run_id"] for row in found["runs"]) == list(range(2 * SEEDS))
    assert found == known
    assert folders(out) == folders(at_once)


def test_it_is_said_and_costs_what_was_made_of_that_wave(again, duck):
    out = again(ONE_DEAD, IN_THREE)
    before = {each: made(out / each) for each in folders(out)}
    _, said = done(out, duck, (0,), IN_THREE)
    assert said == [
        "canary M06 and M03: noticed by sim-I09 and sim-I25, as kept with the runs",
        f"silver/runs/batch=00000 and 7 more: {MADE_AGAIN}",
        f"silver/verdicts/batch=00000: {MADE_AGAIN}",
        f"gold/verdicts and 8 more: {MADE_AGAIN}",
    ]
    after = {each: made(out / each) for each in folders(out)}
    other = [str(each) for each in after if after[each] != before[each]]
    assert other
    assert all(each.endswith("=00000") or each.startswith("gold/") for each in other)


def test_a_wave_that_comes_out_the_same_costs_nothing_more(begun, again, duck):
    out = again(LIVING, IN_TWO)
    before = {each: each.stat().st_mtime_ns for each in (out / "silver").rglob("*.parquet")}
    found, said = done(out, duck, LIVING, IN_TWO)
    after = {each: each.stat().st_mtime_ns for each in (out / "silver").rglob("*.parquet")}
    assert after == before != {}
    assert found == begun(LIVING, IN_TWO)[1]
    assert said == ["canary M06 and M03: noticed by sim-I09 and sim-I25, as kept with the runs"]


@pytest.mark.parametrize("folder", ["silver/acked/batch=00001", "gold/losses"])
def test_a_folder_that_does_not_say_what_it_was_made_of_is_made_again(begun, again, duck, folder):
    """Whoever was killed before that could be kept."""
    out = again(LIVING, IN_TWO)
    success = out / folder / "_SUCCESS"
    told = json.loads(success.read_text())
    success.write_text(json.dumps({name: told[name] for name in told if name != "of"}))
    found, said = done(out, duck, LIVING, IN_TWO)
    assert f"{folder}: {MADE_AGAIN}" in said
    assert found == begun(LIVING, IN_TWO)[1]
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
