"""The progress of a study: one line that is redrawn, and a line that stays for each ended stage.

A query that takes a minute gives no news before it is over. So the line shows the seconds, which
move as long as the study works (`Line`). If there is no terminal, a line is printed at once, and
then every few seconds.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Self

from ottla.commands.sim.telling import Line, say

if TYPE_CHECKING:
    from ottla.sim.studies.pipeline import Progress


class Display:
    """Shows the progress that it gets. Used as a context, in which the line is updated."""

    def __init__(self, line: Line | None = None) -> None:
        self._line = Line(echo=say) if line is None else line
        self._last: Progress | None = None
        self._at_once = True

    def __enter__(self) -> Self:
        self._line.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._line.__exit__()
        self._line.clear()
        self._end_stage()

    def doing(self, text: str) -> None:
        """Show work that has begun and is not a stage."""
        self._end_stage()
        self._line.tell(lambda since: f"{text}, {since:.0f} s")
        self._line.beat(now=self._at_once)
        self._at_once = False

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self._line.over(text)

    def told(self, progress: Progress) -> None:
        """Show how far a stage is."""
        if self._last is not None and progress.stage != self._last.stage:
            self._end_stage()
        self._last = progress
        self._line.tell(partial(line_of, progress))

    def _end_stage(self) -> None:
        """Print the line of a stage that is complete, so that it stays."""
        last, self._last = self._last, None
        if last is not None and last.done == last.of:
            self.say(line_of(last, 0.0))


def line_of(progress: Progress, since: float) -> str:
    """A stage in one line, `since` seconds after its last progress."""
    seconds = progress.seconds + since
    if progress.stage == "agree":  # it makes no rows
        return f"agree   {progress.done} of {progress.of} checks, {seconds:.0f} s"
    what = "runs" if progress.stage == "sweep" else "tables"
    rate = f", {_rate(progress, what, seconds)}" if progress.fresh else ""
    there = progress.done - progress.fresh
    before = f" ({there:,} were there)" if there else ""
    return (
        f"{progress.stage:6}  {progress.done:,} of {progress.of:,} {what}{before}, "
        f"{progress.rows:,} rows{rate}, {seconds:.0f} s"
    )


def _rate(progress: Progress, what: str, seconds: float) -> str:
    """The speed of a stage. For a sweep also in seeds: each seed runs once with every variant."""
    rate = progress.fresh / max(seconds, 1e-9)
    seeds = f" ({_few(rate / progress.variants)} seeds/s)" if what == "runs" else ""
    return f"{_few(rate)} {what}/s{seeds}"


def _few(rate: float) -> str:
    """A rate in few digits, also below 1: a study of 70 variants takes seconds for a seed."""
    return f"{rate:,.1f}" if rate >= 1 else f"{rate:.2g}"
