"""Who ends a sweep early is not left with its processes, nor with a traceback."""

import os
import signal
import subprocess
import sys

import pytest

from cli_groups import await_nobody, await_workers, begun, end

SHORT = ["--seeds", "100000", "--set", "load_ms=200", "--set", "records=4"]
SWEEP = ["sweep", "--jobs", "2", *SHORT]
META = ["meta", *SHORT]


@pytest.mark.parametrize(("arguments", "count"), [(SWEEP, 3), (META, 2)], ids=["sweep", "meta"])
@pytest.mark.parametrize("to_all", [True, False], ids=["terminal", "kill"])
def test_an_interrupt_ends_all_quietly(arguments, count, to_all):
    process = begun("sim", *arguments)
    try:
        await_workers(process, count)
        (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=30)
        assert (process.returncode, said) == (130, "")
        await_nobody(process)
    finally:
        end(process)


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


def test_processes_end_with_a_sweep_that_was_killed():
    process = begun("sim", *SWEEP)
    try:
        await_workers(process, 3)
        process.kill()
        await_nobody(process)
    finally:
        end(process)
