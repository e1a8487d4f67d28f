"""How a command reacts to SIGINT and SIGTERM: at once, or when it asks.

An exception may interrupt work in Python anywhere, but not a call to Spark's JVM: afterwards the
connection to the JVM would be out of step. So during such calls the signal is only noted, and a
loop asks for it.

A study handles Ctrl-C, and handles SIGTERM in the same way. An audit has an `Ear`.

A signal that ends a command often ends its JVM as well, as with `timeout`. Then threads of PySpark
that wait for the JVM end in tracebacks. So after a signal, standard error is closed to them.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import typer

HEARD = (signal.SIGINT, signal.SIGTERM)


class Stopped(Exception):  # noqa: N818 - no error: somebody wants the command to end
    """A signal came during work that may be interrupted."""


class Ear:
    """Notes the first signal. While there is an `Ear`, no signal ends the process by itself."""

    def __init__(self) -> None:
        self.heard: signal.Signals | None = None
        self._leaving = False
        self._nothing = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - to the end
        for each in HEARD:
            signal.signal(each, lambda number, _: self._hear(signal.Signals(number)))

    def _hear(self, which: signal.Signals) -> None:
        self.heard = self.heard or which
        sys.stderr = self._nothing
        if self._leaving:
            self._leaving = False
            raise Stopped

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """Within this context, a signal raises `Stopped`."""
        self._leaving = True
        try:
            yield
        finally:
            self._leaving = False

    @property
    def status(self) -> int:
        """The usual exit status after this signal; 0 without a signal."""
        return 128 + self.heard if self.heard else 0


@contextmanager
def terminable(said: str) -> Iterator[None]:
    """Within this context, the first SIGTERM acts like Ctrl-C. When everything has ended, `said` is
    the last line, and the status is 143. Other errors meanwhile are not shown: they come from
    processes that got the signal, too. `timeout` sends it twice; the second one is ignored, because
    it would interrupt the cleanup."""
    heard = False
    stderr = sys.stderr

    def hear(*_: object) -> None:
        nonlocal heard
        if not heard:
            heard = True
            sys.stderr = StringIO()  # what is written from now on is dropped
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, hear)
    try:
        yield
    except BaseException:
        if not heard:
            raise
        stderr.write(f"ottla: {said}\n")
        raise typer.Exit(128 + signal.SIGTERM) from None
    finally:
        if not heard:
            signal.signal(signal.SIGTERM, before)
