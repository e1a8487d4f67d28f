"""Children of a test's process: forked ones that live while the parent goes on, and programs."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def _vanish() -> None:
    """End this process without a word: what pytest would do at its end is the parent's to do."""
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def forked(work: Callable[[], None] = signal.pause) -> Iterator[int]:
    """A forked child that runs `work`, and is killed in the end; its process id."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            _vanish()
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def outcome(work: Callable[[], object], seconds: int = 30) -> str:
    """What `work` returns or raises in a forked child that ends as any program does; if it says
    nothing, the signal that ended it (SIGALRM: `seconds` were not enough)."""
    end, begin = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        os.close(end)
        try:
            told = repr(work())
        except BaseException as error:  # noqa: BLE001 - told to the parent
            told = repr(error)
        os.write(begin, told.encode())
        _vanish()
    os.close(begin)
    with os.fdopen(end) as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    return told or signal.Signals(os.WTERMSIG(status)).name


def run_program(text: str, seconds: float = 60) -> str:
    """What a program prints, run by this Python; whatever it says is wrong fails the test."""
    done = subprocess.run(
        [sys.executable, "-c", text],
        timeout=seconds,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
    assert done.stderr == "", done.stderr
    return done.stdout.strip()
