"""Two pages that people wrote, held to the code: published bugs, and where each fault is.

A command of the page about bugs must find what the page says it finds; the page about faults must
name every program of the nemesis, and none that there is not.
"""

import re
import shlex
from pathlib import Path

import pytest

from ottla.sim.nemesis.beyond import BEYOND
from ottla.sim.nemesis.programs import PROGRAMS
from ottla.sim.recording.scenario import record_scenario, scenario_named

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROW = re.compile(r"^\| ([^|]+) \| (`ottla[^|]+) \| (`ottla[^|]+) \|$", re.MULTILINE)
ROWS = ROW.findall((DOCS / "explanation" / "published-bugs.md").read_text(encoding="utf-8"))
LOST = re.compile("offset .* is lost")


def recorded(command):
    """What the page's command draws."""
    words = shlex.split(command)
    assert words[:3] == ["ottla", "sim", "explain"]
    given = dict(zip(words[4::2], words[5::2], strict=True))
    assert set(given) <= {"--act", "--mutant"}
    path = scenario_named(words[3])
    assert path is not None
    return record_scenario(path, int(given.get("--act", 1)), given.get("--mutant", ""), command)


def commands(column):
    """Every command of a column."""
    return [each for row in ROWS for each in re.findall("`([^`]+)`", row[column])]


def test_there_are_six():
    assert len(ROWS) == 6


@pytest.mark.parametrize("command", commands(1))
def test_the_bug_shows(command):
    recording = recorded(command)
    assert recording.anomalies or any(LOST.match(each) for each in recording.weakened)


@pytest.mark.parametrize("command", commands(2))
def test_the_bug_does_not_show(command):
    recording = recorded(command)
    assert not recording.anomalies
    assert not any(LOST.match(each) for each in recording.weakened)


def test_every_program_has_its_place_among_the_faults():
    page = (DOCS / "reference" / "faults.md").read_text(encoding="utf-8")
    named = set(re.findall("`([a-z0-9-]+)`", page))
    assert {each.name for each in (*PROGRAMS, *BEYOND)} <= named
