"""What is seen of a study while it goes on: one line that moves, and a line per stage that stays.

Queries of a minute tell nothing before they are over, so the line beats (`Line`): the seconds move
as long as anything does. Where there is no terminal, a line at once, and then every few seconds.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Self

from ottla.commands.sim.telling import Line, say

if TYPE_CHECKING:
    from ottla.sim.studies.pipeline import Progress


class Display:
    """Shows what it is told; a context, in which the line moves."""

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
        """Something is begun that is no stage."""
        self._end_stage()
        self._line.tell(lambda since: f"{text}, {since:.0f} s")
        self._line.beat(now=self._at_once)
        self._at_once = False

    def say(self, text: str) -> None:
        """A line that stays."""
        self._line.over(text)

    def told(self, progress: Progress) -> None:
        """Where a stage is."""
        if self._last is not None and progress.stage != self._last.stage:
            self._end_stage()
        self._last = progress
        self._line.tell(partial(line_of, progress))

    def _end_stage(self) -> None:
        """A stage that is whole stays to be read."""
        last, self._last = self._last, None
        if last is not None and last.done == last.of:
            self.say(line_of(last, 0.0))


def line_of(progress: Progress, since: float) -> str:
    """A stage in one line, `since` seconds after it was told."""
    seconds = progress.seconds + since
    if progress.stage == "agree":  # it makes nothing
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
    """Of a sweep in seeds too: each is run with every variant."""
    rate = progress.fresh / max(seconds, 1e-9)
    seeds = f" ({_few(rate / progress.variants)} seeds/s)" if what == "runs" else ""
    return f"{_few(rate)} {what}/s{seeds}"


def _few(rate: float) -> str:
    """A study of 70 variants takes seconds for a seed."""
    return f"{rate:,.1f}" if rate >= 1 else f"{rate:.2g}"
