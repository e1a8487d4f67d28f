"""Runs the command `ottla` as a user does: in a process of its own."""

import os
import subprocess
import sys
from contextlib import contextmanager

WITHIN = 60


def ottla(*arguments, **options):
    """Run to the end; the completed process with its output as text."""
    command = [sys.executable, "-m", "ottla", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, check=False, text=True, timeout=WITHIN, **options
    )


@contextmanager
def running(*arguments, wait=True):
    """`ottla up` in the background; with `wait`, until it said its line (`process.ready`)."""
    command = [sys.executable, "-m", "ottla", "up", *map(str, arguments)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    try:
        process.ready = process.stdout.readline().rstrip("\n") if wait else ""
        yield process
    finally:
        process.kill()
        process.communicate()
