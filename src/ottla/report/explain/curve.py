"""The curve of `ottla sim why`: when did the failure become inevitable?

The terminal gets two lines about it; the page gets a section with a picture. Events go to the
right. The share of futures that fail in the same way goes up, with its interval and the fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from ottla.report.explain.words import group_name, sentence
from ottla.report.page.document import section, table
from ottla.report.page.svg import box, line, text
from ottla.sim.history.history import Event
from ottla.sim.recording.recorder import OF_NODES, Step
from ottla.sim.sweeps.why import INEVITABLE, Curve, Point

WIDTH, LEFT, RIGHT, TOP, PLOT = 1160, 60, 16, 12, 150
ROOM = 34.0
"""Room that a number below the curve needs."""


def event_text(row: Event) -> str:
    """An event in a few words, also one that needs no sentence elsewhere."""
    said = sentence(Step(0, row.t_us, row.kind, None, row.partition, row)) or row.kind
    who = f"client {row.client}" if row.client is not None and row.kind not in OF_NODES else ""
    if not who and row.node is not None:
        who = f"node {row.node}" if row.node else "the reference model"
    where = f" ({group_name(row.partition)})" if row.partition is not None else ""
    return f"{who}: {said}{where}" if who else said


def summary(curve: Curve, rows: Sequence[Event]) -> Iterator[str]:
    """What the curve shows, in two lines."""
    rise, fit = curve.rise, curve.fit
    if rise is None:
        yield f"the share is {fit[0]:.0%} at every event asked about, it rises nowhere"
    else:
        left, right = (curve.points[place] for place in rise)
        yield (
            f"the share rises most, from {fit[rise[0]]:.0%} to {fit[rise[1]]:.0%}, between event "
            f"{left.eid} ({event_text(rows[left.eid])}) and event {right.eid} "
            f"({event_text(rows[right.eid])})"
        )
    found = curve.inevitable
    if found is None:
        yield f"nowhere before the anomaly does the share reach {INEVITABLE:.0%}"
    else:
        yield (
            f"with event {found.eid} at {found.at / 1e6:.4f} s kept, {_counted(found)} break "
            f"{curve.invariant}"
        )


def _counted(point: Point) -> str:
    """How many futures failed, with an interval, because a few futures prove little."""
    _, low, high = point.share
    return f"{point.hits} of {point.tries} futures (95 %: {100 * low:.0f} to {100 * high:.0f} %)"


def curve_section(curve: Curve, rows: Sequence[Event]) -> str:
    """The section."""
    said = "".join(f"<li>{escape(each)}</li>" for each in summary(curve, rows))
    points = "".join(_row(point, rows) for point in curve.points)
    heads = ("#at", "#event", "#fail alike", "#share", "#95 % interval")
    body = (
        f'<ul>{said}</ul><div class="scroll">{_picture(curve)}</div>'
        "<details><summary>Point by point</summary>"
        f"{table((*heads, 'the last event that is kept'), points)}</details>"
        '<p class="fine">At each point all choices up to there are kept and what follows is drawn '
        "anew, as often as the table says. Dots: the share that fails alike, with its 95 % "
        "interval. Line: the best fit that never falls, for what is decided stays decided.</p>"
    )
    return section("When did it become inevitable?", body, "why")


def _row(point: Point, rows: Sequence[Event]) -> str:
    share, low, high = point.share
    return (
        f"<tr><td class='n'>{point.at / 1e6:.4f} s</td><td class='n'>{point.eid}</td>"
        f"<td class='n'>{point.hits} of {point.tries}</td><td class='n'>{share:.0%}</td>"
        f"<td class='n'>{low:.0%} to {high:.0%}</td>"
        f"<td>{escape(event_text(rows[point.eid]))}</td></tr>"
    )


def _picture(curve: Curve) -> str:
    last = max(curve.points[-1].eid, 1)
    wide = WIDTH - LEFT - RIGHT

    def x(point: Point) -> float:
        return LEFT + wide * point.eid / last

    def y(share: float) -> float:
        return TOP + PLOT * (1 - share)

    parts = []
    for share in (0.0, 0.5, INEVITABLE):
        parts.append(line("grid", (LEFT, y(share)), (WIDTH - RIGHT, y(share))))
        parts.append(text("tick", LEFT - 8, y(share) + 4, f"{share:.0%}", "end"))
    if curve.rise is not None:
        left, right = (curve.points[place] for place in curve.rise)
        size = (x(right) - x(left), float(PLOT))
        parts.append(box("scene", (x(left), TOP), size, "the share rises most here"))
    pairs = zip(curve.points, curve.fit, strict=True)
    points = " ".join(f"{x(each):.1f},{y(share):.1f}" for each, share in pairs)
    parts.append(f'<polyline class="curve" points="{points}"/>')
    labelled = -ROOM
    for each in curve.points:
        share, low, high = each.share
        parts.append(line("whisker", (x(each), y(low)), (x(each), y(high))))
        title = f"<title>{share:.0%} at event {each.eid}, {each.at / 1e6:.4f} s</title>"
        parts.append(f'<circle class="dot" cx="{x(each):.1f}" cy="{y(share):.1f}" r="4">{title}')
        parts.append("</circle>")
        if x(each) - labelled >= ROOM:
            labelled = x(each)
            parts.append(text("tick", labelled, TOP + PLOT + 16, str(each.eid), "middle"))
    label = "Share of futures that fail alike, by the event up to which choices are kept"
    return (
        f'<svg class="glance" viewBox="0 0 {WIDTH} {TOP + PLOT + 26}" role="img" '
        f'aria-label="{label}">{"".join(parts)}</svg>'
    )
