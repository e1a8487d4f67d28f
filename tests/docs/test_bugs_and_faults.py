"""Two pages that people wrote, held to the code: published bugs, and where each fault is.

A command of the page about bugs must find what the page says it finds, and its pictures are what
`ottla.explain` draws; with OTTLA_REWRITE=1 they are drawn anew. The page about faults must name
every program of the nemesis, and none that there is not.
"""

import os
import re
import shlex
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from ottla.explain.picture import picture
from ottla.sim.nemesis.beyond import BEYOND
from ottla.sim.nemesis.programs import PROGRAMS
from ottla.sim.recording.scenario import record_scenario, scenario_named

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROW = re.compile(r"^\| ([^|]+) \| (`ottla[^|]+) \| (`ottla[^|]+) \|$", re.MULTILINE)
BUGS = (DOCS / "explanation" / "published-bugs.md").read_text(encoding="utf-8")
ROWS = ROW.findall(BUGS)
PICTURES = re.findall(r"^!\[(.+)\]\((pictures/.+\.svg)\)$", BUGS, re.MULTILINE)
REWRITE = bool(os.environ.get("OTTLA_REWRITE"))
SMALL = 100_000
STYLE = re.compile("<style>.*</style>", re.DOTALL)
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
    assert len(ROWS) == len(PICTURES) == 6


@pytest.mark.parametrize("command", commands(1))
def test_the_bug_shows(command):
    recording = recorded(command)
    assert recording.anomalies or any(LOST.match(each) for each in recording.weakened)


@pytest.mark.parametrize("command", commands(2))
def test_the_bug_does_not_show(command):
    recording = recorded(command)
    assert not recording.anomalies
    assert not any(LOST.match(each) for each in recording.weakened)


@pytest.mark.parametrize(
    ("row", "alt", "name"),
    [(row, *told) for row, told in zip(ROWS, PICTURES, strict=True)],
    ids=[name for _, name in PICTURES],
)
def test_its_picture_is_what_the_first_command_draws(row, alt, name):
    """Colours may change without it."""
    path = DOCS / "explanation" / name
    drawn = picture(recorded(re.findall("`([^`]+)`", row[1])[0]), alt)
    if REWRITE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(drawn, encoding="utf-8")
    kept = path.read_text(encoding="utf-8")
    assert STYLE.sub("", kept) == STYLE.sub("", drawn)
    assert ET.fromstring(kept)[0].text == alt
    assert len(kept.encode()) < SMALL


def test_every_program_has_its_place_among_the_faults():
    page = (DOCS / "reference" / "faults.md").read_text(encoding="utf-8")
    named = set(re.findall("`([a-z0-9-]+)`", page))
    assert {each.name for each in (*PROGRAMS, *BEYOND)} <= named
