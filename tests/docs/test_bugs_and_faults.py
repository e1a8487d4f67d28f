"""Two pages that people wrote, held to the code: published bugs, and where each fault is.

A command of the page about bugs must find what the page says it finds, and its pictures are what
`ottla.report.explain` draws; with OTTLA_REWRITE=1 they are drawn anew, and so is what a seed says.
Where a seed shows its bug no longer, the page is given the first one that does. The page about
faults must name every program of the nemesis, and none that there is not.
"""

import os
import re
import shlex
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from ottla.commands.sim.asking import config_of
from ottla.sim.nemesis.beyond import BEYOND
from ottla.sim.nemesis.programs import PROGRAMS
from ottla.sim.recording.scenario import record_scenario, scenario_named
from ottla.sim.run import run
from pages_pictures import picture

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROW = re.compile(r"^\| ([^|]+) \| (`ottla[^|]+) \| (`ottla[^|]+) \|$", re.MULTILINE)
PAGE = DOCS / "explanation" / "published-bugs.md"
BUGS = PAGE.read_text(encoding="utf-8")
ROWS = ROW.findall(BUGS)
PICTURES = re.findall(r"^!\[(.+)\]\((pictures/.+\.svg)\)$", BUGS, re.MULTILINE)
BY_CHANCE = re.compile(
    r"^\$ ottla sim run --seed (\d+) (--set .+)\n(.+)\n\$ ottla sim explain (\d+) (--set .+)$",
    re.MULTILINE,
)
SEEDS = BY_CHANCE.findall(BUGS)
SHOWN = ("sim-I52", "sim-I02", "sim-I34", "sim-I20", "weakened: offset", "sim-I24")
"""What each of them must be noticed by, in the order of the page."""
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
    assert len(ROWS) == len(PICTURES) == len(SEEDS) == 6


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


@pytest.mark.parametrize(("told", "shown"), list(zip(SEEDS, SHOWN, strict=True)), ids=SHOWN)
def test_its_seed_shows_it_by_chance(told, shown):
    seed, settings, line, same_seed, same_settings = told
    assert (seed, settings) == (same_seed, same_settings)
    words = shlex.split(settings)
    assert set(words[::2]) == {"--set"}
    config = config_of(None, words[1::2])
    said = told_by(int(seed), config)
    if REWRITE and not shows(said, shown):
        tried = ((str(each), told_by(each, config)) for each in range(1_000))
        rewrite_seed(told, *next(each for each in tried if shows(each[1], shown)))
    elif REWRITE:
        rewrite_seed(told, seed, said)
    else:
        assert shows(said, shown)
        assert said == line


def told_by(seed, config):
    """The line of `ottla sim run`."""
    outcome = run(seed, config)
    return f"{outcome.verdict.value}: {outcome.reason}"


def shows(said, shown):
    """Whether that line shows that bug."""
    return shown in said.partition(" at event")[0]


def rewrite_seed(told, seed, said):
    """The page with that seed in place of the one that it told."""
    before, settings, line, *_ = told
    page = PAGE.read_text(encoding="utf-8").replace(line, said)
    for verb in ("run --seed", "explain"):
        page = page.replace(f"sim {verb} {before} {settings}", f"sim {verb} {seed} {settings}")
    PAGE.write_text(page, encoding="utf-8")


def test_every_program_has_its_place_among_the_faults():
    page = (DOCS / "reference" / "faults.md").read_text(encoding="utf-8")
    named = set(re.findall("`([a-z0-9-]+)`", page))
    assert {each.name for each in (*PROGRAMS, *BEYOND)} <= named
