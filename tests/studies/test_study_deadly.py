"""A seed that takes its process along is one row too, and the study goes on in other processes.

Two runs do it whenever they are run, by a signal and by leaving; another one once, as who is killed
by chance. What all others come to is what they come to in a study that nobody disturbed.
"""

import pytest
from pyarrow import parquet

from studies_patched import run_patched
from studies_spark import need_spark

pytestmark = pytest.mark.slow

DEADLY = """
import os
import signal
from ottla.sim.studies import bronze

whole = bronze.trial


def trial(study, variant, seed):
    if (seed, variant.number) == (1, 0):
        os.kill(os.getpid(), signal.SIGKILL)
    if (seed, variant.number) == (2, 1):
        os._exit(0)
    return whole(study, variant, seed)


bronze.trial = trial
"""
KILLED, LEFT = 2, 5
"""Numbers of the two runs."""
NAMED = ("seed 1 of acks=1", "seed 2 of acks=-1")
BY_CHANCE = """
import os
import signal
from pathlib import Path
from ottla.sim.studies import bronze

whole = bronze.trial


def trial(study, variant, seed):
    once = Path("once")
    if (seed, variant.number) == (1, 1) and not once.exists():
        once.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(study, variant, seed)


bronze.trial = trial
"""
DUCK = ("--engine", "duckdb", "--share", "1")


def rows(folder, table="bronze"):
    """Those of all files of a table, in an order of their own."""
    files = (folder / "out" / table).rglob("*.parquet")
    found = [row for each in files for row in parquet.read_table(each).to_pylist()]
    return sorted(found, key=repr)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    assert run_patched(folder, "", *DUCK, seeds=4).returncode == 0
    return folder


@pytest.mark.parametrize(
    "options", [("--jobs", "2"), ("--jobs", "1", "--wave", "8")], ids=["apart", "together"]
)
def test_seeds_that_kill_their_process_cost_the_study_two_rows(tmp_path, undisturbed, options):
    done = run_patched(tmp_path, DEADLY, *DUCK, *options, seeds=4)
    two_rows(done, tmp_path, undisturbed)
    assert "a process that simulates died; " in done.stdout


def two_rows(done, folder, undisturbed):
    """That is what the two runs cost, and people are told why others are done again."""
    assert done.returncode == 0, done.stderr
    killing = [line for line in done.stdout.splitlines() if "kill" in line]
    assert [each for line in killing for each in NAMED if each in line] == list(NAMED)
    named = [line for line in done.stdout.splitlines() if " broke: " in line]
    assert [line.partition(": ")[0] for line in named] == [f"{each} broke" for each in NAMED]
    assert all("ProcessDied: its process died of it twice" in each for each in named)
    found, expected = rows(folder), rows(undisturbed)
    assert [row["run_id"] for row in found if row["kind"] == "breakdown"] == [KILLED, LEFT]
    others = [row for row in found if row["kind"] != "breakdown"]
    assert others == [row for row in expected if row["run_id"] not in {KILLED, LEFT}]
    runs = rows(folder, "silver/runs")
    assert sorted(row["run_id"] for row in runs if row["broke"]) == [KILLED, LEFT]
    assert len(runs) == 8


def test_a_process_that_is_killed_by_chance_costs_no_run(tmp_path, undisturbed):
    done = run_patched(tmp_path, BY_CHANCE, *DUCK, "--jobs", "2", seeds=4)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "once").exists()
    assert " broke: " not in done.stdout
    assert "a process that simulates died; " in done.stdout
    assert " to be done again, one by one\n" in done.stdout
    assert rows(tmp_path) == rows(undisturbed)


@pytest.mark.nightly
def test_on_spark_they_cost_two_rows_as_well(tmp_path, undisturbed):
    """A wave was tried again and again, and ended the study each time."""
    need_spark()
    done = run_patched(tmp_path, DEADLY, "--master", "local[1]", "--share", "1", seeds=4)
    two_rows(done, tmp_path, undisturbed)


@pytest.mark.nightly
def test_a_worker_that_is_killed_by_chance_costs_spark_no_run(tmp_path, undisturbed):
    need_spark()
    done = run_patched(tmp_path, BY_CHANCE, "--master", "local[2]", "--share", "1", seeds=4)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "once").exists()
    assert "a worker crashed, and none of the runs under way does it alone; " in done.stdout
    assert " broke: " not in done.stdout
    assert rows(tmp_path) == rows(undisturbed)
