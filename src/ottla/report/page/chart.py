"""Charts as inline SVG: lines over a number, or bars over names.

Measured figures are a line with dots, or bars. Published figures are rings without a line. A
whisker shows the 95 % interval of a figure; on a line with many points it is a band. Points of
several lines at the same x are a little apart, so that each whisker is visible. A line that is
hidden by others is drawn wider. Bars are vertical, or horizontal if their names need the room.
Colours come from the page's classes, by the place of a series. The title of a mark has its numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from math import inf
from pathlib import Path

from ottla.report.page import svg
from ottla.report.page.scale import Axis
from ottla.sim.studies.charts import Chart, Series, Span
from ottla.sim.studies.findings import number

STYLE = Path(__file__).with_name("chart.css")
WIDTH, HEIGHT = 1160, 420
LEFT, RIGHT, TOP, BOTTOM = 84, 24, 20, 58
_PLOT_WIDTH = WIDTH - LEFT - RIGHT
_PLOT_HEIGHT = HEIGHT - TOP - BOTTOM
_FIGURE = 18
"""Height of the number above a bar."""
_BARS_SHARE = 0.7
"""The share of a name's width that its bars take."""
_LETTER = 8.5
"""About the width of a letter on paper, where it is larger than on screen."""
_WIDEST_NAME = 510
_WIDEST_BAR = 90
_BAR = 17
"""Height of a horizontal bar."""
_MANY = 10
"""With at least this many points, a line has a band, not whiskers."""
_WIDER = 3.0
"""Width that is added to a line for each other line that hides it."""
_UPON = 3.0
"""Points nearer than this hide each other."""
_APART = 7.0
"""Distance between points of two lines at the same x, if they have whiskers."""
COLOURS = 8
"""Number of colours; further series use them again."""


def draw(chart: Chart) -> str:
    """The picture; for a chart without points, one line that says so."""
    if not any(each.points for each in chart.series):
        return '<p class="fine">There is nothing to draw.</p>'
    if chart.names and _crowded(chart):
        return _Lying(chart).draw()
    return (_Standing(chart) if chart.names else _Lines(chart)).draw()


def legend(chart: Chart) -> str:
    """What the colours mean."""
    return "".join(
        f'<span><i class="key {"ring" if each.published else "dot"} {_colour(place)}"></i>'
        f"{escape(each.name)}</span>"
        for place, each in _placed(chart)
    )


def certainty(chart: Chart) -> str:
    """A note on whiskers and bands, and why a point has none; empty if the chart wants none."""
    spans = [span for each in chart.series if not each.published for span in each.spans]
    if not spans:
        return ""
    few = "too few runs for one, or runs that all gave the same"
    if not any(spans):
        return f"No 95 % interval is drawn: each point has {few}."
    some = "" if all(spans) else f" Points without one have {few}."
    return f"Whiskers and bands are 95 % intervals.{some}"


def _crowded(chart: Chart) -> bool:
    """Whether the names or numbers of vertical bars would overlap."""
    slot = _PLOT_WIDTH / len(chart.names)
    longest = max(map(len, chart.names)) * _LETTER
    return slot < longest + 10 or slot * _BARS_SHARE / len(chart.series) < 5 * _LETTER


def _placed(chart: Chart) -> Iterator[tuple[int, Series]]:
    """Each series with the number of its colour. Published figures have the colour of the series
    before them, with which they are compared."""
    place = 0
    for each in chart.series:
        if not each.published:
            place += 1
        yield place, each


def _colour(place: int) -> str:
    return f"s{(max(place, 1) - 1) % COLOURS + 1}"


def _spans(series: Series) -> tuple[Span | None, ...]:
    return series.spans or (None,) * len(series.points)


def _values(chart: Chart) -> list[float]:
    """Every value on the y axis, with the ends of intervals."""
    found = [y for each in chart.series for _, y in each.points]
    return found + [end for each in chart.series for span in each.spans for end in span or ()]


def _title(series: Series, at: str, value: float, span: Span | None) -> str:
    told = f"{series.name}: {number(value)} at {at}"
    return told if span is None else f"{told}, 95 %: {number(span[0])} to {number(span[1])}"


def _svg(chart: Chart, height: float, marks: Iterator[str]) -> str:
    size, label = f"0 0 {WIDTH} {height:g}", escape(chart.title)
    kind = "chart wide" if height <= HEIGHT else "chart"
    begin = f'<svg viewBox="{size}" role="img" class="{kind}" aria-label="{label}">'
    return "\n".join((begin, *marks, "</svg>"))


class _Upright:
    """A chart whose y axis goes up."""

    def __init__(self, chart: Chart):
        self.chart = chart
        # Bars begin at 0, because their length is the number. It is above the bar and needs room.
        room = 1 + _FIGURE / _PLOT_HEIGHT if chart.names else 1
        values = [room * each for each in _values(chart)]
        self._up = Axis(values, _PLOT_HEIGHT, factors=not chart.names)

    def y(self, value: float) -> float:
        """The vertical place of a value."""
        return HEIGHT - BOTTOM - self._up.place(value)

    def grid(self) -> Iterator[str]:
        """What both kinds share: the y axis, and the names of the axes."""
        for value in self._up.marks:
            y = self.y(value)
            yield svg.line("grid", (LEFT, y), (WIDTH - RIGHT, y))
            yield svg.text("tick", LEFT - 10, y + 4, f"{value:,.10g}", "end")
        bottom = HEIGHT - BOTTOM
        yield svg.line("base", (LEFT, bottom), (WIDTH - RIGHT, bottom))
        middle = LEFT + _PLOT_WIDTH / 2
        yield svg.text("name", middle, HEIGHT - 12, self.chart.x, "middle")
        yield svg.text("name", LEFT, TOP - 6, self.chart.y)

    def whisker(self, colour: str, x: float, span: Span | None) -> Iterator[str]:
        """A whisker from one end of an interval to the other."""
        if span is not None:
            low, high = map(self.y, span)
            yield (
                f'<path class="whisker {colour}{" bars" if self.chart.names else ""}" '
                f'd="M{x - 4:.1f} {low:.1f}h8M{x:.1f} {low:.1f}V{high:.1f}m-4 0h8"/>'
            )


class _Lines(_Upright):
    """Lines over a number."""

    def __init__(self, chart: Chart):
        super().__init__(chart)
        xs = [x for each in chart.series for x, _ in each.points]
        self._along = Axis(xs, _PLOT_WIDTH, factors=True)
        self._many = max(len(each.points) for each in chart.series) >= _MANY
        whiskers = not self._many and any(any(each.spans) for each in chart.series)
        self._spread = _APART if whiskers else 0.0
        self._middle = (1 + max(place for place, _ in _placed(chart))) / 2

    def draw(self) -> str:
        """The picture."""
        return _svg(self.chart, HEIGHT, self._parts())

    def _x(self, value: float) -> float:
        return LEFT + self._along.place(value)

    def _parts(self) -> Iterator[str]:
        yield from self.grid()
        for value in self._along.marks:
            yield svg.text("tick", self._x(value), HEIGHT - BOTTOM + 20, f"{value:,.10g}", "middle")
        for place, series in _placed(self.chart):
            yield from self._series(place, series)

    def _series(self, place: int, series: Series) -> Iterator[str]:
        colour, under = _colour(place), self._under(series)
        aside = self._spread * (place - self._middle)
        at = [(x + aside, y) for x, y in self._places(series)]
        if self._many:
            yield from self._band(colour, series)
        if not series.published:
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
            style = f' style="stroke-width: {2 + _WIDER * under:g}"' if under else ""
            yield f'<polyline class="series {colour}" points="{points}"{style}/>'
        kind, radius = ("ring", 7.0) if series.published else ("dot", 2.0 if self._many else 4.0)
        radius += _WIDER / 2 * under
        for (x, y), (a, b), span in zip(at, series.points, _spans(series), strict=True):
            if not self._many:
                yield from self.whisker(colour, x, span)
            title = escape(_title(series, f"{a:g}", b, span))
            yield (
                f'<circle class="{kind} {colour}" cx="{x:.1f}" cy="{y:.1f}" '
                f'r="{radius:g}"><title>{title}</title></circle>'
            )

    def _places(self, series: Series) -> list[tuple[float, float]]:
        return [(self._x(x), self.y(y)) for x, y in series.points]

    def _under(self, series: Series) -> int:
        """How many of the lines that are drawn later hide this one."""
        mine = self._places(series)
        later = self.chart.series[self.chart.series.index(series) + 1 :]
        hiding = [each for each in later if _alike(mine, self._places(each))]
        return 0 if series.published else len([each for each in hiding if not each.published])

    def _band(self, colour: str, series: Series) -> Iterator[str]:
        sure = [
            (self._x(x), span)
            for (x, _), span in zip(series.points, _spans(series), strict=True)
            if span is not None
        ]
        edge = [(x, self.y(low)) for x, (low, _) in sure]
        edge += [(x, self.y(high)) for x, (_, high) in reversed(sure)]
        if edge:
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in edge)
            yield f'<polygon class="uncertain {colour}" points="{points}"/>'


def _alike(one: list[tuple[float, float]], other: list[tuple[float, float]]) -> bool:
    """Whether most points of one line are hidden by those of the other."""
    there = dict(other)
    return 2 * sum(abs(there.get(x, inf) - y) < _UPON for x, y in one) > len(one)


class _Standing(_Upright):
    """Bars side by side over names."""

    def draw(self) -> str:
        """The picture."""
        return _svg(self.chart, HEIGHT, self._parts())

    def _parts(self) -> Iterator[str]:
        chart, slot = self.chart, _PLOT_WIDTH / len(self.chart.names)
        yield from self.grid()
        for place, name in enumerate(chart.names):
            x = LEFT + slot * (place + 0.5)
            yield svg.text("tick", x, HEIGHT - BOTTOM + 20, name, "middle")
        width = min(slot * _BARS_SHARE / len(chart.series), _WIDEST_BAR)
        for order, (place, series) in enumerate(_placed(chart)):
            for (at, value), span in zip(series.points, _spans(series), strict=True):
                middle = LEFT + slot * (at + 0.5)
                x = middle + width * (order - len(chart.series) / 2)
                yield from self._bar((x, width), (_colour(place), series), (at, value), span)

    def _bar(
        self,
        room: tuple[float, float],
        of: tuple[str, Series],
        point: tuple[float, float],
        span: Span | None,
    ) -> Iterator[str]:
        (x, width), (colour, series), (at, value) = room, of, point
        y = self.y(value)
        if value:
            title = _title(series, self.chart.names[round(at)], value, span)
            yield svg.box(f"bar {colour}", (x, y), (width, self.y(0) - y), title)
        yield from self.whisker(colour, x + width / 2, span)
        top = y if span is None else self.y(span[1])
        yield svg.text("tick", x + width / 2, top - 6, number(value), "middle")


class _Lying:
    """Bars one below the other, each with its name on the left."""

    def __init__(self, chart: Chart):
        self.chart = chart
        letters = _LETTER * max(map(len, chart.names))
        self._left = min(letters, _WIDEST_NAME) + 24
        room = 9 * _LETTER
        """Room for numbers to the right of the bars."""
        self._along = Axis(_values(chart), WIDTH - RIGHT - room - self._left, factors=False)
        self._slot = len(chart.series) * _BAR + 10
        self._height = TOP + len(chart.names) * self._slot + BOTTOM

    def draw(self) -> str:
        """The picture."""
        return _svg(self.chart, self._height, self._parts())

    def _x(self, value: float) -> float:
        return self._left + self._along.place(value)

    def _parts(self) -> Iterator[str]:
        bottom = self._height - BOTTOM
        for value in self._along.marks:
            kind = "grid" if value else "base"
            yield svg.line(kind, (self._x(value), TOP), (self._x(value), bottom))
            yield svg.text("tick", self._x(value), bottom + 20, f"{value:,.10g}", "middle")
        middle = self._left + self._along.length / 2
        yield svg.text("name", middle, self._height - 12, self.chart.y, "middle")
        for place, name in enumerate(self.chart.names):
            y = TOP + self._slot * (place + 0.5) + 4
            yield svg.text("tick", self._left - 10, y, _cut(name), "end")
        for order, (place, series) in enumerate(_placed(self.chart)):
            for point, span in zip(series.points, _spans(series), strict=True):
                top = TOP + self._slot * point[0] + 5 + order * _BAR
                yield from self._bar(top, (_colour(place), series), point, span)

    def _bar(
        self, top: float, of: tuple[str, Series], point: tuple[float, float], span: Span | None
    ) -> Iterator[str]:
        (colour, series), (at, value) = of, point
        if value:
            title = _title(series, self.chart.names[round(at)], value, span)
            size = (self._x(value) - self._left, _BAR - 3)
            yield svg.box(f"bar {colour}", (self._left, top), size, title)
        middle, end = top + (_BAR - 3) / 2, self._x(value)
        if span is not None:
            low, high = map(self._x, span)
            yield (
                f'<path class="whisker {colour} bars" '
                f'd="M{low:.1f} {middle - 3:.1f}v6m0 -3H{high:.1f}m0 -3v6"/>'
            )
            end = high
        yield svg.text("tick", end + 6, middle + 4, number(value))


def _cut(name: str) -> str:
    most = int(_WIDEST_NAME / _LETTER)
    return name if len(name) <= most else f"{name[: most - 1]}\u2026"
