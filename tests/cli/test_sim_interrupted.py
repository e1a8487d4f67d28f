"""Who ends a sweep early is not left with its processes, nor with a traceback."""

import os
import signal
import subprocess
import sys
import time

import pytest

SHORT = ["--seeds", "100000", "--set", "load_ms=200", "--set", "records=4"]
SWEEP = ["sweep", "--jobs", "2", *SHORT]
META = ["meta", *SHORT]


def begun(*arguments):
    """A command that is at work, in a group of processes of its own."""
    code = "from ottla.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "sim", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def group_of(leader):
    """Processes of this group that have not ended."""
    listed = subprocess.run(
        ["ps", "-e", "-o", "pgid=,stat="], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in listed.stdout.splitlines()]
    return [stat for pgid, stat in rows if int(pgid) == leader and not stat.startswith("Z")]


def await_workers(process, count):
    until = time.monotonic() + 60
    while len(group_of(process.pid)) < count:
        assert time.monotonic() < until, "no processes"
        time.sleep(0.1)
    time.sleep(2)  # they import, and are at it


def await_nobody(process):
    until = time.monotonic() + 30
    while group_of(process.pid):
        assert time.monotonic() < until, "processes are left"
        time.sleep(0.1)


@pytest.mark.parametrize(("arguments", "count"), [(SWEEP, 3), (META, 2)], ids=["sweep", "meta"])
@pytest.mark.parametrize("to_all", [True, False], ids=["terminal", "kill"])
def test_an_interrupt_ends_all_quietly(arguments, count, to_all):
    process = begun(*arguments)
    try:
        await_workers(process, count)
        (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=30)
        assert (process.returncode, said) == (130, "")
        await_nobody(process)
    finally:
        end(process)


def test_processes_end_with_a_sweep_that_was_killed():
    process = begun(*SWEEP)
    try:
        await_workers(process, 3)
        process.kill()
        await_nobody(process)
    finally:
        end(process)


def end(process):
    if group_of(process.pid):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
