"""What is seen of a study while it goes on: one line that moves, and a line per stage that stays.

Queries of a minute tell nothing before they are over, so a thread draws the line anew twice a
second: the seconds move as long as anything does. Where there is no terminal, a line at once, one
after two seconds, and then now and then.
"""

from __future__ import annotations

import sys
from itertools import chain, repeat
from threading import Event, RLock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Self

from ottla.sim_cli.telling import Line

if TYPE_CHECKING:
    from ottla.sim.studies.pipeline import Progress

_DRAW_S = 0.5
_SOON_S, _NOW_AND_THEN_S = 2.0, 30.0


class Display:
    """Shows what it is told; a context, in which the line moves."""

    def __init__(self) -> None:
        self._line = Line()
        self._lock = RLock()
        self._begun = self._heard = monotonic()
        self._next = self._begun
        self._pauses = chain([_SOON_S], repeat(_NOW_AND_THEN_S))
        self._doing = ""
        self._last: Progress | None = None
        self._over = Event()
        self._thread = Thread(target=self._draw, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._line.clear()
        self._end_stage()

    def doing(self, text: str) -> None:
        """Something is begun that is no stage."""
        self._end_stage()
        self._doing, self._begun = text, monotonic()
        self._show()

    def say(self, text: str) -> None:
        """A line that stays."""
        with self._lock:
            self._line.over(text)

    def told(self, progress: Progress) -> None:
        """Where a stage is."""
        if self._last is not None and progress.stage != self._last.stage:
            self._end_stage()
        self._doing, self._last, self._heard = "", progress, monotonic()

    def _end_stage(self) -> None:
        """A stage that is whole stays to be read."""
        last, self._last = self._last, None
        if last is not None and last.done == last.of:
            self.say(line_of(last, 0.0))

    def _draw(self) -> None:
        while not self._over.wait(_DRAW_S):
            self._show()

    def _show(self) -> None:
        with self._lock:
            text = self._text()
            if sys.stderr.isatty():
                self._line.show(text)
            elif text and monotonic() >= self._next:
                self._next = monotonic() + next(self._pauses)
                self.say(text)

    def _text(self) -> str:
        last = self._last
        if self._doing:
            return f"{self._doing}, {monotonic() - self._begun:.0f} s"
        return "" if last is None else line_of(last, monotonic() - self._heard)


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
