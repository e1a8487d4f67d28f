"""How a command hears SIGINT and SIGTERM: at once, or when it looks.

Work in Python may be left anywhere. A call to Spark's JVM may not: whoever leaves one has a
connection that is out of step. So there the signal is only noted, for a loop to look at.

A study minds Ctrl-C anyway, and SIGTERM as though it were that; an audit has an `Ear`.

Who ends a command often ends its JVM with the same signal, as `timeout` does. Then threads of
PySpark that wait for it end in tracebacks, so nothing goes to standard error any more.
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
    """A signal came where work may be left."""


class Ear:
    """Notes the first signal; from when it is made on, none ends the process by itself."""

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
        """Within, a signal raises `Stopped`."""
        self._leaving = True
        try:
            yield
        finally:
            self._leaving = False

    @property
    def status(self) -> int:
        """What a process ends with that was ended by the signal; 0 without one."""
        return 128 + self.heard if self.heard else 0


@contextmanager
def terminable(said: str) -> Iterator[None]:
    """Within, the first SIGTERM is a Ctrl-C; once that has ended everything, `said` is the last
    line, and the status 143. Whatever else fails meanwhile does so because others were sent the
    signal too. `timeout` sends it twice; the second one would end the tidying up."""
    heard = False
    stderr = sys.stderr

    def hear(*_: object) -> None:
        nonlocal heard
        if not heard:
            heard = True
            sys.stderr = StringIO()  # nobody reads it
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
