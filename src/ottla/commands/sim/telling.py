"""Output that the commands of `ottla sim` share: a run, a line of progress.

Results go to standard output. Progress goes to standard error; on a terminal it is one line that is
redrawn, so that it does not mix with the results.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
from contextlib import contextmanager, suppress
from threading import Event, RLock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn, Self

import typer

from ottla.commands.usage import UsageError, drop_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ottla.sim.run import Outcome


BEAT_S = 0.5
"""Seconds between two updates of the line."""
NOW_AND_THEN_S = 4
"""Seconds between two lines of progress where there is no terminal, such as in a log. With
`BEAT_S` added, it is less than 5 s: nobody waits longer than that without a word."""
STILL_S = 2
"""Seconds without news after which the line says how old its news is."""
_ECHO = "^C"
"""What a terminal prints after the line when the user interrupts."""


def tell(outcome: Outcome, *, as_json: bool = False) -> NoReturn:
    """Print a run and its verdict, and end the command, with status 1 unless the verdict is ok."""
    if as_json:
        say_object(in_json(outcome))
    else:
        show(outcome)
    raise typer.Exit(0 if outcome.verdict.value == "ok" else 1)


def show(outcome: Outcome) -> None:
    """Print a run and its verdict, for people."""
    config = outcome.config.told() or "all settings at their defaults"
    say(f"config {outcome.config.name}")
    for line in config.splitlines():
        say(f"  {line}")
    say(
        f"digest {outcome.digest} after {outcome.simulated / 1e6:.3f} s, {outcome.steps} steps, "
        f"{len(outcome.rows)} events, {len(outcome.tape)} choices"
    )
    for what, count in outcome.unjudged.items():
        say(f"not judged: {count} x {what}")
    say(f"{outcome.verdict.value}: {outcome.reason}")


def in_json(outcome: Outcome) -> dict[str, Any]:
    """A run and its verdict, for programs; times are microseconds since the run began."""
    return {
        "config": outcome.config.name,
        "settings": tomllib.loads(outcome.config.told()),
        "digest": outcome.digest,
        "simulated_us": outcome.simulated,
        "steps": outcome.steps,
        "events": len(outcome.rows),
        "choices": len(outcome.tape),
        "verdict": outcome.verdict.value,
        "reason": outcome.reason,
        "anomalies": [each._asdict() for each in outcome.anomalies],
        "weakened": outcome.weakened,
        "unavoidable": outcome.unavoidable,
        "noted": outcome.noted,
        "unjudged": outcome.unjudged,
    }


def say_object(told: dict[str, Any]) -> None:
    """Print one JSON object, in one line."""
    say(json.dumps(told))


def passed(outcome: Outcome) -> str:
    """The verdict of a run that did not fail, with what weakened it, if anything did."""
    because = f": {outcome.reason}" if outcome.weakened else ""
    return f"the verdict is {outcome.verdict.value}{because}"


def say(line: str) -> None:
    """Print a line at once. Raises `UsageError` if standard output is closed or full."""
    out: Any = sys.stdout  # None if the parent process had closed it
    if out is None:
        raise UsageError("standard output is closed")
    try:
        out.write(line + "\n")
        out.flush()
    except BrokenPipeError:
        raise  # the reader has ended, as with `| head`; the caller does not call that an error
    except OSError as error:
        drop_output()
        raise UsageError(f"standard output: {error.strerror}") from None


class Line:
    """One line of progress on standard error. On a terminal it is redrawn; elsewhere it is printed
    now and then. `end` prints the last text as a result.

    Used as a context, a thread updates the line: on a terminal twice a second, elsewhere every few
    seconds. The line says what goes on, and how old the last news is. So it never stands still,
    however long a step is. Safe to use from any thread.
    """

    def __init__(
        self, echo: Callable[[str], None] | None = None, clock: Callable[[], float] = monotonic
    ):
        """`echo` prints the line if there is no terminal."""
        moves = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._terminal: Any = sys.stderr if moves else None
        self._echo = _to_stderr if echo is None else echo
        self._clock = clock
        self._of: Callable[[float], str] = _nothing
        self._drawn = self._shown = ""
        self._said = self._heard = clock()
        self._lock = RLock()
        self._over = Event()
        self._thread: Thread | None = None

    def __enter__(self) -> Self:
        if self._thread is None:
            self._over.clear()
            self._thread = Thread(target=self._beat, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        thread, self._thread = self._thread, None
        self._over.set()
        if thread is not None:
            thread.join()

    def _beat(self) -> None:
        while not self._over.wait(BEAT_S):
            with suppress(OSError, ValueError, UsageError):  # nobody reads it any more
                self.beat()

    def show(self, text: str) -> None:
        """Replace the line by news."""
        self._shown = text
        self.tell(lambda since: text if since < STILL_S else f"{text}; {since:.0f} s since then")
        self.beat()

    def doing(self, text: str) -> None:
        """Replace the line by a step that has begun, and that gives no news before it ends."""
        self.tell(lambda since: f"{text}, {since:.0f} s")
        self.beat()

    def tell(self, of: Callable[[float], str]) -> None:
        """Set the text from the next update on; `of` gets the seconds since now."""
        with self._lock:
            self._of, self._heard = of, self._clock()

    def beat(self, *, now: bool = False) -> None:
        """Update the line. If there is no terminal, it is printed now and then only, or if `now` is
        set."""
        with self._lock:
            at = self._clock()
            text = self._of(at - self._heard)
            if self._terminal is not None and (text or self._drawn):
                pad = " " * max(0, len(self._drawn) - len(text))
                self._terminal.write(f"\r{text}{pad}")
                self._terminal.flush()
                self._drawn = text
            elif text and self._terminal is None and (now or at - self._said >= NOW_AND_THEN_S):
                self._said = at
                self._echo(text)

    def over(self, text: str) -> None:
        """Print a text that stays, above the line."""
        with self._lock:
            self._wipe(len(self._drawn))
            say(text)

    def clear(self) -> None:
        """Remove the line until something else is shown."""
        with self._lock:
            self._wipe(len(self._drawn + _ECHO))
            self._of, self._shown = _nothing, ""

    def end(self) -> None:
        """Print the last news to standard output, so that it stays."""
        last = self._shown
        self.clear()
        if last:
            say(last)

    def _wipe(self, wide: int) -> None:
        if self._terminal is not None:
            self._terminal.write("\r" + " " * wide + "\r")
            self._terminal.flush()
        self._drawn = ""


@contextmanager
def busy(doing: str) -> Iterator[Line]:
    """For one step that may be long and gives no news: a line says that it goes on."""
    with Line() as line:
        line.doing(doing)
        try:
            yield line
        finally:
            with suppress(OSError):  # the reader may have been interrupted, too
                line.clear()


def _nothing(_: float) -> str:
    return ""


def _to_stderr(text: str) -> None:
    typer.echo(text, err=True)
