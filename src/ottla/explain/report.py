"""The page about a run: one HTML file that needs nothing else.

    head        what was run, how to do it again, what came of it
    verdict     what was promised, what was found
    the story   the decisive events, in words
    at a glance the whole run on one line of time
    by step     the space-time diagram, scene by scene, with what stood on every replica

Everything can be read without the script and on paper; the script adds the replicas at *any*
moment, a magnifier and filters. Style and frame are the house's (`ottla.page`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ottla.explain.diagram import Diagram, colour
from ottla.explain.glance import Glance
from ottla.explain.lanes import Lanes
from ottla.explain.scenes import Scene, scenes_of
from ottla.explain.story import NOWHERE, Story, partition_of, tell
from ottla.explain.tables import as_json, data, states
from ottla.explain.wires import FAMILIES
from ottla.explain.words import group_name
from ottla.page.document import document, header, section
from ottla.sim.invariants.findings import Anomaly
from ottla.sim.recording.record import Recording

STYLE = Path(__file__).with_name("explain.css")
SCRIPT = Path(__file__).with_name("explain.js")
MOST = 420
"""Moments that are drawn, of all partitions together."""


@dataclass(slots=True)
class _Drawn:
    """One partition, ready to be written."""

    story: Story
    scenes: list[Scene]

    def anchors(self) -> dict[int, str]:
        """Where each step is drawn, by its number."""
        return {
            step.number: f"s{moment.number}"
            for scene in self.scenes
            for moment in scene.moments
            for step in moment.steps
        }


def page(recording: Recording, extra: str = "") -> str:
    """The whole page. `extra`: HTML of a further section, in front of the diagram."""
    anomaly = recording.anomalies[0] if recording.anomalies else None
    if anomaly is None or anomaly.invariant in NOWHERE:
        known = sorted(
            recording.placement
        )  # a run that ended early may have the controller's alone
        partitions = [each for each in known if each >= 0] or known
    else:
        partitions = [partition_of(recording, anomaly)]
    drawn = []
    for partition in partitions:
        story = tell(recording, partition, anomaly)
        drawn.append(_Drawn(story, scenes_of(recording, story, MOST // len(partitions))))
    sections = [_header(recording, anomaly)]
    if anomaly is not None:
        sections.append(section("What went wrong", _verdict(anomaly, drawn[0]), "verdict"))
    elif recording.weakened:
        sections.append(section("What it took", _weakened(recording), "verdict"))
    sections.append(section("The run at a glance", _glance(recording, drawn, anomaly), "glance"))
    if extra:
        sections.append(extra)
    for each in drawn:
        sections.append(_story(recording, each, alone=len(drawn) == 1))
        sections.append(_steps(recording, each))
    sections.append(section("How to read this", _notes(), "notes"))
    sections.append('<aside id="panel" hidden aria-live="polite"></aside>')
    return document(f"{recording.title}: {_word(recording)}", sections, STYLE, script=SCRIPT)


def _header(recording: Recording, anomaly: Anomaly | None) -> str:
    badge = ("good", "passed")
    if anomaly is not None or recording.weakened:
        badge = ("bad", "weakened" if anomaly is None else anomaly.invariant)
    config = " &middot; ".join(escape(line) for line in recording.config.told().splitlines())
    digest = f"digest {recording.digest} &middot; " if recording.digest else ""
    span = recording.rows[-1].t_us / 1e6 if recording.rows else 0
    return header(
        recording.title,
        badge,
        recording.reason,
        f"<code>{escape(recording.command)}</code><br>{digest}{len(recording.rows):,} events in "
        f"{span:.3f} s of virtual time<br>{config or 'all settings at their defaults'}",
    )


def _word(recording: Recording) -> str:
    if recording.anomalies:
        return "failed"
    return "weakened" if recording.weakened else "passed"


def _weakened(recording: Recording) -> str:
    """What faults took that break what Raft assumes: explained, and nobody's failure."""
    lines = "".join(f"<dd>{escape(each)}</dd>" for each in recording.weakened)
    return f'<dl class="verdict"><dt>beyond what Raft stands</dt>{lines}</dl>'


def _verdict(anomaly: Anomaly, drawn: _Drawn) -> str:
    story = drawn.story
    anchor = drawn.anchors().get(-1 if story.bad is None else story.bad)
    where = "" if anchor is None else f' <a href="#{anchor}">Show it</a>.'
    return (
        '<dl class="verdict">'
        f"<dt>broken</dt><dd><strong>{anomaly.invariant}, {escape(story.name)}</strong></dd>"
        f"<dt>promised</dt><dd>{escape(story.promised)}</dd>"
        f"<dt>found</dt><dd>{escape(story.found)}, at event {anomaly.eid}.{where}</dd></dl>"
    )


def _glance(recording: Recording, drawn: list[_Drawn], anomaly: Anomaly | None) -> str:
    bad = None if anomaly is None else recording.rows[anomaly.eid].t_us
    scenes = [scene for each in drawn for scene in each.scenes]
    picture = Glance(recording).draw(scenes, bad)
    return f'<div class="scroll">{picture}</div><p class="legend">{"".join(glance_legend())}</p>'


def glance_legend() -> Iterator[str]:
    """What the colours of the picture of a whole run mean."""
    terms = "".join(f'<i class="key {colour(term)}"></i>' for term in (1, 2, 3, 4, 5, 6, 7))
    yield f"<span>{terms} colour of a term</span>"
    yield '<span><i class="key gap"></i>nobody leads</span>'
    yield '<span><i class="key down"></i>down</span><span><i class="key paused"></i>paused</span>'
    yield '<span><i class="key scene"></i>drawn step by step</span>'


def _story(recording: Recording, drawn: _Drawn, *, alone: bool) -> str:
    story = drawn.story
    title = "The story" if alone else f"{group_name(story.partition).capitalize()}: the story"
    if not story.items:
        return section(title, "<p>Nothing happened here but what was meant to.</p>")
    anchors = drawn.anchors()
    lines = []
    for item in story.items:
        at = recording.steps[item.step].at / 1e6
        more = f" <small>and {item.more} times more</small>" if item.more else ""
        said = f"<time>{at:.4f} s</time> <span>{escape(item.text)}{more}</span>"
        kind = ' class="bad"' if item.step == story.bad else ""
        if item.step in anchors:
            said = f'<a href="#{anchors[item.step]}">{said}</a>'
        if item.step == story.bad:
            said += f"<strong>{escape(story.name)}: {escape(story.found)}</strong>"
        lines.append(f"<li{kind}>{said}</li>")
    return section(title, f'<ol class="story">{"".join(lines)}</ol>')


def _steps(recording: Recording, drawn: _Drawn) -> str:
    partition = drawn.story.partition
    pencil = Diagram(Lanes(recording, partition), _clients(drawn.scenes), recording.names)
    watched = Lanes(recording, partition)
    parts = []
    for number, scene in enumerate(drawn.scenes, 1):
        if not scene.moments:
            continue
        if scene.before:
            parts.append(f'<p class="fold">&#8942; {escape(scene.before)}</p>')
        strips = "".join(f'<div class="cut-here">{each}</div>' for each in pencil.strips(scene))
        watched.until(scene.moments[-1].last)
        title = f"The replicas at {scene.moments[-1].at / 1e6:.4f} s, behind scene {number}"
        parts.append(
            f'<div class="scene" data-scene="{number - 1}"><div class="head">{pencil.head()}</div>'
            f"{strips}</div>{states(watched.known, title)}"
        )
    told = as_json(data(Lanes(recording, partition), drawn.scenes))
    width = f"{pencil.width:g}"
    body = (
        f'{_tools()}<div class="diagram" style="--wide:{width}px" data-partition="{partition}">'
        f"{''.join(parts)}</div>"
        f'<script type="application/json" class="data">{told}</script>'
    )
    return section(f"Step by step: {group_name(partition)}", body, f"steps{partition}")


def _clients(scenes: list[Scene]) -> list[int]:
    """Clients to whom anything happens in what is drawn."""
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


def _notes() -> str:
    wires = "".join(
        f'<span><i class="key w-{kind}"></i>{escape(name)}</span>'
        for kind, name in FAMILIES.items()
    )
    return (
        f'<p class="legend">{wires}</p>'
        "<p>Time runs downwards, one line per moment, so that what lies a microsecond apart can be "
        "told apart; true distances are in the picture of the whole run. A lane has the colour of "
        "the term its node is in: wide where it leads, hatched where it stands for election, "
        "narrow where it follows, dotted where it is paused, gone where it is down; a grey edge "
        "says that links from or to it are cut. A wire goes from who sent to who heard; one that "
        "ends in a cross never arrived. Beats, metadata and empty appends are left out.</p>"
        "<p>A batch is written <code>producer/epoch:first-last</code>, by its sequences. In a log, "
        "<code>+</code> marks what lies at or above the node's high watermark and may still be "
        "cut, <code>!</code> what another node has otherwise at the same place. With a script a "
        "line that is pointed at, or reached with the arrow keys, shows all replicas behind it."
        "</p><p>All of it was collected while the run was done again from its tape; its digest "
        "was compared.</p>"
    )
