"""Scenes: which moments of a run are drawn, and how the others are counted.

A *moment* is what one place did at one time: steps that follow each other there, with one line of
text. A turn of a node is one moment, however many steps it has. A moment without text is dropped,
unless a wire that is drawn ends there.

A *scene* is a stretch of moments around decisive ones. A short run is one scene. In a longer run,
the stretches shrink until there are few enough moments altogether. One line between two scenes says
what was left out. If a page has no room for that many moments (`room.py`), it keeps those around
the first bad event, and the beginning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ottla.raft.types import Micros
from ottla.report.explain.story import Story, concerns
from ottla.report.explain.wires import REPLY, family
from ottla.report.explain.words import joined, place_name, sentence
from ottla.sim.recording.record import Recording
from ottla.sim.recording.recorder import Place, Step, Wire

MOST_MOMENTS = 360
MARGINS = (14, 8, 5, 3, 1)
"""Moments shown before and after a decisive one: the widest margin that fits is taken."""
_APART = {"ended", "noticed"}
"""Steps that are always a moment of their own."""
_WIRED = {"sent", "received", "asked", "arrived", "answered", "heard"}


@dataclass(slots=True, eq=False)
class Moment:
    """See the module's docstring."""

    place: Place | None
    at: Micros
    steps: list[Step]
    text: str
    decisive: bool = False
    bad: bool = False

    @property
    def number(self) -> int:
        """The number that identifies it: that of its first step."""
        return self.steps[0].number

    @property
    def last(self) -> int:
        """The number of its last step."""
        return self.steps[-1].number


@dataclass(slots=True)
class Scene:
    """A stretch of moments; `before` says what was left out before it."""

    moments: list[Moment]
    before: str = ""
    wires: list[tuple[Wire, int | None, int | None]] = field(default_factory=list)
    """Each wire with the places of its ends among the moments; None: outside of them."""


def scenes_of(
    recording: Recording, moments: Sequence[Moment], most: int = MOST_MOMENTS
) -> list[Scene]:
    """The scenes of a partition, with at most about `most` of these moments."""
    if len(moments) <= most // 2:
        stretches = [range(len(moments))] if moments else []
    else:
        stretches = _stretches(moments, most)
    return _cut(recording, moments, stretches)


def fewer_scenes(recording: Recording, moments: Sequence[Moment], most: int) -> list[Scene]:
    """The same for a shortened page, with never more than `most` moments. If moments after the last
    scene are left out, a scene without moments says so."""
    stretches = [range(len(moments))]
    marked = _marked(moments)
    if marked and len(moments) > most:
        for margin in MARGINS:
            stretches = _merged(marked, margin, len(moments))
            if sum(map(len, stretches)) <= most:
                break
    bad = next((place for place, each in enumerate(moments) if each.bad), None)
    kept = _nearest(stretches, most, bad)
    end = kept[-1].stop if kept else 0
    scenes = _cut(recording, moments, kept)
    if end < len(moments):
        scenes.append(Scene([], _left_out(recording, moments[end:])))
    return scenes


def _cut(
    recording: Recording, moments: Sequence[Moment], stretches: Iterable[range]
) -> list[Scene]:
    scenes = []
    end = 0
    for stretch in stretches:
        drawn = list(moments[stretch.start : stretch.stop])
        scene = Scene(drawn, _left_out(recording, moments[end : stretch.start]))
        scene.wires = list(wires_of(drawn))
        scenes.append(scene)
        end = stretch.stop
    return scenes


def moments_of(recording: Recording, story: Story) -> list[Moment]:
    """Every moment of a partition that is worth a line."""
    decisive = {item.step for item in story.items}
    replicas = recording.placement.get(story.partition, ())
    found: list[Moment] = []
    for steps in _turns(recording.near(story.partition), story, replicas):
        marked = [step for step in steps if step.number in decisive]
        bad = any(step.number == story.bad for step in steps)
        if bad or marked or any(_shown(step) for step in steps):
            place, at = steps[0].place, steps[0].at
            # Decisive steps come first, because a long line is cut.
            ordered = [*marked, *(step for step in steps if step not in marked)]
            text = joined(ordered) or (story.found if bad else "")
            if bad and steps[0].what in _APART:
                text = f"{text}: {story.found.removeprefix(f'{place_name(place, {})}: ')}"
            found.append(Moment(place, at, steps, text, bool(marked), bad))
    return found


def _turns(steps: Iterable[Step], story: Story, replicas: tuple[int, ...]) -> Iterator[list[Step]]:
    """Groups of successive steps of one place and time."""
    turn: list[Step] = []
    for step in steps:
        if step.what == "final" and step.number != story.bad:
            continue
        if not concerns(step, story.partition, replicas):
            continue
        if turn and (step.place != turn[0].place or step.at != turn[0].at or _alone(step)):
            yield turn
            turn = []
        turn.append(step)
    if turn:
        yield turn


def _alone(step: Step) -> bool:
    return step.place is None or step.what in _APART


def _shown(step: Step) -> bool:
    if step.what in _WIRED:
        assert step.wire is not None, "something went over a wire"
        kind = family(step.wire)
        return kind is not None and (kind != REPLY or step.what in {"sent", "received"})
    return sentence(step) is not None


def _stretches(moments: Sequence[Moment], most: int) -> list[range]:
    marked = _marked(moments)
    if not marked:
        return [range(max(0, len(moments) - most // 4), len(moments))]
    for margin in MARGINS:
        stretches = _merged(marked, margin, len(moments))
        if sum(map(len, stretches)) <= most:
            break
    else:
        stretches = _last_of(_merged(marked, MARGINS[-1], len(moments)), most)
    return stretches


def _marked(moments: Iterable[Moment]) -> list[int]:
    return [place for place, each in enumerate(moments) if each.decisive or each.bad]


def _merged(marked: Iterable[int], margin: int, end: int) -> list[range]:
    stretches: list[range] = []
    for place in marked:
        start, stop = max(0, place - margin), min(end, place + margin + 1)
        if stretches and start <= stretches[-1].stop + 2:
            stretches[-1] = range(stretches[-1].start, max(stop, stretches[-1].stop))
        else:
            stretches.append(range(start, stop))
    return stretches


def _last_of(stretches: list[range], most: int) -> list[range]:
    """The last `most` moments, because what led to the end matters most."""
    kept: list[range] = []
    for stretch in reversed(stretches):
        if most <= 0:
            break
        kept.append(stretch if len(stretch) <= most else stretch[-most:])
        most -= len(stretch)
    return kept[::-1]


def _nearest(stretches: Iterable[range], most: int, bad: int | None) -> list[range]:
    """The `most` moments to keep. Of a failed run, three quarters are around the first bad event,
    and the others are the beginning. Of a run that passed, all are the beginning."""
    places = [place for stretch in stretches for place in stretch]
    near: list[int] = []
    if bad is not None:
        near = sorted(places, key=lambda place: abs(place - bad))[: most - most // 4]
    kept: list[range] = []
    for place in sorted({*near, *places[: most - len(near)]}):
        if kept and kept[-1].stop == place:
            kept[-1] = range(kept[-1].start, place + 1)
        else:
            kept.append(range(place, place + 1))
    return kept


def wires_of(moments: Sequence[Moment]) -> Iterator[tuple[Wire, int | None, int | None]]:
    """Wires with an end in these moments, each once, with the places of its ends."""
    places = {step.number: place for place, moment in enumerate(moments) for step in moment.steps}
    seen: set[int] = set()
    for moment in moments:
        for step in moment.steps:
            wire = step.wire
            if wire is None or id(wire) in seen or family(wire) is None:
                continue
            seen.add(id(wire))
            end = None if wire.end is None else places.get(wire.end)
            yield wire, places.get(wire.start), end


def _left_out(recording: Recording, moments: Sequence[Moment]) -> str:
    """One line about the moments that are left out between two scenes."""
    if not moments:
        return ""
    span = (moments[-1].at - moments[0].at) / 1e6
    counts: Counter[str] = Counter()
    for moment in moments:
        for step in moment.steps:
            if step.what in _COUNTED:
                counts[step.what] += 1
    told = [f"{counts[kind]} {name}" for kind, name in _COUNTED.items() if counts[kind]]
    last = moments[-1]
    where = f"{place_name(last.place, recording.names)}: {last.text}"
    return f"{len(moments)} moments in {span:.3f} s: {', '.join(told) or where}"


_COUNTED = {
    "send": "batches sent",
    "ok": "records acknowledged",
    "poll": "records read",
    "error": "answers that are tried again",
    "leader": "elections won",
    "crash": "replicas down",
    "truncate": "logs cut",
}
