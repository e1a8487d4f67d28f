"""Who ends a sweep early is not left with its processes, nor with a traceback."""

import os
import re
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
        out, _ = process.communicate(timeout=30)
    finally:
        end(process)
    assert process.returncode == 130
    found = re.fullmatch(rf"interrupted: (\d+) of 100000 seeds are done; {told}", last_of(out))
    assert found
    if kept:
        assert 25 * len(list(tmp_path.glob("part-*.parquet"))) >= int(found[1])


def last_of(text):
    return text.splitlines()[-1]


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
