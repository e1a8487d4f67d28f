"""Scenarios from any file.

Those that come with Ottla open with an id and say what is legal (`files.py`). Others need no such
opening: their name is the file's name, and their description is their first comment.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from ottla.sim.scenarios.files import Opening, opening_of
from ottla.sim.scenarios.lines import acts_of
from ottla.sim.scenarios.script import Script
from ottla.sim.scenarios.telling import found
from ottla.sim.world.world import BrokerBug

SUFFIX = ".txt"


def said_of(path: Path, text: str) -> Opening:
    """The description of a scenario, or what is known without one."""
    try:
        return opening_of(text)
    except ValueError:
        comments = takewhile(lambda line: line.startswith("#"), text.splitlines())
        said = " ".join(line.removeprefix("#").strip() for line in comments)
        return Opening(path.stem, "", said, "", "", ())


def play(text: str, plugins: str = "") -> tuple[str, Sequence[str]]:
    """The scenario with what happens after each of its commands, and the findings that none of its
    lines expects. Invariants of `plugins` judge it, too, and its lines may name their mutants.
    Raises `ScenarioError`."""
    acts_of(text)
    script = Script(plugins=plugins)
    try:
        script.play(text)
    except BrokerBug as bug:
        script.ended_by(bug)
        script.unexpected.extend(map(found, script.found))
    return script.transcript, script.unexpected
