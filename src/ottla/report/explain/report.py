"""The page about a run: one HTML file that needs nothing else.

    head        what was run, the command that runs it again, the verdict
    verdict     what was promised, what was found
    the story   the decisive events, in words
    at a glance the whole run on one line of time
    by step     the space-time diagram, scene by scene, with the state of every replica

Everything can be read without the script, and on paper. The script adds the replicas at *any*
moment, a magnifier and filters. Style and frame are those of all of Ottla's pages
(`ottla.report.page`). A page that is too large is made again, shortened (`room.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from ottla.raft.types import Micros
from ottla.report.explain.diagram import colour
from ottla.report.explain.glance import Glance
from ottla.report.explain.lanes import leaned
from ottla.report.explain.room import (
    LONGEST,
    MOST_BYTES,
    MOST_PARTITIONS,
    Room,
    glance_in,
    in_brief,
    left_out_section,
    short,
    shorter_moments,
    shorter_story,
    size,
    story_items,
)
from ottla.report.explain.scenes import fewer_scenes, moments_of, scenes_of
from ottla.report.explain.steps import Drawn, steps_section
from ottla.report.explain.story import home_of, partition_of, tell
from ottla.report.explain.wires import FAMILIES
from ottla.report.explain.words import group_name
from ottla.report.page.document import document, header, section
from ottla.sim.invariants.findings import Anomaly
from ottla.sim.recording.record import Recording

STYLE = Path(__file__).with_name("explain.css")
SCRIPT = Path(__file__).with_name("explain.js")
MOST = 420
"""Most moments that are drawn, of all partitions together."""


_TOO_MANY = 100
"""With more partitions than this, the page is shortened from the start."""


def page(recording: Recording, extra: str = "", partition: int | None = None) -> str:
    """The whole page, smaller than `room.MOST_BYTES`. `extra`: HTML of a further section, before
    the diagram. `partition`: draw only this one."""
    partitions = _partitions(recording) if partition is None else [partition]
    if len(partitions) <= _TOO_MANY:
        text = _page(recording, partitions, extra)
        if size(text) < MOST_BYTES:
            return text
    return _page_in_brief(in_brief(recording), partitions, extra)


def _partitions(recording: Recording) -> list[int]:
    """The partitions that are drawn."""
    anomaly = _anomaly(recording)
    home = None if anomaly is None else home_of(recording, anomaly)
    if home is not None:
        return [home]
    known = sorted(recording.placement)  # a run that ended early may have only the controller
    return [each for each in known if each >= 0] or known


def _page(recording: Recording, partitions: Sequence[int], extra: str) -> str:
    drawn = []
    for partition in partitions:
        story = tell(recording, partition, _anomaly_in(recording, partition))
        moments = moments_of(recording, story)
        drawn.append(Drawn(story, (), scenes_of(recording, moments, MOST // len(partitions))))
    scenes = [scene for each in drawn for scene in each.scenes]
    picture = Glance(recording).draw(scenes, _bad_at(recording))
    lean = leaned(recording, partitions)
    steps = {at: steps_section(lean[at], each) for at, each in zip(partitions, drawn, strict=True)}
    return _written(recording, drawn, steps, (picture, extra))


def _page_in_brief(recording: Recording, partitions: Sequence[int], extra: str) -> str:
    shown, undrawn = partitions[:MOST_PARTITIONS], partitions[MOST_PARTITIONS:]
    drawn = []
    for partition in shown:
        anomaly = _anomaly_in(recording, partition)
        story = tell(recording, partition, anomaly, story_items(len(shown)))
        moments = shorter_moments(moments_of(recording, story))
        scenes = fewer_scenes(recording, moments, MOST // len(shown))
        drawn.append(Drawn(shorter_story(story), moments, scenes))
    lanes = sorted({*sorted(recording.placement)[: MOST_PARTITIONS + 1], *shown})
    left_out = left_out_section(recording, undrawn)

    def written(steps: Mapping[int, str]) -> str:
        scenes = [scene for each in drawn for scene in each.scenes]
        picture = glance_in(recording, lanes, scenes, _bad_at(recording))
        return _written(recording, drawn, steps, (picture, extra), left_out)

    shares = Room(recording, drawn)
    room = MOST_BYTES - size(written(dict.fromkeys(shown, "")))
    while True:
        text = written(shares.share(room))
        over = size(text) - MOST_BYTES + 1
        if over <= 0 or room < 0:
            return text
        room -= over


def _written(
    recording: Recording,
    drawn: Sequence[Drawn],
    steps: Mapping[int, str],
    pictured: tuple[str, str],
    left_out: str = "",
) -> str:
    """The HTML of the file. `pictured`: the run at a glance, and HTML that comes after it."""
    sections = [_header(recording, _anomaly(recording)), *_verdicts(recording, drawn)]
    if left_out:
        sections.append(left_out)
    picture, extra = pictured
    sections.append(section("The run at a glance", _glance(picture), "glance"))
    if extra:
        sections.append(extra)
    for each in drawn:
        sections.append(_story(recording, each, alone=len(drawn) == 1))
        sections.append(steps[each.story.partition])
    sections.append(section("How to read this", _notes(), "notes"))
    sections.append('<aside id="panel" hidden aria-live="polite"></aside>')
    return document(f"{recording.title}: {_word(recording)}", sections, STYLE, script=SCRIPT)


def _anomaly(recording: Recording) -> Anomaly | None:
    return recording.anomalies[0] if recording.anomalies else None


def _anomaly_in(recording: Recording, partition: int) -> Anomaly | None:
    """The anomaly in this partition, or one that belongs to no partition."""
    anomaly = _anomaly(recording)
    home = None if anomaly is None else home_of(recording, anomaly)
    return anomaly if home in {None, partition} else None


def _bad_at(recording: Recording) -> Micros | None:
    anomaly = _anomaly(recording)
    return None if anomaly is None else recording.rows[anomaly.eid].t_us


def _header(recording: Recording, anomaly: Anomaly | None) -> str:
    badge = ("good", "passed")
    if anomaly is not None or recording.weakened:
        badge = ("bad", "weakened" if anomaly is None else anomaly.invariant)
    lines = recording.config.told().splitlines()
    config = " &middot; ".join(escape(short(line, 4 * LONGEST)) for line in lines)
    digest = f"digest {recording.digest} &middot; " if recording.digest else ""
    span = recording.rows[-1].t_us / 1e6 if recording.rows else 0
    command = escape(short(recording.command, 16 * LONGEST))
    return header(
        recording.title,
        badge,
        recording.reason,
        f"<code>{command}</code><br>{digest}{len(recording.rows):,} events in "
        f"{span:.3f} s of virtual time<br>{config or 'all settings at their defaults'}",
    )


def _word(recording: Recording) -> str:
    if recording.anomalies:
        return "failed"
    return "weakened" if recording.weakened else "passed"


def _weakened(recording: Recording) -> str:
    """Records that were lost or stored twice, where that is no failure: a fault broke an assumption
    of Raft, or the promise did not include them."""
    lines = "".join(f"<dd>{escape(each)}</dd>" for each in recording.weakened)
    return f'<dl class="verdict"><dt>explained, and no failure</dt>{lines}</dl>'


def _verdicts(recording: Recording, drawn: Sequence[Drawn]) -> Iterator[str]:
    """Sections about what went wrong, or about what weakened the run."""
    anomaly = _anomaly(recording)
    if anomaly is not None:
        shown = drawn[0]
        if _anomaly_in(recording, shown.story.partition) is None:  # another one was asked for
            story = tell(recording, partition_of(recording, anomaly), anomaly)
            shown = Drawn(story, (), [])
        yield section("What went wrong", _verdict(anomaly, shown), "verdict")
    elif recording.weakened:
        yield section("What weakened it", _weakened(recording), "verdict")


def _verdict(anomaly: Anomaly, drawn: Drawn) -> str:
    story = drawn.story
    anchor = drawn.anchors().get(-1 if story.bad is None else story.bad)
    where = "" if anchor is None else f' <a href="#{anchor}">Show it</a>.'
    return (
        '<dl class="verdict">'
        f"<dt>broken</dt><dd><strong>{anomaly.invariant}, {escape(story.name)}</strong></dd>"
        f"<dt>promised</dt><dd>{escape(story.promised)}</dd>"
        f"<dt>found</dt><dd>{escape(story.found)}, at event {anomaly.eid}.{where}</dd></dl>"
    )


def _glance(picture: str) -> str:
    return f'<div class="scroll">{picture}</div><p class="legend">{"".join(glance_legend())}</p>'


def glance_legend() -> Iterator[str]:
    """The legend of the picture of a whole run: what its colours mean."""
    terms = "".join(f'<i class="key {colour(term)}"></i>' for term in (1, 2, 3, 4, 5, 6, 7))
    yield f"<span>{terms} colour of a term</span>"
    yield '<span><i class="key gap"></i>nobody leads</span>'
    yield '<span><i class="key down"></i>down</span><span><i class="key paused"></i>paused</span>'
    yield '<span><i class="key scene"></i>drawn step by step</span>'


def _story(recording: Recording, drawn: Drawn, *, alone: bool) -> str:
    story = drawn.story
    title = "The story" if alone else f"{group_name(story.partition).capitalize()}: the story"
    if not story.items:
        return section(title, "<p>Nothing unexpected happened here.</p>")
    anchors = drawn.anchors()
    lines = []
    for item in story.items:
        at = recording.steps[item.step].at / 1e6
        more = f" <small>and {item.more} times more</small>" if item.more else ""
        said = f"<time>{at:.4f} s</time> <span>{escape(item.text)}{more}</span>"
        kind = ' class="bad"' if item.step == story.bad else ""
        link = f' href="#{anchors[item.step]}"' if item.step in anchors else ""
        said = f"<a{link}>{said}</a>"
        if item.step == story.bad:
            said += f"<strong>{escape(story.name)}: {escape(story.found)}</strong>"
        lines.append(f"<li{kind}>{said}</li>")
    return section(title, f'<ol class="story">{"".join(lines)}</ol>')


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
