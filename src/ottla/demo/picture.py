"""The timeline as inline SVG: who led each partition, acknowledgements, high watermarks, faults.

There is one panel per partition, and one time axis for all. Colours come from the page's CSS
classes, so that the picture follows dark mode and print. The title of a mark, which appears when
the pointer is over it, says what it means.

    badges      one numbered circle per fault, with a line through all panels
    band        leaders, coloured by node, with their term; hatched: no leader
    area        records acknowledged per second; a burst that would flatten all others is cut at
                the top of the scale, with its number
    line        high watermark
    crosses     acknowledged records that are lost
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ottla.demo.result import Result
from ottla.demo.settings import PARTITIONS
from ottla.demo.timeline import Timeline
from ottla.raft.types import Micros
from ottla.report.page.svg import HATCH, box, line, text, tick

WIDTH = 1160
LEFT, RIGHT = 64, 84
TOP = 54
BAND = 24
PLOT = 92
PANEL = BAND + PLOT + 34
AXIS = 34
BUCKET: Micros = 250_000
MIN_LABEL_WIDTH = 30
BURST = 2
"""Acknowledgements at this many times the usual rate, or more, are a burst."""


class Picture:
    """Scales of one run's picture."""

    def __init__(self, result: Result):
        self.result = result
        self.start = result.started
        self.span = max(result.ended - result.started, 1)
        self.height = TOP + PARTITIONS * PANEL + AXIS
        self.rates = [_rates(result, each) for each in range(PARTITIONS)]
        self.top_rate = _round_up(_usual_most([rate for each in self.rates for rate in each]))
        marks = result.samples[-1].high_watermarks if result.samples else (1,)
        self.top_mark = _round_up(max(marks))

    def x(self, at: Micros) -> float:
        """The horizontal place of a time."""
        share = min(max((at - self.start) / self.span, 0), 1)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def seconds(self, at: Micros) -> float:
        """Seconds since the run began; 0 for an earlier time."""
        return max(at - self.start, 0) / 1e6

    def draw(self) -> str:
        """The whole picture."""
        label = "Leaders, acknowledgements and high watermarks over time"
        size = f"0 0 {WIDTH} {self.height}"
        parts = [
            f'<svg viewBox="{size}" role="img" class="timeline" aria-label="{label}">',
            HATCH,
            *self._axis(),
            *(part for each in range(PARTITIONS) for part in self._panel(each)),
            *self._faults(),
            "</svg>",
        ]
        return "\n".join(parts)

    # --- axis and faults ----------------------------------------------------------------------

    def _axis(self) -> Iterable[str]:
        bottom = TOP + PARTITIONS * PANEL - 10
        step = tick(self.span / 1e6)
        for number in range(int(self.span / 1e6 / step) + 1):
            at = number * step
            x = self.x(self.start + round(at * 1e6))
            yield line("grid", (x, TOP), (x, bottom))
            yield text("tick", x, bottom + 18, f"{at:g} s", "middle")

    def _faults(self) -> Iterable[str]:
        bottom = TOP + PARTITIONS * PANEL - 10
        last = -100.0
        row = 0
        for number, deed in enumerate(self.result.deeds, 1):
            x = self.x(deed.at)
            row = (row + 1) % 2 if x - last < 20 else 0
            last = x
            y = 34 - 20 * row
            title = f"{number}: {deed.text}, at {self.seconds(deed.at):.2f} s"
            yield (
                f'<g class="fault"><title>{escape(title)}</title>'
                f'<line x1="{x:.1f}" y1="{y + 9}" x2="{x:.1f}" y2="{bottom}"/>'
                f'<circle cx="{x:.1f}" cy="{y}" r="9"/>'
                f'<text x="{x:.1f}" y="{y + 3.6}" text-anchor="middle">{number}</text></g>'
            )

    # --- one partition ------------------------------------------------------------------------

    def _panel(self, partition: int) -> Iterable[str]:
        top = TOP + partition * PANEL
        yield text("name", LEFT - 10, top + 16, f"demo-{partition}", "end")
        yield from self._band(self.result.timelines[partition], top)
        plot = top + BAND + 8
        yield from self._scale(plot)
        yield self._area(partition, plot)
        yield from self._bursts(partition, plot)
        yield self._line(partition, plot)
        yield from self._lost(partition, plot)

    def _band(self, told: Timeline, top: float) -> Iterable[str]:
        for change in told.changes:
            if change.micros:
                x, end = self.x(change.start), self.x(change.end)
                why = f"{change.cause} of" if change.failover else "the stepping down of"
                title = (
                    f"no leader for {change.micros / 1000:,.0f} ms after {why} node "
                    f"{change.old}; then node {change.new}, term {change.term}"
                )
                yield box("gap", (x, top), (end - x, BAND), title)
        for reign in told.reigns:
            x, end = self.x(reign.start), self.x(reign.end)
            title = (
                f"node {reign.node} led term {reign.term} from {self.seconds(reign.start):.2f} s "
                f"to {self.seconds(reign.end):.2f} s"
            )
            yield box(f"node{reign.node}", (x, top), (end - x, BAND), title)
            if end - x >= MIN_LABEL_WIDTH:
                label = f"term {reign.term}" if end - x > 52 else f"t{reign.term}"
                yield text("term", (x + end) / 2, top + 16, label, "middle")

    def _scale(self, plot: float) -> Iterable[str]:
        right = WIDTH - RIGHT
        yield line("base", (LEFT, plot + PLOT), (right, plot + PLOT))
        for share in (0.0, 0.5, 1.0):
            y = plot + PLOT * (1 - share)
            if share:
                yield line("grid", (LEFT, y), (right, y))
            yield text("tick", LEFT - 8, y + 4, _short(self.top_rate * share), "end")
            yield text("tick mark", right + 8, y + 4, _short(self.top_mark * share))

    def _area(self, partition: int, plot: float) -> str:
        bottom = plot + PLOT
        points = [f"{self.x(self.start):.1f},{bottom}"]
        for number, rate in enumerate(self.rates[partition]):
            y = bottom - PLOT * min(rate / self.top_rate, 1)
            edges = (self.start + number * BUCKET, self.start + (number + 1) * BUCKET)
            points.extend(f"{self.x(edge):.1f},{y:.1f}" for edge in edges)
        points.append(f"{self.x(self.result.ended):.1f},{bottom}")
        title = f"demo-{partition}: records acknowledged per second"
        return f'<polygon class="acks" points="{" ".join(points)}"><title>{title}</title></polygon>'

    def _bursts(self, partition: int, plot: float) -> Iterable[str]:
        """The number of each bucket that is higher than the scale."""
        for number, rate in enumerate(self.rates[partition]):
            if rate > self.top_rate:
                x = min(self.x(self.start + number * BUCKET), WIDTH - RIGHT - 4)
                yield text("tick burst", x, plot + 10, f"\u2191 {_short(round(rate, -2))}", "end")

    def _line(self, partition: int, plot: float) -> str:
        points = []
        before = None
        for sample in self.result.samples:
            mark = sample.high_watermarks[partition]
            if mark != before or sample is self.result.samples[-1]:
                y = plot + PLOT * (1 - mark / self.top_mark)
                points.append(f"{self.x(sample.at):.1f},{y:.1f}")
                before = mark
        title = f"demo-{partition}: high watermark, {before or 0:,} at the end"
        return (
            f'<g><title>{title}</title><polyline class="watermark" points="{" ".join(points)}"/>'
            f"</g>"
        )

    def _lost(self, partition: int, plot: float) -> Iterable[str]:
        for group in self.result.loss_groups:
            if group.partition == partition:
                x, y = self.x(group.at), plot + PLOT / 2
                title = (
                    f"{group.records:,} acknowledged records lost at {self.seconds(group.at):.2f} s"
                )
                yield (
                    f'<g class="lost"><title>{title}</title>'
                    f'<path d="M{x - 6:.1f} {y - 6}l12 12m0 -12l-12 12"/>'
                    f'<text x="{x + 11:.1f}" y="{y + 4}">{group.records:,} lost</text></g>'
                )


def _rates(result: Result, partition: int) -> Sequence[float]:
    """Records acknowledged per second, in buckets of `BUCKET`."""
    counts = [0.0] * ((result.ended - result.started) // BUCKET + 1)
    before = 0
    for sample in result.samples:
        acked = sample.acked[partition]
        bucket = max(sample.at - result.started, 0) // BUCKET
        counts[min(bucket, len(counts) - 1)] += acked - before
        before = acked
    return [count * 1e6 / BUCKET for count in counts]


def _usual_most(rates: Sequence[float]) -> float:
    """The highest of these rates, without bursts. A burst is above `BURST` times the 90th
    percentile: a last flush acknowledges in a moment what was sent in seconds."""
    some = sorted(rate for rate in rates if rate)
    if not some:
        return 1.0
    usual = some[(len(some) - 1) * 9 // 10]
    return max(rate for rate in some if rate <= BURST * usual)


def _round_up(value: float) -> float:
    """Round up to 1, 2, 4, 5 or 8 times a power of ten, so that half of it is round, too."""
    scale = 1.0
    while scale * 10 <= value:
        scale *= 10
    return next((f * scale for f in (1, 2, 4, 5, 8) if f * scale >= value), scale * 10)


def _short(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
