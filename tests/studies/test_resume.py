"""A study that is killed goes on: nothing lost, nothing counted twice, the same gold.

It runs in a process of its own that kills itself, with signal 9, at a given step of a stage: with
the processes of its pool at work, between two folders. What it comes to when it is gone on with is
compared row by row with a study that nobody disturbed.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from ottla.sim.studies.lake import Lake, made, making
from ottla.sim.studies.pipeline import Progress
from ottla.sim.studies.plan import plan_of
from ottla.sim.studies.study import StudyError, parse
from studies_killed import killed, left_over
from studies_tiny import TINY, contents, study

TABLES = ("runs", "python_verdicts", "gold_kills", "variants")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, duck):
    pipeline = study(tmp_path_factory.mktemp("undisturbed"), engine=duck)
    return {table: contents(pipeline, table) for table in TABLES}


@pytest.mark.parametrize(
    ("stage", "done"),
    [("sweep", 0), ("sweep", 1), ("sweep", 4), ("silver", 1), ("silver", 3), ("gold", 0)],
)
def test_a_killed_study_goes_on(tmp_path, undisturbed, duck, stage, done):
    killed(tmp_path / "study", "stage", stage, done)
    gone_on = study(tmp_path / "study", engine=duck)
    assert {table: contents(gone_on, table) for table in TABLES} == undisturbed
    assert left_over(tmp_path / "study") == []


def test_what_is_whole_is_not_made_again(tmp_path, duck):
    study(tmp_path, engine=duck)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    steps: list[Progress] = []
    study(tmp_path, engine=duck, told=steps.append)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")} == before
    assert all(step.fresh == 0 for step in steps)


def test_a_folder_that_is_not_whole_is_made_anew(tmp_path, undisturbed, duck):
    study(tmp_path, engine=duck)
    for folder in ("bronze/wave=00001", "gold/kills"):
        (tmp_path / folder / "_SUCCESS").unlink()
    left = tmp_path / "bronze" / "_making-wave=00001-1"
    left.mkdir()
    (left / "part-0.parquet").write_bytes(b"half of a file")
    gone_on = study(tmp_path, engine=duck)
    assert {table: contents(gone_on, table) for table in TABLES} == undisturbed
    assert not left.exists()


def test_a_folder_is_whole_or_not_there(tmp_path):
    folder = tmp_path / "table"

    def fill(part):
        (part / "part-0.parquet").write_bytes(b"half of a file")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), making(folder) as part:
        fill(part)
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
    assert refused(tmp_path, seeds=5) == f"{told} seeds differs; name another folder"
    assert refused(tmp_path, seeds=5, first=7) == f"{told} seeds, first differ; name another folder"


def test_a_study_is_gone_on_with_after_a_commit_that_changes_no_code(tmp_path):
    plan = plan_of(parse(TINY), 4, 0)
    Lake(tmp_path, replace(plan, commit="one")).close()
    Lake(tmp_path, replace(plan, commit="another")).close()
    other = replace(plan, versions=plan.versions | {"code": "other"})
    with pytest.raises(StudyError, match="holds another study: the code of Ottla differs"):
        Lake(tmp_path, other)


def test_who_is_refused_holds_no_lock(tmp_path):
    Lake(tmp_path, plan_of(parse(TINY), 4, 0)).close()
    with pytest.raises(StudyError) as kept:
        Lake(tmp_path, plan_of(parse(TINY), 5, 0))
    Lake(tmp_path, plan_of(parse(TINY), 4, 0)).close()
    assert "seeds differs" in str(kept.value)


def test_a_folder_with_something_else_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("dear reader")
    assert refused(tmp_path) == f"{tmp_path} is not empty and holds no study; name another"


def test_two_at_once_are_refused(tmp_path):
    first = Lake(tmp_path, plan_of(parse(TINY), 4, 0))
    assert refused(tmp_path) == f"{tmp_path}: somebody else is at this study; wait, or end it"
    first.close()
    Lake(tmp_path, plan_of(parse(TINY), 4, 0)).close()
