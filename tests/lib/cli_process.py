"""Runs the command `ottla` as a user does: in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

WITHIN = 300
"""Seconds, ten times what the longest takes: what else a machine does is no matter of a test."""
STOP_WITHIN = 60
UNHURRIED_S = 600
UNHURRIED = f"from ottla.commands.sim import telling; telling.NOW_AND_THEN_S = {UNHURRIED_S}"
"""First in a program: whether a command that takes longer than a few seconds says how far it is
depends on the machine, and no test may."""
PROGRAM = f"import sys; {UNHURRIED}; sys.argv[0] = 'ottla'; from ottla.__main__ import main; main()"


def ottla(
    *arguments: object, cwd: "str | os.PathLike[str] | None" = None, within: float = WITHIN
) -> "subprocess.CompletedProcess[str]":
    """Run to the end, in a folder, within seconds; the completed process, output as text."""
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, check=False, text=True, timeout=within, cwd=cwd
    )


class Up:
    """`ottla up` in the background."""

    def __init__(self, arguments: tuple[object, ...]):
        command = [sys.executable, "-c", PROGRAM, "up", *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.ready = ""
        """The line it said, once `wait` saw it."""

    def wait(self) -> None:
        """Wait for its line; empty when it ended without one."""
        assert self.process.stdout is not None
        self.ready = self.process.stdout.readline().rstrip("\n")

    def stop(self, with_signal: int) -> tuple[int, str, str]:
        """Send the signal; its status, and everything that it still said on both outputs."""
        self.process.send_signal(with_signal)
        return self.ended()

    def ended(self) -> tuple[int, str, str]:
        """Once it has ended by itself: the same as `stop`."""
        out, err = self.process.communicate(timeout=STOP_WITHIN)
        return self.process.returncode, out, err


@contextmanager
def running(*arguments: object, wait: bool = True) -> Iterator[Up]:
    """`ottla up` for the time of a block; with `wait`, once it said its line."""
    up = Up(arguments)
    try:
        if wait:
            up.wait()
        yield up
    finally:
        up.process.kill()
        up.process.communicate()
