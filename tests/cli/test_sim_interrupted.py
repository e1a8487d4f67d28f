"""Who ends a command early is told what is kept, and left with no processes and no traceback.

Some commands are interrupted by a signal, as from a terminal, the others where a test has them
raise what Python makes of one.
"""

import os
import re
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from cli_groups import await_nobody, await_workers, begun, end
from ottla.commands.sim.app import app
from ottla.sim.sweeps import kills as matrix
from ottla.sim.sweeps.kills import kills

SHORT = ["--seeds", "100000", "--set", "load_ms=200", "--set", "records=4"]
SWEEP = ["sweep", "--jobs", "2", *SHORT]
META = ["meta", *SHORT]


def last_line(said):
    """What the interrupt made of it; before it there is nothing but how far the work was."""
    *before, last = said.splitlines()
    assert all(re.match(r"\d+ of |running |looking ", each) for each in before), said
    return last


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "count"), [(SWEEP, 3), (META, 2)], ids=["sweep", "meta"])
@pytest.mark.parametrize("to_all", [True, False], ids=["terminal", "kill"])
def test_an_interrupt_ends_all_with_one_line(arguments, count, to_all):
    process = begun("sim", *arguments)
    try:
        await_workers(process, count)
        (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=30)
        assert process.returncode == 130
        line = last_line(said)
        assert re.fullmatch(r"ottla: interrupted; \d+ of \d+ .+ are done, .+", line), line
        await_nobody(process)
    finally:
        end(process)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kept", "told"),
    [
        (True, "the same command goes on"),
        (False, "with --out DIR the same command would go on"),
    ],
    ids=["kept", "not kept"],
)
def test_a_sweep_that_was_interrupted_says_what_is_done(tmp_path, kept, told):
    process = begun("sim", *SWEEP, *(["--out", str(tmp_path)] if kept else []))
    try:
        await_workers(process, 3)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    finally:
        end(process)
    assert process.returncode == 130
    found = re.fullmatch(
        rf"ottla: interrupted; (\d+) of 100000 seeds are done, {told}", last_line(said)
    )
    assert found, said
    if kept:
        assert 25 * len(list(tmp_path.glob("part-*.parquet"))) >= int(found[1])


FEW = ["--seeds", "3", *SHORT[2:]]
FAILING = ["0", "--set", "mutants=M06", "--set", "load_ms=1000", "--set", "records=20"]
STOPPED = [
    (
        ["coverage", *FEW],
        "ottla.sim.coverage.cover.Cover.add",
        "0 of 3 seeds are done, nothing is kept",
    ),
    (
        ["validate", *FEW],
        "ottla.sim.recording.validation.run",
        "0 of 3 seeds are done, nothing is kept",
    ),
    (["why", *FAILING], "ottla.sim.sweeps.why.fails", "0 points are done, nothing is kept"),
    (
        ["meta", *FEW, "--python", sys.executable, "--warm", "0"],
        "ottla.sim.asyncio_runs.drivers.player.difference",
        "12 of 12 runs and 0 of 3 seeds under both drivers are done, nothing is kept",
    ),
    (
        ["mutants", "M06", "M02", "--seeds", "2"],
        "ottla.sim.sweeps.mutants_page.noticed",
        "0 of 2 mutants are done, nothing is kept; with --page FILE their rows would be",
    ),
    (
        ["shrink", *FAILING, "--out", "s.tape"],
        "ottla.sim.sweeps.shrink.Shrinker.run",
        "the smallest so far is kept: s.tape",
    ),
    (["explain", "0"], "ottla.report.explain.report.page", "nothing is kept"),
    (["show", "0"], "ottla.sim.history.compare.told", "nothing is kept"),
    (["run", "--seed", "0"], "ottla.sim.run.run", "nothing is kept"),
    (["replay", "0"], "ottla.sim.run.run", "nothing is kept"),
    (["diff", "0", "1"], "ottla.sim.history.compare.parting", "nothing is kept"),
]


def interrupt(*_args, **_named):
    raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize(("command", "at", "told"), STOPPED, ids=[each[0][0] for each in STOPPED])
def test_an_interrupted_command_says_what_is_kept(tmp_path, monkeypatch, command, at, told):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(at, interrupt)
    done = CliRunner().invoke(app, command)
    assert (done.exit_code, done.stderr) == (130, f"ottla: interrupted; {told}\n")


def test_rows_of_mutants_that_are_done_are_kept(tmp_path, monkeypatch):
    def second(row, seeds, **more):
        return interrupt() if row.id == "M02" else kills(row, seeds, **more)

    page = tmp_path / "page.md"
    monkeypatch.setattr(matrix, "kills", second)
    done = CliRunner().invoke(app, ["mutants", "M06", "M02", "--seeds", "2", "--page", str(page)])
    kept = f"1 of 2 mutants are done, their rows are kept: {page}"
    assert (done.exit_code, done.stderr) == (130, f"ottla: interrupted; {kept}\n")
    assert "| sim-M06 | " in page.read_text()


@pytest.mark.slow
def test_an_interrupt_of_a_process_that_still_starts_is_the_parents_matter(tmp_path):
    """Each process of the pool is interrupted before it has imported anything of ours: it met the
    interpreter's own handler, and the pool broke with a traceback."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "if '--multiprocessing-fork' in sys.orig_argv:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
    )
    short = ["--seeds", "30", "--set", "load_ms=200", "--set", "records=4"]
    done = subprocess.run(
        [sys.executable, "-m", "ottla", "sim", "sweep", "--jobs", "2", *short],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert "30 of 30 seeds, 0 failed" in done.stdout + done.stderr


@pytest.mark.slow
def test_processes_end_with_a_sweep_that_was_killed():
    process = begun("sim", *SWEEP)
    try:
        await_workers(process, 3)
        process.kill()
        await_nobody(process)
    finally:
        end(process)
