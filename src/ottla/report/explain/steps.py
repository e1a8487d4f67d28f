"""A partition step by step: its scenes as pictures, the replicas after each, data for the script.

A `Drawn` has what is drawn of one partition. Its `anchors` name the place of each step on the page,
so that the story can link to it. On a shortened page (`room.py`), tables and data are shorter, and
the section begins with what it leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from ottla.report.explain.diagram import Diagram, anchor
from ottla.report.explain.lanes import Lanes
from ottla.report.explain.scenes import Moment, Scene
from ottla.report.explain.story import Story
from ottla.report.explain.tables import as_json, data, producers_in, states
from ottla.report.explain.wires import FAMILIES
from ottla.report.explain.words import group_name
from ottla.report.page.document import section
from ottla.sim.recording.record import Recording

WIDEST = 1280
"""Width, in a wide window, of a diagram that need not scroll (`explain.css`)."""


@dataclass(slots=True)
class Drawn:
    """One partition, ready to be written."""

    story: Story
    moments: Sequence[Moment]
    """All moments that could be drawn."""
    scenes: list[Scene]

    @property
    def count(self) -> int:
        """How many moments are drawn."""
        return sum(len(scene.moments) for scene in self.scenes)

    def anchors(self) -> dict[int, str]:
        """The anchor of each step that is drawn, by its number."""
        return {
            step.number: anchor(self.story.partition, moment)
            for scene in self.scenes
            for moment in scene.moments
            for step in moment.steps
        }


def steps_section(
    recording: Recording, drawn: Drawn, *, brief: bool = False, note: str = ""
) -> str:
    """The section. `brief`: for a shortened page; `note` is HTML about what is left out."""
    partition = drawn.story.partition
    pencil = Diagram(Lanes(recording, partition), _clients(drawn.scenes), recording.names)
    watched = Lanes(recording, partition)
    parts = []
    for number, scene in enumerate(drawn.scenes, 1):
        if scene.before and (scene.moments or brief):
            parts.append(f'<p class="fold">&#8942; {escape(scene.before)}</p>')
        if not scene.moments:
            continue
        strips = "".join(f'<div class="cut-here">{each}</div>' for each in pencil.strips(scene))
        watched.until(scene.moments[-1].last)
        title = f"The replicas at {scene.moments[-1].at / 1e6:.4f} s, behind scene {number}"
        table = states(watched.known, title, producers_in(scene) if brief else None)
        parts.append(
            f'<div class="scene" data-scene="{number - 1}"><div class="head">{pencil.head()}</div>'
            f"{strips}</div>{table}"
        )
    told = as_json(data(Lanes(recording, partition), drawn.scenes, brief=brief))
    fits = " fits" if pencil.width <= WIDEST else ""
    body = (
        f'{note}{_tools()}<div class="diagram{fits}" style="--wide:{pencil.width:g}px" '
        f'data-partition="{partition}">{"".join(parts)}</div>'
        f'<script type="application/json" class="data">{told}</script>'
    )
    return section(f"Step by step: {group_name(partition)}", body, f"steps{partition}")


def _clients(scenes: Iterable[Scene]) -> list[int]:
    """Clients that take part in these scenes."""
    found = set()
    for scene in scenes:
        for moment in scene.moments:
            if moment.place is not None and moment.place[0] == "client":
                found.add(moment.place[1])
    return sorted(found)


def _tools() -> str:
    boxes = "".join(
        f'<label><input type="checkbox" checked data-wire="{kind}"> '
        f'<i class="key w-{kind}"></i>{name}</label>'
        for kind, name in FAMILIES.items()
    )
    return (
        f'<form class="tools" hidden>{boxes}'
        '<label>only lines with <input type="search" size="14" placeholder="0/0:6"></label>'
        '<label>size <input type="range" min="50" max="200" value="100"></label></form>'
    )
