"""Charts of an experiment as inline SVG: lines over a number, or bars over names.

Published figures are rings that nothing joins; what was measured is a line with dots, or a bar.
Colours come from the page's classes, by the place of a series; a mark's title says its numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from math import ceil, floor, log10

from ottla.page import svg
from ottla.sim.experiments.model import Chart, Series

WIDTH, HEIGHT = 1160, 420
LEFT, RIGHT, TOP, BOTTOM = 84, 24, 20, 58
_PLOT_WIDTH = WIDTH - LEFT - RIGHT
_PLOT_HEIGHT = HEIGHT - TOP - BOTTOM
_STEPS = (1, 2, 2.5, 5, 10)
_MARKS = 6
"""Marks on an axis, about."""
_BARS_SHARE = 0.7
"""Of a name's place that its bars take."""


class _Scale:
    """Places in the picture of the numbers of one chart."""

    def __init__(self, chart: Chart):
        xs = [x for each in chart.series for x, _ in each.points]
        self.names = chart.names
        self.x_step = _step(max(xs) or 1)
        self.x_end = len(chart.names) or self.x_step * ceil(max(xs) / self.x_step)
        top = max(y for each in chart.series for _, y in each.points) or 1
        self.y_step = _step(top)
        self.y_end = self.y_step * ceil(top / self.y_step)

    def x(self, value: float) -> float:
        """Horizontal place."""
        return LEFT + _PLOT_WIDTH * value / self.x_end

    def y(self, value: float) -> float:
        """Vertical place."""
        return TOP + _PLOT_HEIGHT * (1 - value / self.y_end)


def draw(chart: Chart) -> str:
    """The picture."""
    scale = _Scale(chart)
    marks = _bars(chart, scale) if chart.names else _lines(chart, scale)
    size, label = f"0 0 {WIDTH} {HEIGHT}", escape(chart.title)
    begin = f'<svg viewBox="{size}" role="img" class="chart" aria-label="{label}">'
    return "\n".join((begin, *_axes(chart, scale), *marks, "</svg>"))


def legend(chart: Chart) -> str:
    """What the colours mean."""
    return "".join(
        f'<span><i class="key {"ring" if each.published else "dot"} s{place}"></i>'
        f"{escape(each.name)}</span>"
        for place, each in _placed(chart)
    )


def _placed(chart: Chart) -> Iterator[tuple[int, Series]]:
    """Each series with the number of its colour: published figures have that of the series before
    them, which they are to be compared with."""
    place = 0
    for each in chart.series:
        if not each.published:
            place += 1
        yield place, each


def _axes(chart: Chart, scale: _Scale) -> Iterator[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for number in range(round(scale.y_end / scale.y_step) + 1):
        value = number * scale.y_step
        y = scale.y(value)
        yield svg.line("grid" if number else "base", (LEFT, y), (right, y))
        yield svg.text("tick", LEFT - 10, y + 4, f"{value:,.10g}", "end")
    if chart.names:
        for place, name in enumerate(chart.names):
            yield svg.text("tick", scale.x(place + 0.5), bottom + 20, name, "middle")
    else:
        for number in range(floor(scale.x_end / scale.x_step) + 1):
            value = number * scale.x_step
            yield svg.text("tick", scale.x(value), bottom + 20, f"{value:g}", "middle")
    yield svg.text("name", LEFT + _PLOT_WIDTH / 2, HEIGHT - 12, chart.x, "middle")
    yield svg.text("name", LEFT, TOP - 6, chart.y)


def _lines(chart: Chart, scale: _Scale) -> Iterator[str]:
    for place, series in _placed(chart):
        at = [(scale.x(x), scale.y(y)) for x, y in series.points]
        if not series.published:
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
            yield f'<polyline class="series s{place}" points="{points}"/>'
        kind = "ring" if series.published else "dot"
        for (x, y), (a, b) in zip(at, series.points, strict=True):
            title = escape(f"{series.name}: {b:,.10g} at {a:g}")
            yield (
                f'<circle class="{kind} s{place}" cx="{x:.1f}" cy="{y:.1f}" '
                f'r="{7 if series.published else 4}"><title>{title}</title></circle>'
            )


def _bars(chart: Chart, scale: _Scale) -> Iterator[str]:
    width = _PLOT_WIDTH / scale.x_end * _BARS_SHARE / len(chart.series)
    for number, (place, series) in enumerate(_placed(chart)):
        for at, value in series.points:
            x = scale.x(at + 0.5) + width * (number - len(chart.series) / 2)
            y = scale.y(value)
            title = f"{series.name}, {chart.names[round(at)]}: {value:,g}"
            if value:
                yield svg.box(f"bar s{place}", (x, y), (width, scale.y(0) - y), title)
            yield svg.text("tick", x + width / 2, y - 6, f"{value:,g}", "middle")


def _step(top: float) -> float:
    """A round number that goes about `_MARKS` times into `top`."""
    raw = top / _MARKS
    scale = 10.0 ** floor(log10(raw))
    return next(each * scale for each in _STEPS if each * scale >= raw)
