"""What commands of `ottla sim` print alike: a run, a line of progress.

Results go to standard output, progress to standard error: a line that moves on a terminal, so that
nothing of it stands between results.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import tomllib
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from ottla.sim_cli.asking import SimUsageError

if TYPE_CHECKING:
    from ottla.sim.run import Outcome


NOW_AND_THEN_S = 60
"""Between two states of a line of progress that nobody watches, such as in a log."""
_ECHO = "^C"
"""What a terminal puts behind the line when it is interrupted."""


def tell(outcome: Outcome, *, as_json: bool = False) -> NoReturn:
    """What a run was and came to; ends the command with status 1 unless the verdict is ok."""
    if as_json:
        say_object(in_json(outcome))
    else:
        show(outcome)
    raise typer.Exit(0 if outcome.verdict.value == "ok" else 1)


def show(outcome: Outcome) -> None:
    """What a run was and came to, for people."""
    config = outcome.config.told() or "all settings at their defaults"
    say(f"config {outcome.config.name}")
    for line in config.splitlines():
        say(f"  {line}")
    say(
        f"digest {outcome.digest} after {outcome.simulated / 1e6:.3f} s, {outcome.steps} steps, "
        f"{len(outcome.rows)} events, {len(outcome.tape)} choices"
    )
    say(f"{outcome.verdict.value}: {outcome.reason}")


def in_json(outcome: Outcome) -> dict[str, Any]:
    """What a run was and came to, for programs; times in microseconds of the run."""
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
    }


def say_object(told: dict[str, Any]) -> None:
    """One JSON object, in one line."""
    say(json.dumps(told))


def passed(outcome: Outcome) -> str:
    """The verdict over a run that did not fail, with what weakened it: that is its cause."""
    because = f": {outcome.reason}" if outcome.weakened else ""
    return f"the verdict is {outcome.verdict.value}{because}"


def say(line: str) -> None:
    """Print a line, now. Raises `SimUsageError` where there is no room or nothing to print to."""
    out: Any = sys.stdout  # None when whoever started the process had closed it
    if out is None:
        raise SimUsageError("standard output is closed")
    try:
        out.write(line + "\n")
        out.flush()
    except BrokenPipeError:
        raise  # nobody reads on, as with `| head`: that is no error
    except OSError as error:
        with pathlib.Path(os.devnull).open("wb") as nowhere:  # for what is left in the buffer
            os.dup2(nowhere.fileno(), out.fileno())
        raise SimUsageError(f"standard output: {error.strerror}") from None


class Line:
    """One line of progress on standard error: on a terminal it moves, elsewhere its state is said
    now and then. Its last one may be said as a result."""

    def __init__(self) -> None:
        self._terminal: Any = sys.stderr if sys.stderr.isatty() else None
        self._last = ""
        self._said = monotonic()

    def show(self, text: str) -> None:
        """Replace the line."""
        if self._terminal is not None:
            pad = " " * max(0, len(self._last) - len(text))
            self._terminal.write(f"\r{text}{pad}")
            self._terminal.flush()
        elif monotonic() - self._said > NOW_AND_THEN_S:
            typer.echo(text, err=True)
            self._said = monotonic()
        self._last = text

    def over(self, text: str) -> None:
        """Say something that stays, above the line."""
        if self._terminal is not None:
            self._terminal.write("\r" + " " * len(self._last) + "\r")
        say(text)

    def clear(self) -> None:
        """Take the line away, for good: what follows says more."""
        wide, self._last = len(self._last + _ECHO), ""
        if self._terminal is not None:
            self._terminal.write("\r" + " " * wide + "\r")
            self._terminal.flush()

    def end(self) -> None:
        """Say the line's last state, for good: also where another place is read than the terminal
        that it was shown on."""
        last = self._last
        self.clear()
        if last:
            say(last)
