"""Commands in groups of processes of their own, as a terminal has them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from awaiting import await_that
from cli_process import UNHURRIED


def begun(*arguments: str) -> subprocess.Popen[str]:
    """A command that is at work, in a group of processes of its own."""
    # What a shell runs in the background ignores Ctrl-C, and so does all that it starts.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heard}; {UNHURRIED}; from ottla.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def group_of(leader: int) -> list[str]:
    """Processes of this group that have not ended."""
    listed = subprocess.run(
        ["ps", "-e", "-o", "pgid=,stat="], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in listed.stdout.splitlines()]
    return [stat for pgid, stat in rows if int(pgid) == leader and not stat.startswith("Z")]


def await_workers(process: subprocess.Popen[str], count: int) -> None:
    """Wait until so many processes of it are at work."""
    await_that(lambda: len(group_of(process.pid)) >= count, 60, "no processes")
    time.sleep(2)  # they import, and are at it


def await_nobody(process: subprocess.Popen[str]) -> None:
    """Wait until its group is empty."""
    await_that(lambda: not group_of(process.pid), 30, "processes are left")


def end(process: subprocess.Popen[str]) -> None:
    """Leave nothing of it behind."""
    if group_of(process.pid):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
