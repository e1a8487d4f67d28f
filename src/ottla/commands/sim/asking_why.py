"""`ottla sim why`: when did a failure become inevitable?"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.commands.sim.asking import ConfigFile, Jobs, Settings, What, outcome_of
from ottla.commands.sim.explaining import check_page, title_of, write_and_say
from ottla.commands.sim.interrupting import NOTHING, interruptible
from ottla.commands.sim.telling import Line, passed, say
from ottla.commands.usage import UsageError, file_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.sim.history.history import Event
    from ottla.sim.sweeps.why import Curve


def why(
    what: What,
    *,
    config: ConfigFile = None,
    settings: Settings = None,
    tries: Annotated[int, typer.Option(min=2, help="Futures that are drawn at each moment.")] = 16,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of these futures.")] = 0,
    jobs: Jobs = 1,
    out: Annotated[Path | None, file_option("Also write a page with the curve.")] = None,
) -> None:
    """When did a failure become inevitable? The run is kept up to many of its moments, and what
    follows is drawn anew."""
    from ottla.report.explain.curve import curve_section
    from ottla.report.explain.report import page
    from ottla.sim.machine.processes import processes
    from ottla.sim.recording.record import record
    from ottla.sim.sweeps.why import Point, futures_of
    from ottla.sim.sweeps.why import why as ask_why

    check_page(out)
    outcome = outcome_of(what, config, settings)
    if not outcome.anomalies:
        raise UsageError(f"{what}: nothing to explain, {passed(outcome)}")
    say(outcome.reason)
    line, done = Line(), 0

    def progress(point: Point, left: int) -> None:
        nonlocal done
        done += 1
        told = f"event {point.eid}: {point.hits} of {point.tries} futures fail alike"
        line.show(f"{told}, at most {left} points to go")

    line.doing("drawing the first futures")
    with (
        interruptible(line, lambda: f"{done} points are done, {NOTHING}"),
        nullcontext() if jobs == 1 else processes(jobs) as pool,
    ):
        curve = ask_why(outcome, futures_of(outcome, pool), tries, seed, progress)
    line.clear()
    rows = outcome.rows
    _tell(curve, rows)
    if out is not None:
        title, command = title_of(what, config, settings, "why")
        text = page(record(outcome, title, command), curve_section(curve, rows))
        write_and_say(out, text)


def _tell(curve: Curve, rows: Sequence[Event]) -> None:
    """Print the points, and what the fit through them says."""
    from ottla.report.explain.curve import event_text, summary

    between = f"{'95 %':>12}"
    say(f"{'at':>10} {'event':>7} {'share':>6} {'fit':>6} {between}  the last event that is kept")
    for point, fit in zip(curve.points, curve.fit, strict=True):
        share, low, high = point.share
        between = f"{f'{low:.0%} to {high:.0%}':>12}"
        at = f"{point.at / 1e6:.4f} s"
        told = event_text(rows[point.eid])
        say(f"{at:>10} {point.eid:>7} {share:>6.0%} {fit:>6.0%} {between}  {told}")
    say("fit: the best one that never falls, for what is decided stays decided; by it")
    for each in summary(curve, rows):
        say(each)
