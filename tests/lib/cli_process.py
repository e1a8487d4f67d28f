"""Runs the command `ottla` as a user does: in a process of its own.

`ottla` starts one from nothing and waits for its end; `running` has `ottla up` in the background.
`forked` is for commands that end at once: its process has the imports of the command behind it.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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


_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(
    [
        "ottla.cli",
        "ottla.compare.brokers",
        "ottla.compare.finding",
        "ottla.report.explain.report",
        "ottla.sim.coverage.cover",
        "ottla.sim.sweeps.kills",
    ]
)


def forked(*arguments: object, within: float = WITHIN) -> "subprocess.CompletedProcess[str]":
    """The same as `ottla`, in a process that is forked from one with most imports behind it: where
    a hundred commands are tried that end at once, that is a second less for each."""
    command = [str(each) for each in arguments]
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = _FORKING.Process(target=_run, args=(command, Path.cwd(), out, err))
        process.start()
        process.join(within)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(command, within)
        said = [each.read_text(encoding="utf-8") for each in (out, err)]
        return subprocess.CompletedProcess(command, process.exitcode, *said)


def _run(command: list[str], folder: Path, out: Path, err: Path) -> None:
    """The child of `forked`: it is started as `PROGRAM` starts one."""
    os.chdir(folder)
    for stream, path in ((1, out), (2, err)):
        with path.open("wb") as file:
            os.dup2(file.fileno(), stream)
    from ottla.__main__ import main
    from ottla.commands.sim import telling

    telling.NOW_AND_THEN_S = UNHURRIED_S
    sys.argv = ["ottla", *command]
    main()


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
