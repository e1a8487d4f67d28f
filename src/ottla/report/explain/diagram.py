"""The space-time diagram: a lane for each client and node, time downwards, a wire per message.

Each moment has a row of its own, so that two moments a microsecond apart are both readable. The
margin on the left has the times. The height of a row follows from the lines of its sentence. A
scene is cut into strips, each of them one picture, so that a page of paper may break between them.
A wire through several strips is drawn in each.

    lane of a node   its colour is the term; wide: it leads, hatched: it stands for election,
                     narrow: it follows, dotted: it is paused, none: it is down
    grey border      links from or to the node are cut
    wire             from the sender to the receiver; a cross: it never arrived
    dot              something happened there; large: decisive; a ring: the first bad event
    dotted line      it happened everywhere; a red one: the first bad event is in no lane
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import accumulate
from textwrap import wrap

from ottla.raft.types import NodeId
from ottla.report.explain.lanes import Lanes, Look
from ottla.report.explain.scenes import Moment, Scene
from ottla.report.explain.wires import family, wire_label
from ottla.report.explain.words import place_name
from ottla.report.page.svg import box, line, text
from ottla.sim.recording.recorder import Place, Wire
from ottla.sim.recording.states import ABSENT, DOWN

ROW = 21
LINE = 15
"""Height that each further line of a sentence adds to a row."""
LINES = 3
"""Most lines of a sentence."""
BAD_LINES = 12
"""Most lines of the sentence about the first bad event."""
GUTTER = 92
CLIENT, NODE = 66, 92
WORDS = 600
"""Width of the column of sentences."""
LONGEST = 82
STRIP = 8
"""Rows in a strip. Paper breaks between strips, so a low strip does not leave half a page empty."""
COLOURS = 7
_MARGIN = "\u2003"
"""Indents the further lines of a sentence."""
_WIDTHS = {"leader": 22.0, "candidate": 13.0, "precandidate": 13.0, "follower": 6.0}


def colour(term: int) -> str:
    """The class of a term's colour."""
    return f"t{(term - 1) % COLOURS + 1}" if term > 0 else "t0"


def anchor(partition: int, moment: Moment) -> str:
    """The name of a moment on its page; the same moment may be drawn for several partitions."""
    return f"p{partition}s{moment.number}"


class Diagram:
    """Draws the scenes of one partition, in order."""

    def __init__(self, lanes: Lanes, clients: Sequence[int], names: dict[int, str]):
        self.lanes = lanes
        self.names = names
        self.places: list[Place] = [("client", each) for each in clients]
        self.places += [("node", each) for each in lanes.nodes]
        self.x: dict[Place, float] = {}
        at = float(GUTTER)
        for place in self.places:
            width = CLIENT if place[0] == "client" else NODE
            self.x[place] = at + width / 2
            at += width
        self.edge = at + 20
        self.width = self.edge + WORDS
        self._tops: list[float] = []
        """The top of each row of the present scene, and the end of the last row."""

    def strips(self, scene: Scene) -> Iterator[str]:
        """A scene as pictures, one below the other."""
        looks: list[dict[NodeId, Look]] = []
        cuts: list[dict[NodeId, str]] = []
        for moment in scene.moments:
            self.lanes.until(moment.last)
            looks.append(self.lanes.looks())
            cuts.append(self.lanes.cut_off())
        count = len(scene.moments)
        said = [self._said(each) for each in scene.moments]
        heights = (ROW + LINE * (len(each) - 1) for each in said)
        self._tops = list(accumulate(heights, initial=0.0))
        for start in range(0, count, STRIP):
            rows = range(start, min(start + STRIP, count))
            parts = [
                *self._bands(looks, cuts, rows),
                *self._wires(scene, rows),
                *(
                    self._moment(scene.moments[row], said[row], self._top(row, rows))
                    for row in rows
                ),
            ]
            first = scene.moments[start].at / 1e6
            label = f"Messages from {first:.4f} s on, {len(rows)} moments, time downwards"
            yield self._picture(label, self._top(rows.stop, rows), parts)

    def head(self) -> str:
        """The names of the lanes."""
        parts = [text("tick", GUTTER - 10, 16, "time", "end")]
        parts += [
            text("lane", x, 16, place_name(place, self.names), "middle")
            for place, x in self.x.items()
        ]
        parts.append(text("tick", self.edge + 12, 16, "what happened there"))
        return self._picture("Lanes", 24, parts)

    def _picture(self, label: str, height: float, parts: Sequence[str]) -> str:
        return (
            f'<svg class="strip" viewBox="0 0 {self.width:g} {height:g}" role="img" '
            f'aria-label="{escape(label)}">'
            f"{''.join(parts)}</svg>"
        )

    # ---- lanes

    def _bands(
        self,
        looks: Sequence[dict[NodeId, Look]],
        cuts: Sequence[dict[NodeId, str]],
        rows: range,
    ) -> Iterator[str]:
        height = self._top(rows.stop, rows)
        for place in self.places:
            if place[0] == "client":
                x = self.x[place]
                yield line("thread", (x, 0), (x, height))
        for node in self.lanes.nodes:
            x = self.x["node", node]
            for start, stop in _runs([cuts[row][node] for row in rows]):
                lost = cuts[rows[start]][node]
                if lost:
                    top, end = (self._top(rows.start + each, rows) for each in (start, stop))
                    corner, size = (x - 16, top), (32, end - top)
                    kind = "cut some" if lost.startswith("some") else "cut"
                    yield box(kind, corner, size, f"node {node}: {lost}")
            for start, stop in _runs([looks[row][node] for row in rows]):
                ends = (self._top(rows.start + each, rows) for each in (start, stop))
                yield from self._band(node, looks[rows[start]][node], *ends)

    def _band(self, node: NodeId, look: Look, top: float, end: float) -> Iterator[str]:
        x, height = self.x["node", node], end - top
        if look.role == ABSENT:
            return
        if look.role == DOWN:
            yield line("down", (x, top), (x, top + height))
            if height > ROW:
                yield text("role", x + 15, top + 14, "down")
            return
        width = _WIDTHS.get(look.role, 6.0)
        paused = " paused" if look.paused else ""
        title = f"node {node}: {look.role} in term {look.term}{', paused' if paused else ''}"
        kind = f"band {look.role} {colour(look.term)}{paused}"
        yield box(kind, (x - width / 2, top), (width, height), title)
        short = "paused" if paused else f"{'leads ' if look.role == 'leader' else ''}t{look.term}"
        if height > ROW:
            yield text("role", x + 15, top + 14, short)

    # ---- wires

    def _wires(self, scene: Scene, rows: range) -> Iterator[str]:
        for wire, start, end in scene.wires:
            if wire.origin in self.x and wire.goal in self.x:
                yield from self._wire(wire, start, end, rows)

    def _wire(self, wire: Wire, start: int | None, end: int | None, rows: range) -> Iterator[str]:
        x1, x2 = self.x[wire.origin], self.x[wire.goal]
        kind = f"wire w-{family(wire)}"
        side = 1 if x2 > x1 else -1
        if start is not None and end is not None:
            if end < rows.start or start >= rows.stop:
                return
            y1, y2 = self._y(start, rows), self._y(end, rows)
            yield self._line(kind, wire, (x1 + 5 * side, y1), (x2 - 5 * side, y2))
            if end in rows:
                yield _arrow(kind, (x1, y1), (x2 - 5 * side, y2))
        elif start is not None and start in rows:
            y = self._y(start, rows)
            stop = (x1 + 26 * side, y + 7)
            lost = wire.end is None
            yield self._line(kind + (" lost" if lost else " on"), wire, (x1 + 5 * side, y), stop)
            if lost:
                yield f'<path class="cross" d="M{stop[0] - 3:g} {stop[1] - 3:g}l6 6m0 -6l-6 6"/>'
        elif end is not None and end in rows:
            y = self._y(end, rows)
            yield self._line(kind + " on", wire, (x2 - 26 * side, y - 7), (x2 - 5 * side, y))
            yield _arrow(kind, (x2 - 26 * side, y - 7), (x2 - 5 * side, y))

    def _line(
        self, kind: str, wire: Wire, start: tuple[float, float], end: tuple[float, float]
    ) -> str:
        who = f"{place_name(wire.origin, self.names)} to {place_name(wire.goal, self.names)}"
        lost = "" if wire.end is not None else ", never arrives"
        title = escape(f"{who}: {wire_label(wire)}{lost}")
        drawn = line(kind, start, end)
        return f"{drawn[:-2]}><title>{title}</title></line>"

    # ---- moments

    def _told(self, moment: Moment) -> str:
        who = place_name(moment.place, self.names)
        said = f"{who}: {moment.text}" if who else moment.text
        return ("\u25b6 first bad event: " if moment.bad else "") + said

    def _said(self, moment: Moment) -> list[str]:
        """The lines of a moment's sentence."""
        longest = LONGEST - 8 * (moment.decisive or moment.bad)  # bold is wider
        return wrap(
            self._told(moment),
            longest,
            subsequent_indent=_MARGIN,
            break_on_hyphens=False,
            max_lines=BAD_LINES if moment.bad else LINES,
            placeholder="\u2026",
        )

    def _moment(self, moment: Moment, said: Sequence[str], top: float) -> str:
        y, height = top + ROW / 2, ROW + LINE * (len(said) - 1)
        name = anchor(self.lanes.partition, moment)
        kinds = "moment" + (" decisive" if moment.decisive else "") + (" bad" if moment.bad else "")
        parts = [
            f'<g class="{kinds}" id="{name}" data-s="{moment.number}" tabindex="-1">',
            f"<title>{escape(f'{moment.at / 1e6:.6f} s  {self._told(moment)}')}</title>",
            f'<rect class="row" x="0" y="{top:g}" width="{self.width:g}" height="{height}"/>',
            text("tick", GUTTER - 10, y + 4, f"{moment.at / 1e6:.4f}", "end"),
        ]
        if moment.place in self.x:
            radius = 5 if moment.decisive or moment.bad else 3
            x = self.x[moment.place]
            parts.append(f'<circle class="dot" cx="{x:g}" cy="{y:g}" r="{radius}"/>')
            if moment.bad:
                parts.append(f'<circle class="ring" cx="{x:g}" cy="{y:g}" r="9"/>')
        elif moment.place is None or moment.bad:
            parts.append(line("everywhere", (GUTTER, y), (self.edge, y)))
        for number, each in enumerate(said):
            parts.append(text("said", self.edge + 12, y + 4 + LINE * number, each))
        return "".join((*parts, "</g>"))

    def _top(self, row: int, rows: range) -> float:
        """Where a row begins in the picture of `rows`; a row after these is below the picture."""
        return self._tops[row] - self._tops[rows.start]

    def _y(self, row: int, rows: range) -> float:
        """The height at which a row has its mark."""
        return self._top(row, rows) + ROW / 2


def _runs(values: Sequence[object]) -> Iterator[tuple[int, int]]:
    """Stretches of equal values, as start and stop."""
    start = 0
    for place in range(1, len(values) + 1):
        if place == len(values) or values[place] != values[start]:
            yield start, place
            start = place


def _arrow(kind: str, start: tuple[float, float], end: tuple[float, float]) -> str:
    """The arrow at the end of a wire."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = max((dx * dx + dy * dy) ** 0.5, 1.0)
    ux, uy = dx / length * 6, dy / length * 6
    left = (end[0] - ux - uy / 2, end[1] - uy + ux / 2)
    right = (end[0] - ux + uy / 2, end[1] - uy - ux / 2)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (end, left, right))
    return f'<polygon class="{kind}" points="{points}"/>'
