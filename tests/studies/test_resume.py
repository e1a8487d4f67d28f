"""A study that is killed goes on: nothing lost, nothing counted twice, the same gold.

It runs in a process of its own that kills itself, with signal 9, at a given step of a stage: with
the processes of its pool at work, between two folders. What it comes to when it is gone on with is
compared row by row with a study that nobody disturbed.
"""

import json
import re
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from ottla.sim.studies.lake import Lake, made, making
from ottla.sim.studies.pipeline import Pipeline, Progress
from ottla.sim.studies.plan import plan_of
from ottla.sim.studies.study import StudyError, parse
from studies_killed import killed, left_over
from studies_tiny import BATCH_ROWS, SEEDS, TINY, WAVE, contents, study

pytestmark = pytest.mark.slow

TABLES = ("runs", "python_verdicts", "gold_kills", "variants")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def ended(tmp_path_factory, duck):
    """The folder of a study that nobody disturbed, and the rows of its tables."""
    out = tmp_path_factory.mktemp("undisturbed")
    pipeline = study(out, engine=duck)
    return out, {table: contents(pipeline, table) for table in TABLES}


@pytest.fixture(scope="module")
def undisturbed(ended):
    return ended[1]


@pytest.fixture
def whole(ended, tmp_path):
    """A folder with a copy of that study."""
    return Path(shutil.copytree(ended[0], tmp_path / "study"))


@pytest.mark.parametrize(
    ("stage", "done"),
    [("sweep", 0), ("sweep", 1), ("sweep", 4), ("silver", 1), ("silver", 3), ("gold", 0)],
)
def test_a_killed_study_goes_on(tmp_path, undisturbed, duck, stage, done):
    killed(tmp_path / "study", "stage", stage, done)
    gone_on = study(tmp_path / "study", engine=duck)
    assert {table: contents(gone_on, table) for table in TABLES} == undisturbed
    assert left_over(tmp_path / "study") == []


def test_what_is_whole_is_not_made_again(whole, duck):
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*.parquet")}
    assert before
    steps: list[Progress] = []
    study(whole, engine=duck, told=steps.append)
    assert {path: path.stat().st_mtime_ns for path in whole.rglob("*.parquet")} == before
    assert all(step.fresh == 0 for step in steps)


def test_a_folder_that_is_not_whole_is_made_anew(whole, undisturbed, duck):
    for folder in ("bronze/wave=00001", "gold/kills"):
        (whole / folder / "_SUCCESS").unlink()
    left = whole / "bronze" / "_making-wave=00001-1"
    left.mkdir()
    (left / "part-0.parquet").write_bytes(b"half of a file")
    gone_on = study(whole, engine=duck)
    assert {table: contents(gone_on, table) for table in TABLES} == undisturbed
    assert not left.exists()


def spoil(out: Path, how: str, folder: str) -> None:
    """Take a file away, have one twice, or cut one short, in one of the folders."""
    part = next(iter((out / folder).glob("*.parquet")))
    if how == "lost":
        part.unlink()
    elif how == "twice":
        shutil.copy(part, part.with_name("part-copy.parquet"))
    else:
        part.write_bytes(part.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("how", "folder"),
    [
        ("lost", "bronze/wave=00001"),
        ("twice", "bronze/wave=00001"),
        ("short", "silver/runs/batch=00001"),
        ("lost", "silver/verdicts/batch=00000"),
        ("twice", "gold/kills"),
        ("lost", "gold/variants"),
    ],
)
def test_a_folder_whose_files_are_others_is_made_anew(whole, undisturbed, duck, how, folder):
    """Silver was made without the runs of a file that was gone, with status 0."""
    before = made(whole / folder)
    spoil(whole, how, folder)
    if folder.startswith("bronze"):
        for layer in ("silver", "gold"):
            shutil.rmtree(whole / layer)
    assert made(whole / folder) is None
    gone_on = study(whole, engine=duck)
    assert {table: contents(gone_on, table) for table in TABLES} == undisturbed
    again = made(whole / folder)
    assert before is not None
    assert again is not None
    assert again.rows == before.rows


def test_a_wave_that_was_copied_over_another_or_behind_the_last_counts_once(
    whole, undisturbed, duck
):
    """Its runs were there twice and others not at all, until the judges did not say the same."""
    first, second = (whole / "bronze" / f"wave=0000{each}" for each in (0, 1))
    shutil.copytree(first, second.with_name("wave=00099"))
    shutil.rmtree(second)
    shutil.copytree(first, second)
    for layer in ("silver", "gold"):
        shutil.rmtree(whole / layer)
    assert made(second) is None
    gone_on = study(whole, engine=duck)
    assert {table: contents(gone_on, table) for table in TABLES} == undisturbed
    assert not second.with_name("wave=00099").exists()


def test_it_is_said_which_folder_is_made_anew(whole, duck):
    spoil(whole, "lost", "bronze/wave=00001")
    said: list[str] = []
    lake = Lake(whole, plan_of(parse(TINY), SEEDS, 0, wave=WAVE, batch_rows=BATCH_ROWS))
    Pipeline(lake, duck, lambda _: None, said.append).run()
    lake.close()
    assert said == [
        "bronze/wave=00001: it does not match its _SUCCESS; it is made again",
        "canary M06 and M03: noticed by sim-I09 and sim-I25",
    ]


@pytest.mark.parametrize("told", ["{", "[]", "{}", '{"rows": 1}'])
def test_a_success_that_says_nothing_is_none(tmp_path, told):
    (tmp_path / "_SUCCESS").write_text(told)
    assert made(tmp_path) is None


def test_a_folder_is_whole_or_not_there(tmp_path):
    folder = tmp_path / "table"

    def fill(part):
        (part / "part-0.parquet").write_bytes(b"half of a file")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), making(folder) as part:
        fill(part)
    assert made(folder) is None
    assert not folder.exists()


def test_a_folder_that_nothing_was_written_to_is_not_whole(tmp_path):
    """Where an engine writes to another file system, a wave without runs was one like others."""
    folder = tmp_path / "table"
    said = f"{folder}: its rows were written elsewhere; name a folder that driver and"
    with pytest.raises(StudyError, match=re.escape(said)), making(folder) as part:
        (part / "letter.txt").touch()
    assert made(folder) is None
    assert not folder.exists()


def refused(folder: Path, **changes: int) -> str:
    """What is said to who wants another study in a folder, and that nothing in it is touched."""
    asked = {"seeds": 4, "first": 0, **changes}
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(StudyError) as error:
        Lake(folder, plan_of(parse(TINY), asked["seeds"], asked["first"]))
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    return str(error.value)


def test_another_study_is_refused(tmp_path):
    Lake(tmp_path, plan_of(parse(TINY), 4, 0)).close()
    told = f"{tmp_path} holds another study:"
    assert refused(tmp_path, first=7) == f"{told} first differs; name another folder"
    assert refused(tmp_path, seeds=5, first=7) == f"{told} first differs; name another folder"
    assert refused(tmp_path, seeds=3) == (
        f"{tmp_path} holds this study with 4 seeds; ask for as many, or for more, or name another "
        "folder"
    )


def test_a_study_is_gone_on_with_after_a_commit_that_changes_no_code(tmp_path):
    plan = plan_of(parse(TINY), 4, 0)
    Lake(tmp_path, replace(plan, commit="one")).close()
    Lake(tmp_path, replace(plan, commit="another")).close()
    other = replace(plan, versions=plan.versions | {"code": "other"})
    with pytest.raises(StudyError, match="holds another study: the code of Ottla differs") as error:
        Lake(tmp_path, other)
    quoted = str(error.value).removeprefix(f"{tmp_path} ")
    assert f"`{quoted}`" in (ROOT / "docs" / "reference" / "studies.md").read_text()


REPORT_ONLY = (
    ('title = "A tiny study"', 'title = "Another title"'),
    ('question = "Is anything lost?"', 'question = "Is it?"'),
    ('text = "{runs} runs."', 'text = "There are {runs} runs."'),
    ("COUNT(*) AS runs", "MAX(run_id) AS runs"),
    ("[answer]", '[[table]]\ntitle = "t"\nsql = "SELECT 1 AS a FROM runs"\n[answer]'),
    ("[answer]", '[worst]\nsql = "SELECT run_id FROM runs"\ntext = "bad"\n[answer]'),
    ("[settings]", "# said more plainly\n[settings]"),
)


@pytest.mark.parametrize(("old", "new"), REPORT_ONLY)
def test_what_only_the_report_depends_on_may_change(tmp_path, old, new):
    """A mistake in the last sentence of a file cost the whole sweep."""
    Lake(tmp_path, plan_of(parse(TINY), 4, 0)).close()
    text = TINY.replace(old, new)
    assert text != TINY
    Lake(tmp_path, replace(plan_of(parse(text), 4, 0), commit="other")).close()
    kept = json.loads((tmp_path / "study.json").read_text())
    assert kept["study"] == text
    assert kept["commit"] != "other"


def test_a_default_that_is_said_is_another_study_where_the_swarm_draws_the_rest(tmp_path):
    for number, (swarm, other) in enumerate((("true", True), ("false", False))):
        plain = TINY.replace("seeds = 4", f"seeds = 4\nswarm = {swarm}")
        said = plain.replace("records = 12", "records = 12\nin_flight = 5")
        folder = tmp_path / str(number)
        Lake(folder, plan_of(parse(plain), 4, 0)).close()
        with pytest.raises(StudyError, match="variants differs") if other else nullcontext():
            Lake(folder, plan_of(parse(said), 4, 0)).close()


@pytest.mark.parametrize(
    ("old", "new", "differs"),
    [
        ("acks = [1, -1]", "acks = [-1, 1]", "the list of variants"),
        ("records = 12", "records = 13", "the list of variants"),
        ("seeds = 4", "seeds = 4\ncoverage = true", "coverage"),
        ("seeds = 4", "seeds = 4\nswarm = true", "swarm"),
    ],
)
def test_what_runs_depend_on_may_not_change(tmp_path, old, new, differs):
    Lake(tmp_path, plan_of(parse(TINY), 4, 0)).close()
    before = (tmp_path / "study.json").read_bytes()
    with pytest.raises(StudyError, match=f"holds another study: .*{differs}"):
        Lake(tmp_path, plan_of(parse(TINY.replace(old, new)), 4, 0))
    assert (tmp_path / "study.json").read_bytes() == before


@pytest.mark.parametrize("told", ["{", "[]", "7", "\\"])
def test_a_plan_that_is_none_is_one_line(tmp_path, told):
    Lake(tmp_path, plan_of(parse(TINY), 4, 0)).close()
    (tmp_path / "study.json").write_text(told)
    assert refused(tmp_path) == (
        f"{tmp_path / 'study.json'} is not a plan of a study; name another folder"
    )


@pytest.mark.parametrize("told", ["{", "[]", '{"sweep": "long"}', '{"sweep": NaN}'])
def test_a_bill_that_is_none_is_one_line(tmp_path, told):
    lake = Lake(tmp_path, plan_of(parse(TINY), 4, 0))
    (tmp_path / "study.bill.json").write_text(told)
    with pytest.raises(StudyError) as error:
        lake.spent()
    lake.close()
    assert str(error.value) == (
        f"{tmp_path / 'study.bill.json'} is not a bill of a study; delete it, and the time "
        "spent so far is forgotten"
    )


def test_a_bill_that_is_none_is_refused_before_anything_is_done(tmp_path, duck):
    """It was noticed where the first stage was over."""
    Lake(tmp_path, plan_of(parse(TINY), SEEDS, 0, wave=WAVE, batch_rows=BATCH_ROWS)).close()
    (tmp_path / "study.bill.json").write_text("{")
    with pytest.raises(StudyError, match="not a bill of a study"):
        study(tmp_path, engine=duck)
    assert list(tmp_path.glob("bronze/*")) == []
    assert not (tmp_path / "study.canary.json").exists()


def test_who_is_refused_holds_no_lock(tmp_path):
    Lake(tmp_path, plan_of(parse(TINY), 4, 0)).close()
    with pytest.raises(StudyError) as kept:
        Lake(tmp_path, plan_of(parse(TINY), 3, 0))
    Lake(tmp_path, plan_of(parse(TINY), 4, 0)).close()
    assert "with 4 seeds" in str(kept.value)


def test_a_folder_with_something_else_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("dear reader")
    assert refused(tmp_path) == f"{tmp_path} is not empty and holds no study; name another"


def test_two_at_once_are_refused(tmp_path):
    first = Lake(tmp_path, plan_of(parse(TINY), 4, 0))
    assert refused(tmp_path) == f"{tmp_path}: another process uses this study; wait, or end it"
    first.close()
    Lake(tmp_path, plan_of(parse(TINY), 4, 0)).close()
