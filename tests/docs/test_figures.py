"""Numbers in pages that a command prints, or that count what there is: they are compared.

`docs/explanation/simulation.md` said 17 where its command printed 18. Pages that are generated, the
tutorials and the page about published bugs have tests of their own. With OTTLA_REWRITE=1 the line
of the sweep is written anew.
"""

import os
import re
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from docs_programs import blocks, commands
from ottla.broker.profiles.named import PROFILES
from ottla.commands.sim.app import app
from ottla.sim.studies.study import catalogue, parse
from ottla.sim.sweeps.sweep_folder import CHUNK

ROOT = Path(__file__).resolve().parents[2]
WORDS = [
    *("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen"),
]
SIMULATION = "explanation/simulation.md"


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def counted(name, pattern):
    """The number, in figures or as a word, that a page has at this place, on however many lines."""
    (found,) = re.findall(pattern, " ".join(text(name).split()))
    return WORDS.index(found.lower()) if found.isalpha() else int(found.replace(",", ""))


def test_the_readme_counts_studies_and_the_runs_of_the_demos():
    assert counted("README.md", r"(\w+) ship, `ottla study list` names them") == len(catalogue())
    acks = parse(catalogue()["acks"])
    (asked,) = re.findall(r"study run acks --seeds (\d+)", text("Makefile"))
    assert counted("README.md", r"(\d+) simulated runs") == len(acks.variants) * int(asked)
    assert counted("README.md", r"with (\d+) seeds each") == int(asked)
    grid = tomllib.loads(catalogue()["acks"])["grid"]
    assert counted("README.md", r"\((\d+) failures under") == len(grid["failure"])


def test_the_shortest_study_is_as_long_and_has_as_many_runs_as_is_said():
    page = "docs/how-to/add-a-study.md"
    study = next(each.text for each in blocks("how-to/add-a-study.md") if each.language == "toml")
    assert counted("README.md", r"is a file of (\w+) lines") == len(study.splitlines())
    parsed = parse(study)
    runs = len(parsed.variants) * parsed.seeds
    assert counted(page, r"with every seed, (\d+) runs here") == runs


def test_pages_count_profiles_suspects_and_published_bugs():
    assert counted("docs/explanation/architecture.md", r"- (\w+) profiles: ") == len(PROFILES)
    suspects = len(re.findall(r"^\| S\d+ \|", text("docs/explanation/suspects.md"), re.MULTILINE))
    assert counted("docs/README.md", r"\[(\w+) suspects\]") == suspects
    bugs = len(re.findall("^## ", text("docs/explanation/published-bugs.md"), re.MULTILINE))
    assert counted("docs/README.md", r"\[(\w+) published bugs\]") == bugs


def test_a_sweep_tells_of_seeds_by_the_part():
    assert counted(f"docs/{SIMULATION}", r"in parts of at most (\d+) seeds") == CHUNK


@pytest.mark.slow(seconds=25)
def test_the_profile_that_promises_less_fails_as_often_as_is_said():
    (command,) = (
        each
        for block in blocks(SIMULATION)
        if block.language == "console"
        for each in commands(block)
        if each.line.startswith("ottla sim sweep")
    )
    done = CliRunner().invoke(app, command.line.split()[2:])
    last = done.stdout.splitlines()[-1]
    *_, told = command.prints
    if os.environ.get("OTTLA_REWRITE"):
        page = ROOT / "docs" / SIMULATION
        page.write_text(page.read_text(encoding="utf-8").replace(told, last), encoding="utf-8")
    else:
        assert last == told
