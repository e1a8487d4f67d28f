"""Pictures of the worst runs. Each run is done again and recorded; its digest must be the same.

The report has the whole run on one line of time, and its decisive part, message by message. The
full page, as `ottla sim explain` writes it, is in a folder beside the report.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from ottla.raft.types import Micros
from ottla.report.explain.diagram import Diagram
from ottla.report.explain.glance import Glance
from ottla.report.explain.lanes import Lanes
from ottla.report.explain.report import page as explain_page
from ottla.report.explain.scenes import Moment, Scene, moments_of, wires_of
from ottla.report.explain.story import partition_of, tell
from ottla.report.study.page import Picture
from ottla.sim.chance.choices import Choices, Drawn
from ottla.sim.recording.record import NotTheSameError, Recording, record
from ottla.sim.run import Outcome, run
from ottla.sim.studies.findings import Worst
from ottla.sim.studies.study import Study, StudyError, Variant
from ottla.sim.studies.worst import command
from ottla.sim.whole import run_whole
from ottla.sim.world.world import World

FOLDER = "worst"
MOMENTS = 36
"""How many moments of a run the report draws."""
CONTROLLER = -1
"""The number of the controller's log, which is not a partition."""
_BEFORE = 0.4
"""The share of these moments that comes before the decisive one."""


def picture_of(study: Study, worst: Worst, beside: Path) -> Picture:
    """Draw a run, and write its page into a folder beside the report. Raises `NotTheSameError` if
    the run has changed, and `StudyError` if it has no such partition."""
    variant = study.variants[worst.run_id % len(study.variants)]
    recording = recorded(study, variant, worst.seed)
    if recording.digest != worst.digest:
        raise NotTheSameError(
            f"run {worst.run_id}: digest {recording.digest} now, {worst.digest} in the study"
        )
    if not CONTROLLER <= worst.partition < recording.config.partitions:
        raise StudyError(
            f"worst.sql: partition of run {worst.run_id} is {worst.partition}, of "
            f"{recording.config.partitions}"
        )
    name = f"{FOLDER}/run{worst.run_id}.html"
    path = beside / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(explain_page(recording), encoding="utf-8")
    glance, diagram = _drawn(recording, worst, swarm=study.swarm)
    return Picture(glance, diagram, name)


def recorded(study: Study, variant: Variant, seed: int) -> Recording:
    """The recording of a run that is done again."""
    title = f"Seed {seed}"
    told = command(variant, seed, swarm=study.swarm, verb="explain")
    if study.swarm:
        return record(run(seed, variant.config), title, told)

    def again(choices: Choices, watching: Sequence[Callable[[World], None]]) -> Outcome:
        return run_whole(choices, variant.config, variant.failure, watching)[0]

    return record(again(Drawn(seed), ()), title, told, again)


def _drawn(recording: Recording, worst: Worst, *, swarm: bool) -> tuple[str, str]:
    """The run at a glance, and its decisive part."""
    # A whole run goes on after its anomalies. What the study asks about is at `worst.at`.
    shown = recording.anomalies if swarm or worst.at is None else []
    anomaly = shown[0] if shown else None
    partition = worst.partition if anomaly is None else partition_of(recording, anomaly)
    story = tell(recording, partition, anomaly)
    scene = _decisive(moments_of(recording, story), worst.at if anomaly is None else None)
    bad = None if anomaly is None else recording.rows[anomaly.eid].t_us
    glance = Glance(recording).draw([scene], bad)
    if not scene.moments:
        return glance, ""
    clients = sorted(
        {each.place[1] for each in scene.moments if each.place and each.place[0] == "client"}
    )
    pencil = Diagram(Lanes(recording, partition), clients, recording.names)
    strips = "".join(pencil.strips(scene))
    head = f'<div class="head">{pencil.head()}</div>'
    drawn = f'<div class="scene" style="--wide:{pencil.width:g}px">{head}{strips}</div>'
    return glance, re.sub(r' (id="p-?\d+s\d+"|data-s="\d+"|tabindex="-1")', "", drawn)


def _decisive(moments: Sequence[Moment], at: Micros | None) -> Scene:
    """The moments around `at`. Without `at`, those around the first bad one, or the last ones."""
    place = len(moments) - 1
    if at is not None:
        place = next((n for n, each in enumerate(moments) if each.at >= at), place)
    else:
        place = next((n for n, each in enumerate(moments) if each.bad), place)
    start = max(0, min(place - round(MOMENTS * _BEFORE), len(moments) - MOMENTS))
    scene = Scene(list(moments[start : start + MOMENTS]))
    scene.wires = list(wires_of(scene.moments))
    return scene
