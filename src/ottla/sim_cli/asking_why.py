"""`ottla sim why`: when did a failure become inevitable?"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from ottla.sim_cli.asking import (
    ConfigFile,
    Jobs,
    Settings,
    SimUsageError,
    What,
    outcome_of,
)
from ottla.sim_cli.explaining import check_page, title_of, write
from ottla.sim_cli.telling import Line, passed, say


def why(
    what: What,
    *,
    config: ConfigFile = None,
    settings: Settings = None,
    tries: Annotated[int, typer.Option(min=2, help="Futures at each point.")] = 16,
    seed: Annotated[int, typer.Option(min=0, help="What futures are drawn from.")] = 0,
    jobs: Jobs = 1,
    out: Annotated[Path | None, typer.Option(help="A page with the curve, too.")] = None,
) -> None:
    """When did a failure become inevitable? Its future is drawn anew from many of its moments."""
    from ottla.explain.curve import curve_section, event_text, summary
    from ottla.explain.report import page
    from ottla.sim.processes import processes
    from ottla.sim.recording.record import record
    from ottla.sim.why import Point, futures_of
    from ottla.sim.why import why as ask_why

    check_page(out)
    outcome = outcome_of(what, config, settings)
    if not outcome.anomalies:
        raise SimUsageError(f"{what}: nothing to explain, {passed(outcome)}")
    say(outcome.reason)
    line = Line()

    def progress(point: Point, left: int) -> None:
        told = f"event {point.eid}: {point.hits} of {point.tries} futures fail alike"
        line.show(f"{told}, at most {left} points to go")

    with nullcontext() if jobs == 1 else processes(jobs) as pool:
        curve = ask_why(outcome, futures_of(outcome, pool), tries, seed, progress)
    line.clear()
    rows = outcome.rows
    say(f"{'at':>10} {'event':>7} {'share':>6} {'95 %':>12}  the last event that is kept")
    for point in curve.points:
        share, low, high = point.share
        between = f"{low:.0%} to {high:.0%}"
        at = f"{point.at / 1e6:.4f} s"
        say(f"{at:>10} {point.eid:>7} {share:>6.0%} {between:>12}  {event_text(rows[point.eid])}")
    for each in summary(curve, rows):
        say(each)
    if out is not None:
        title, command = title_of(what, config, settings, "why")
        text = page(record(outcome, title, command), curve_section(curve, rows))
        write(out, text)
        say(f"{out}: {len(text.encode()):,} bytes")
