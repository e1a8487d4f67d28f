"""A seed that breaks is one row, whatever breaks it: the study ends, names it, and counts it not.

One run raises an exception whose text is none of UTF-8, another ends well with a figure that no
column of 64 bits holds.
"""

from html import unescape

import pyarrow as pa
import pytest
from pyarrow import parquet

from ottla.sim.studies import bronze
from ottla.sim.studies.bronze import Work, histories
from ottla.sim.studies.lake import made
from ottla.sim.studies.trial import trial
from studies_patched import run_patched
from studies_spark import need_spark
from studies_tiny import TINY

pytestmark = pytest.mark.slow

BREAKING = """
from ottla.sim.studies import bronze

whole = bronze.trial


def trial(study, variant, seed):
    if (seed, variant.number) == (1, 0):
        raise RuntimeError("nobody\\n  expects \\udcff")
    done = whole(study, variant, seed)
    return done._replace(steps=2**63) if (seed, variant.number) == (2, 1) else done


bronze.trial = trial
"""
SWEEPS_ONLY = """
from ottla.sim.studies.pipeline import Pipeline
from ottla.sim.studies.study import StudyError


def silver(_):
    raise StudyError("the sweep is over")


Pipeline._silver = silver
"""
DUCK = ("--engine", "duckdb", "--jobs", "2")
RAISED, TOO_LARGE = 2, 5
"""Numbers of the two runs."""
COMMAND = "ottla sim run --seed 1 --set load_ms=1000 --set records=12 --set acks=1 --whole"


def command(tmp_path, *options):
    """What the study said."""
    done = run_patched(tmp_path, BREAKING, "--share", "1", *options, seeds=4)
    assert done.returncode == 0, done.stderr
    return done.stdout


def table(tmp_path, name):
    """Rows of all files of a table."""
    files = sorted((tmp_path / "out" / name).rglob("*.parquet"))
    return [row for each in files for row in parquet.read_table(each).to_pylist()]


def check_tables(tmp_path):
    runs = {row["run_id"]: row for row in table(tmp_path, "silver/runs")}
    assert sorted(runs) == list(range(8))
    assert [run for run in sorted(runs) if runs[run]["broke"]] == [RAISED, TOO_LARGE]
    assert runs[RAISED]["reason"] == "RuntimeError: nobody expects \\udcff"
    assert runs[TOO_LARGE]["reason"].startswith(("OverflowError: ", "ArrowInvalid: "))
    for run, row in runs.items():
        broke = run in {RAISED, TOO_LARGE}
        assert (row["verdict"], row["judged"]) == (("broke", False) if broke else ("ok", True))
        for figure in ("handed", "acknowledged", "lost", "copies", "faults", "elections", "steps"):
            assert (row[figure] is None) == broke, (run, figure)
    for name in ("requests", "acked", "producers", "python_verdicts"):
        found = table(tmp_path, f"silver/{name}")
        assert not {RAISED, TOO_LARGE} & {row["run_id"] for row in found}, name
    kills = sorted(table(tmp_path, "gold/kills"), key=lambda row: row["variant"])
    assert [(row["runs"], row["failed"], row["seeds_to_kill"]) for row in kills] == [
        (3, 0, None),
        (3, 0, None),
    ]


def two_rows(tmp_path, said):
    """That is what the two runs cost; the lines that name them."""
    named = [line for line in said.splitlines() if " broke: " in line]
    raised = "seed 1 of acks=1 broke: RuntimeError: nobody expects \\udcff"
    assert named[0] == f"{raised}; {COMMAND}"
    assert named[1].startswith("seed 2 of acks=-1 broke: ")
    assert len(named) == 2
    report = unescape((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert "2 of 8 runs broke" in report
    assert "2 runs came to no end" in report
    assert "All 6 runs were judged in SQL. On each of them" in report
    assert report.count(COMMAND) == 1
    check_tables(tmp_path)
    return named


def test_seeds_that_break_cost_the_study_two_rows(tmp_path):
    named = two_rows(tmp_path, command(tmp_path, *DUCK))
    for folder in ("bronze/wave=00000", "bronze/wave=00001", "gold/kills"):
        (tmp_path / "out" / folder / "_SUCCESS").unlink()
    again = command(tmp_path, *DUCK)
    assert [line for line in again.splitlines() if " broke: " in line] == named
    check_tables(tmp_path)


def test_so_they_do_where_spark_sweeps(tmp_path):
    """DuckDB goes on with it: what Spark would do is the same SQL, and takes it a minute."""
    need_spark()
    code = BREAKING + SWEEPS_ONLY
    swept = run_patched(tmp_path, code, "--share", "1", "--master", "local[2]", seeds=4)
    assert swept.stderr.endswith("ottla: the sweep is over\n"), swept.stderr
    waves = [made(tmp_path / "out" / "bronze" / f"wave={each:05}") for each in range(3)]
    assert all(each is not None and each.engine.startswith("spark") for each in waves)
    two_rows(tmp_path, command(tmp_path, *DUCK))
    assert [made(tmp_path / "out" / "bronze" / f"wave={each:05}") for each in range(3)] == waves


@pytest.mark.parametrize(
    "changed",
    [
        {"steps": 2**63},
        {"simulated": -(2**63) - 1},
        {"told": "half a letter: \ud800"},
        {"noticed": "\udfff"},
        {"choices": "many"},
    ],
)
def test_a_value_that_fits_no_column_breaks_its_run_alone(monkeypatch, changed):
    work = Work(TINY, 0, 1.0)
    (sound,) = histories(work, range(4))

    def changing(study, variant, seed):
        done = trial(study, variant, seed)
        return done._replace(**changed) if (seed, variant.number) == (0, 1) else done

    monkeypatch.setattr("ottla.sim.studies.bronze.trial", changing)
    (found,) = histories(work, range(4))
    assert found.schema == bronze.schema()
    rows = found.to_pylist()
    (broke,) = (row for row in rows if row["run_id"] == 1)
    assert (broke["kind"], broke["seed"], broke["variant"]) == ("breakdown", 0, 1)
    assert broke["code"] in {
        "OverflowError",
        "UnicodeEncodeError",
        "ArrowInvalid",
        "ArrowTypeError",
    }
    assert broke["told"]
    others = [row for row in rows if row["run_id"] != 1]
    assert others == [row for row in sound.to_pylist() if row["run_id"] != 1]


def test_rows_of_many_runs_are_one_batch():
    runs = [each for run in range(3) for each in histories(Work(TINY, 0, 1.0), [run])]
    (together,) = histories(Work(TINY, 0, 1.0), range(3))
    assert pa.Table.from_batches([together]).equals(pa.Table.from_batches(runs))
