"""Room on a page: every page stays under a megabyte, however large the run is.

A page that fits is not changed. A page that does not fit is made again, shortened. What is equal on
several nodes appears once (`tables.py`). Spans that are close together in the picture of the whole
run become one (`glance.py`). Long texts are cut. The partitions share the rest of the room. A
partition that needs less than an equal share leaves the rest to the others. One that needs more is
drawn with fewer moments: those around the first bad event, and those at the beginning
(`scenes.fewer_scenes`). The page says what it leaves out, with the command that shows it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape

from ottla.raft.types import Micros
from ottla.report.explain.glance import Glance
from ottla.report.explain.lanes import leaned
from ottla.report.explain.scenes import Moment, Scene, fewer_scenes
from ottla.report.explain.steps import Drawn, steps_section
from ottla.report.explain.story import Story
from ottla.report.explain.tables import PRODUCERS
from ottla.report.explain.words import group_name
from ottla.report.page.document import section
from ottla.sim.recording.record import Recording

MOST_BYTES = 1_000_000
"""A page has fewer bytes than this."""
MOST_PARTITIONS = 40
"""Most partitions that are drawn on a shortened page."""
LONGEST = 400
"""Most letters of one text on a shortened page."""
_GLANCE = 100_000
"""Most bytes of the picture of the whole run."""
_ITEMS = (12, 48, 960)
"""Items on a shortened page: of each story at least and at most, and of all stories together."""
_LINES = 20
"""Most lines about what weakened the run."""
_IN_BRIEF = (
    "Where scenes did not fit, &#8942; marks the place, and the section says how many moments are "
    "missing. A table shows what is equal on several nodes only once. Of more than "
    f"{PRODUCERS} producers, it shows those that the scene is about. Stories may have fewer items. "
    "Long texts end in &hellip;. In the picture of the whole run, things that are close together "
    "may be drawn as one."
)
_TRIES = 8
"""How often a partition is drawn, at most, to find how many moments fit."""


def size(text: str) -> int:
    """The number of bytes of a text in a file."""
    return len(text.encode())


def short(text: str, most: int = LONGEST) -> str:
    """A text, cut if it is too long."""
    return text if len(text) <= most else f"{text[: most - 1]}\u2026"


def in_brief(recording: Recording) -> Recording:
    """The same recording with its texts cut."""
    weakened = [short(each) for each in recording.weakened[:_LINES]]
    if len(recording.weakened) > _LINES:
        weakened.append(f"and {len(recording.weakened) - _LINES} more")
    return replace(
        recording,
        reason=short(recording.reason, 4 * LONGEST),
        anomalies=[
            each._replace(text=short(each.text, 4 * LONGEST)) for each in recording.anomalies[:1]
        ],
        weakened=weakened,
    )


def story_items(partitions: int) -> int:
    """Most items of each story."""
    least, most, together = _ITEMS
    return min(most, max(least, together // max(partitions, 1)))


def shorter_story(story: Story) -> Story:
    """The same story with its texts cut."""
    return replace(story, items=[each._replace(text=short(each.text)) for each in story.items])


def shorter_moments(moments: Iterable[Moment]) -> list[Moment]:
    """The same moments with their texts cut."""
    return [replace(each, text=short(each.text)) for each in moments]


def glance_in(
    recording: Recording, partitions: Sequence[int], scenes: Sequence[Scene], bad: Micros | None
) -> str:
    """The picture of the whole run, coarse enough to fit."""
    coarse = 0.0
    while True:
        picture = Glance(recording, partitions, coarse).draw(scenes, bad)
        if size(picture) <= _GLANCE or coarse > 1_000:
            return picture
        coarse = max(1.0, 2 * coarse)


# ---- partitions


class Room:
    """Shares the free room of a page among its partitions."""

    def __init__(self, recording: Recording, drawn: Sequence[Drawn]):
        self._recording = recording
        self._drawn = drawn
        # Prepared once, because sections are made many times.
        self._lean = leaned(recording, [each.story.partition for each in drawn])
        self._wanted = {each.story.partition: each.count for each in drawn}
        self._whole = {each.story.partition: self._section(each) for each in drawn}
        self._scenes = {each.story.partition: each.scenes for each in drawn}

    def share(self, room: int) -> dict[int, str]:
        """The section of each partition, by its number, with at most `room` bytes together. Sets
        the scenes of each `Drawn` to those that fit."""
        told: dict[int, str] = {}
        waiting = sorted(self._drawn, key=lambda each: size(self._whole[each.story.partition]))
        for number, each in enumerate(waiting):
            partition = each.story.partition
            part = room // (len(waiting) - number)
            each.scenes, text = self._scenes[partition], self._whole[partition]
            if size(text) > part:
                text = self._fitting(each, size(text), part)
            told[partition] = text
            room -= size(text)
        return told

    def _section(self, drawn: Drawn) -> str:
        partition, note = drawn.story.partition, ""
        wanted = self._wanted[partition]
        if drawn.count < wanted:
            note = (
                f'<p class="fold">{wanted - drawn.count} of {wanted} moments that would be drawn '
                "here are left out to keep the page under 1 MB; &#8942; marks where."
                f"{shown_by(self._recording, partition)}</p>"
            )
        return steps_section(self._lean[partition], drawn, brief=True, note=note)

    def _fitting(self, drawn: Drawn, much: int, room: int) -> str:
        """The section with about as many moments as fit; with none if even one is too large."""
        high, low = drawn.count, 1
        best, text = self._with(drawn, low)
        if size(text) > room:
            return self._with(drawn, 0)[1]
        for number in range(_TRIES):
            if high - low < 2:
                break
            # The size is nearly proportional to the moments. If it is not, halving ends the search.
            likely = high * room // much if number < _TRIES // 2 else (low + high) // 2
            guess = min(max(likely, low + 1), high - 1)
            scenes, found = self._with(drawn, guess)
            if size(found) <= room:
                low, best, text = guess, scenes, found
            else:
                high, much = guess, size(found)
        drawn.scenes = best
        return text

    def _with(self, drawn: Drawn, most: int) -> tuple[list[Scene], str]:
        drawn.scenes = fewer_scenes(self._recording, drawn.moments, most)
        return drawn.scenes, self._section(drawn)


# ---- what is left out


def left_out_section(recording: Recording, undrawn: Sequence[int]) -> str:
    """The section about what this page leaves out, with the commands that show it."""
    lines = []
    if undrawn:
        named = f"{group_name(undrawn[0])} to {undrawn[-1]}" if len(undrawn) > 1 else ""
        said = escape(named or group_name(undrawn[0]))
        lines.append(f"Nothing is drawn of {said}.{shown_by(recording, undrawn[0])}")
    lines.append(_IN_BRIEF)
    events = events_shown_by(recording)
    if events:
        lines.append(f"{events} every event of the run.")
    body = "".join(f"<li>{each}</li>" for each in lines)
    lead = "<p>There is more to this run than a page of 1 MB can hold.</p>"
    return section("What this page leaves out", f"{lead}<ul>{body}</ul>", "left-out")


def shown_by(recording: Recording, partition: int) -> str:
    """A sentence with the command that draws this partition alone; empty if this page does so."""
    words = shlex.split(recording.command)
    if words[:2] != ["ottla", "sim"] or "--partition" in words:
        return ""
    words[2:3] = ["explain"]
    told = escape(shlex.join([*words, "--partition", str(partition)]))
    return f" <code>{told}</code> draws {group_name(partition)} alone."


def events_shown_by(recording: Recording) -> str:
    """The commands that print all events; empty if there is none."""
    words = shlex.split(recording.command)
    if words[:2] != ["ottla", "sim"] or {"--whole", "--failure", "--act"} & set(words):
        return ""
    what, more = words[3], words[4:]
    if "--partition" in more:
        place = more.index("--partition")
        del more[place : place + 2]
    if recording.title.startswith("Tape "):
        return f"<code>{escape(shlex.join(['ottla', 'sim', 'show', what]))}</code> prints"
    keep = shlex.join(["ottla", "sim", "run", "--seed", what, *more, "--tape", "run.tape"])
    return f"<code>{escape(keep)}</code> and <code>ottla sim show run.tape</code> print"
