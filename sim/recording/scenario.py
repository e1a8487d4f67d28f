"""A scenario, recorded: one act of a transcript, with or without one safety mechanism.

The commands of the script become steps of their own, so that a page shows them beside their
results.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from ottla.sim.plugins.own import switched_off
from ottla.sim.recording.record import Recording
from ottla.sim.recording.recorder import Recorder
from ottla.sim.run import undisturbed
from ottla.sim.scenarios.files import files
from ottla.sim.scenarios.lines import acts_of, run_line
from ottla.sim.scenarios.own import SUFFIX, said_of
from ottla.sim.scenarios.script import Script
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.world import BrokerBug, World

_UNSAID = {"judge", "mutant", "nodes", "producers", "run", "show", "tables", "until", "watch"}
"""Commands that do nothing to the world but let time pass, or that set it up."""


class NoSuchActError(Exception):
    """The scenario has fewer acts."""


class _Recorded(Script):
    """A script with a recorder."""

    def __init__(self, mutant: str, plugins: str):
        super().__init__(mutant, plugins)
        self.recorder = Recorder()

    def make_world(self, config: RunConfig) -> World:
        """As `Script.make_world`."""
        world = super().make_world(config)
        self.recorder.watch(world)
        return world

    def run(self, words: list[str]) -> None:
        """As `Script.run`."""
        if words[0] not in _UNSAID:
            self.recorder.command(f"> {' '.join(words)}")
        super().run(words)


def scenario_named(name: str) -> Path | None:
    """The file of a scenario: `s07`, `s7`, `sim-S07` as on pages, or `s07_a_c_b`; or any file by
    its path, which ends with `.txt`."""
    if name.endswith(SUFFIX) and Path(name).is_file():
        return Path(name)
    asked = re.sub(r"\As(\d)\Z", r"s0\1", name.lower().removeprefix("sim-"))
    return next((each for each in files() if asked in {each.stem, each.stem.split("_")[0]}), None)


def record_scenario(
    path: Path, act: int, mutant: str, command: str, *, plugins: str = ""
) -> Recording:
    """Play an act, counted from 1, watched. `mutant`: the mechanism that is switched off, if any;
    `plugins`: the setting of that name.

    Raises `NoSuchActError`, and for the user's own files `ScenarioError` and `OSError`.
    """
    text = path.read_text(encoding="utf-8")
    told, acts = said_of(path, text), acts_of(text)
    if not 0 < act <= len(acts):
        raise NoSuchActError(f"{path.stem} has {len(acts)} acts")
    script = _Recorded(mutant, plugins)
    with undisturbed(), switched_off(mutant, plugins):
        try:
            for line in acts[act - 1]:
                run_line(partial(script.run, line.words), line)
        except BrokerBug as bug:
            script.ended_by(bug)
    rows = script.world.history.rows
    anomalies = sorted(script.found, key=lambda each: each.eid)
    script.recorder.finish(rows, next(iter(anomalies), None))
    without = f" without {mutant}'s mechanism" if mutant else ""
    return Recording(
        f"{told.id}, act {act}{without}",
        command,
        script.world.config,
        "",
        anomalies,
        script.excused,
        told.sentence,
        rows,
        script.recorder.steps,
        script.recorder.placement,
        {person.number: name for name, person in script.script_clients.items()},
    )
