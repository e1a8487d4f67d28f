"""The whole run at a glance: one picture, time to the right, at its true scale.

A band per partition shows its leaders and their terms. A band per node shows when the node was down
or paused. A tick at the bottom is a fault. Grey ground marks the scenes that are drawn below, of
all partitions; where scenes overlap, it is not darker. A red line is the first bad event. If a run
is too large for the page (`room.py`), spans and faults that are close together are drawn as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ottla.raft.types import Micros
from ottla.report.explain.diagram import colour
from ottla.report.explain.scenes import Scene
from ottla.report.explain.words import group_name, sentence
from ottla.report.page.svg import HATCH, box, line, text, tick
from ottla.sim.recording.record import Recording
from ottla.sim.recording.recorder import Step
from ottla.sim.scenarios.faults import COMMANDS

WIDTH, LEFT, RIGHT = 1160, 92, 16
BAND, GAP, TOP = 22, 8, 14
LETTER, AROUND = 8, 6
"""Widths: of a letter in a band, at most, and of the free room around the words."""
THIN, SEAM = 2, 1
"""The least width of a scene's ground, and the gap between two of them."""


class Span(NamedTuple):
    """A stretch of time in a band."""

    start: Micros
    end: Micros
    kind: str
    label: str
    title: str


class Glance:
    """Scales of one run's picture."""

    def __init__(
        self, recording: Recording, partitions: Iterable[int] | None = None, coarse: float = 0
    ):
        self.recording = recording
        self.end: Micros = max(recording.rows[-1].t_us if recording.rows else 1, 1)
        self.partitions = sorted(recording.placement if partitions is None else partitions)
        self.coarse = coarse
        """Spans and faults that are closer together than this are drawn as one."""
        self.nodes = sorted({n for each in recording.placement.values() for n in each})

    def x(self, at: Micros) -> float:
        """The horizontal place of a time."""
        return LEFT + (WIDTH - LEFT - RIGHT) * min(max(at / self.end, 0), 1)

    def draw(self, scenes: Iterable[Scene], bad: Micros | None) -> str:
        """The whole picture."""
        rows = len(self.partitions) + len(self.nodes)
        bottom = TOP + rows * (BAND + GAP) + 18
        parts = [HATCH, *self._ground(scenes, bottom), *self._axis(bottom)]
        top = TOP
        for partition in self.partitions:
            parts.append(text("name", LEFT - 10, top + 15, group_name(partition), "end"))
            parts += self._spans(reigns(self.recording, partition), top)
            top += BAND + GAP
        for node in self.nodes:
            parts.append(text("name", LEFT - 10, top + 15, f"node {node}", "end"))
            parts += self._spans(lives(self.recording, node), top)
            top += BAND + GAP
        parts += self._faults(bottom - 12)
        if bad is not None:
            x = self.x(bad)
            parts.append(line("badline", (x, 4), (x, bottom)))
            parts.append(text("badtext", x - 5, 12, "first bad event", "end"))
        label = "Who led, who was down, what was done on purpose, over the whole run"
        return (
            f'<svg class="glance" viewBox="0 0 {WIDTH} {bottom + 22}" role="img" '
            f'aria-label="{label}">{"".join(parts)}</svg>'
        )

    def _ground(self, scenes: Iterable[Scene], bottom: float) -> Iterator[str]:
        """The ground of the scenes, each stretch once: the shade is translucent, and would be
        darker where two scenes overlap."""
        for start, end in _joined(self._across(each) for each in scenes if each.moments):
            size = (end - start, bottom - 6)
            yield box("scene", (start, 4), size, "drawn step by step below")

    def _across(self, scene: Scene) -> tuple[float, float]:
        """Where a scene begins and ends."""
        start, end = self.x(scene.moments[0].at), self.x(scene.moments[-1].at)
        return start, max(end, start + THIN)

    def _spans(self, spans: Iterable[Span], top: float) -> Iterator[str]:
        for span in self._coarser(spans):
            x, width = self.x(span.start), self.x(span.end) - self.x(span.start)
            yield box(span.kind, (x, top), (width, BAND), span.title)
            if said := _label(span, width):
                yield text("term", x + width / 2, top + 15, said, "middle")

    def _coarser(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Spans that are wide enough; one that is not is joined with those that follow."""
        waiting: list[Span] = []
        for span in spans:
            waiting.append(span)
            if self.x(span.end) - self.x(waiting[0].start) >= self.coarse:
                yield _one(waiting)
                waiting = []
        if waiting:
            yield _one(waiting)

    def _faults(self, y: float) -> Iterator[str]:
        yield text("name", LEFT - 10, y + 4, "faults", "end")
        waiting: list[tuple[Micros, str]] = []
        for at, title in self._told_faults():
            if waiting and self.x(at) - self.x(waiting[0][0]) >= self.coarse:
                yield self._tick(waiting, y)
                waiting = []
            waiting.append((at, title))
        if waiting:
            yield self._tick(waiting, y)

    def _told_faults(self) -> Iterator[tuple[Micros, str]]:
        for step in self.recording.steps:
            said = sentence(step) if step.what == "fault" or _scripted(step) else None
            if said is not None:
                who = f"node {step.place[1]}: " if step.place else ""
                yield step.at, f"{step.at / 1e6:.3f} s, {who}{said}"

    def _tick(self, faults: Sequence[tuple[Micros, str]], y: float) -> str:
        start, end = faults[0][0], faults[-1][0]
        title = faults[0][1]
        if len(faults) > 1:
            title = f"{len(faults)} faults from {start / 1e6:.3f} to {end / 1e6:.3f} s"
        width = max(self.x(end) - self.x(start), 0) + 3
        return box("tickmark", (self.x(start) - 1.5, y - 6), (width, 12), title)

    def _axis(self, bottom: float) -> Iterator[str]:
        step = tick(self.end / 1e6)
        for number in range(int(self.end / 1e6 / step) + 1):
            at = number * step
            x = self.x(round(at * 1e6))
            yield line("grid", (x, TOP - 4), (x, bottom))
            yield text("tick", x, bottom + 15, f"{at:g} s", "middle")


def _joined(stretches: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The same ground as stretches that do not overlap, from left to right."""
    waiting: tuple[float, float] | None = None
    for start, end in sorted(stretches):
        if waiting is None:
            waiting = start, end
        elif start < waiting[1] + SEAM:
            waiting = waiting[0], max(waiting[1], end)
        else:
            yield waiting
            waiting = start, end
    if waiting is not None:
        yield waiting


def _label(span: Span, width: float) -> str:
    """The part of a band's words that fits: all, the part before the comma, or nothing. The title
    always has all of it."""
    room = (width - AROUND) / LETTER
    shorter = (span.label, span.label.partition(",")[0])
    return next((each for each in shorter if len(each) <= room), "")


def _one(spans: Sequence[Span]) -> Span:
    """Several spans as one, drawn as the longest of them."""
    if len(spans) == 1:
        return spans[0]
    start, end = spans[0].start, spans[-1].end
    longest = max(spans, key=lambda span: span.end - span.start)
    title = f"{len(spans)} changes from {start / 1e6:.3f} to {end / 1e6:.3f} s"
    return Span(start, end, longest.kind, "", f"{title}, for the longest: {longest.title}")


def reigns(recording: Recording, partition: int) -> Sequence[Span]:
    """The leaders of a partition, each from the first to the last row of its leadership; hatched:
    no leader."""
    spans: list[Span] = []
    open_: dict[int, tuple[Micros, int]] = {}

    def close(node: int, at: Micros) -> None:
        start, term = open_.pop(node)
        title = f"node {node} led term {term} from {start / 1e6:.3f} to {at / 1e6:.3f} s"
        kind = f"reign {colour(term)}"
        spans.append(Span(start, at, kind, f"node {node}, term {term}", title))

    for row in recording.rows:
        if row.partition != partition or row.node is None:
            continue
        if row.kind == "leader":
            for node in list(open_):  # a leader that was deposed, even if it does not know it
                close(node, row.t_us)
            open_[row.node] = (row.t_us, row.term or 0)
        elif row.kind in {"stepdown", "crash"} and row.node in open_:
            close(row.node, row.t_us)
    for node in list(open_):
        close(node, recording.rows[-1].t_us)
    return _with_gaps(sorted(spans), recording.rows[-1].t_us)


def _with_gaps(spans: Sequence[Span], end: Micros) -> list[Span]:
    told: list[Span] = []
    at: Micros = 0
    for span in (*spans, Span(end, end, "", "", "")):
        if span.start > at:
            title = f"nobody led from {at / 1e6:.3f} to {span.start / 1e6:.3f} s"
            told.append(Span(at, span.start, "gap", "", title))
        if span.kind:
            told.append(span)
        at = max(at, span.end)
    return told


def lives(recording: Recording, node: int) -> Sequence[Span]:
    """When a node was up, paused and down."""
    spans: list[Span] = []
    state, since = "up", 0
    moves = {"crash": "down", "start": "up", "pause": "paused", "resume": "up"}
    for row in recording.rows:
        new = moves.get(row.kind)
        if row.node != node or new is None or new == state:
            continue
        spans.append(_life(node, state, since, row.t_us))
        state, since = new, row.t_us
    spans.append(_life(node, state, since, recording.rows[-1].t_us))
    return spans


def _life(node: int, state: str, start: Micros, end: Micros) -> Span:
    title = f"node {node} {state} from {start / 1e6:.3f} to {end / 1e6:.3f} s"
    return Span(start, end, f"life {state}", state, title)


def _scripted(step: Step) -> bool:
    """Whether a script did something to nodes, disks or links; scripts write no row of a fault."""
    return step.what == "command" and str(step.detail).split()[1] in COMMANDS
