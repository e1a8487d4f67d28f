"""What is seen of a study where nobody watches a terminal, and what a line says.

Whoever waits is to know what for: each stage is told of when it begins, and when it is over. Rows
of a wave count as they come, and none of them twice.
"""

import pytest
from pyarrow.parquet import read_table

from awaiting import await_that
from ottla.commands.sim import telling
from ottla.commands.sim.telling import NOW_AND_THEN_S
from ottla.commands.study.progress import Display, line_of
from ottla.sim.studies.bronze import Work
from ottla.sim.studies.marks import marked, marks_of
from ottla.sim.studies.pipeline import STAGES, Progress
from ottla.sim.studies.study import StudyError
from studies_tiny import TINY, WAVE, study

pytestmark = pytest.mark.slow


def test_a_line_comes_at_once_and_another_within_seconds(capsys, monkeypatch):
    """The first came after half a minute, and a log of a short study had none."""
    monkeypatch.setattr(telling, "NOW_AND_THEN_S", NOW_AND_THEN_S)
    said = []

    def told():
        said.append(capsys.readouterr().out)
        return "engine, " in "".join(said)

    with Display() as display:
        display.doing("plan")
        assert capsys.readouterr().out == "plan, 0 s\n"
        display.doing("engine")
        await_that(told, 10, "nothing is said")


@pytest.mark.parametrize(
    ("progress", "told"),
    [
        (
            Progress("sweep", 350, 700, 9_000, 10.0, 300, 70),
            "sweep   350 of 700 runs (50 were there), 9,000 rows, 30.0 runs/s (0.43 seeds/s), 10 s",
        ),
        (
            Progress("silver", 4, 8, 10, 2.0, 4, 70),
            "silver  4 of 8 tables, 10 rows, 2.0 tables/s, 2 s",
        ),
        (Progress("agree", 0, 1, 0, 3.0, 0, 70), "agree   0 of 1 checks, 3 s"),
        (Progress("agree", 1, 1, 0, 7.0, 0, 70), "agree   1 of 1 checks, 7 s"),
    ],
)
def test_a_line_tells_a_stage_in_what_it_does_a_sweep_in_seeds_too(progress, told):
    assert line_of(progress, 0.0) == told


def test_each_stage_is_told_of_when_it_begins_and_when_it_is_over(tmp_path):
    """Whether all judges say the same was asked while the line went on to say that they judge."""
    heard: dict[str, list[Progress]] = {}
    study(tmp_path, told=lambda each: heard.setdefault(each.stage, []).append(each)).engine.close()
    assert tuple(heard) == STAGES
    assert all(each[0].done == 0 for each in heard.values())
    assert all(each[-1].done == each[-1].of for each in heard.values())


def test_judges_are_asked_while_the_line_says_so(tmp_path, duck, monkeypatch):
    heard, asked = [""], []

    def differences_told(*_):
        asked.append(heard[-1])
        return ""

    monkeypatch.setattr("ottla.sim.studies.pipeline.differences_told", differences_told)
    study(tmp_path, engine=duck, told=lambda each: heard.append(f"{each.stage} {each.done}"))
    assert asked == ["agree 0"]


def test_rows_of_a_wave_under_way_count_and_none_counts_twice(tmp_path):
    """They stayed 0 through the first wave, which may be a thousand runs."""
    heard, bronze = [], tmp_path / "bronze"

    def told(progress):
        if progress.stage == "sweep":
            waves = len(list(bronze.glob("wave=*")))
            heard.append((waves, progress.done, progress.rows))

    study(tmp_path, told=told).engine.close()
    in_the_first = [rows for waves, done, rows in heard if waves == 0 and 0 < done < WAVE]
    assert in_the_first
    assert min(in_the_first) > 0
    assert [rows for _, _, rows in heard] == sorted(rows for _, _, rows in heard)
    assert heard[-1][2] == read_table(bronze).num_rows


def test_who_begins_anew_is_not_counted_twice(tmp_path):
    heard = []
    with marks_of(tmp_path / "wave", lambda *more: heard.append(more)) as marks:
        first, again = (_rows(marks) for _ in range(2))
    assert first == again > 0
    assert heard == [(3, first), (0, 0), (0, 0)]


def test_who_is_not_waited_for_any_more_ends_behind_the_run_that_he_is_at(tmp_path):
    """A worker whose wave Spark had called over went on, beside what was to run alone."""
    with marks_of(tmp_path / "wave", lambda *_: None) as marks:
        batches = marked(Work(TINY, 0, 1.0), range(3), str(marks.folder), marks.abandon)
        with pytest.raises(StudyError, match="not waited for any more"):
            next(batches)
        assert marks.under_way() == []


def test_what_a_file_system_keeps_of_a_mark_is_none(tmp_path):
    """NFS gives a file that is open a name of its own when it is taken away; at the next crash
    nobody was suspected, for that name is no range of runs."""
    with marks_of(tmp_path / "wave", lambda *_: None) as marks:
        (marks.folder / ".nfs0000000000001234").write_bytes(bytes(8))
        (marks.folder / "3-5").write_bytes(bytes(8))
        marks.look()
        assert marks.under_way() == [4]
        marks.abandon()
        assert [each.name for each in marks.folder.iterdir()] == [".nfs0000000000001234"]


def _rows(marks):
    """So many have three runs, done and looked at."""
    batches = list(marked(Work(TINY, 0, 1.0), range(3), str(marks.folder)))
    marks.look()
    return sum(each.num_rows for each in batches)
