"""The table of published bugs: each is shown by what the table names, and the page says the same.

A case must be answered differently by a profile that has the bug and by one that has not, and both
profiles must do so. A scenario must end as the table says; its transcript is played elsewhere
(`tests/sim/scenarios`), and so are the seeds (`tests/docs/test_bugs_and_faults.py`).
"""

import os
import re

import pytest

from compare_kit import played
from ottla.compare.judging import contradictions
from pages_bugs import NOTHING, bugs, bugs_page, told
from tidy.source import repository

DOCS = repository() / "docs"
PAGE = DOCS / "reference" / "known-bugs.md"
BUGS = bugs()
NAMED = {
    *("KAFKA-14034", "KAFKA-15591", "KAFKA-14312", "redpanda #3039", "redpanda #24852"),
    *("redpanda #5355", "redpanda #22670", "redpanda #22687", "librdkafka #4953"),
}
"""Those that must be there."""
CASES = {f"{bug.source}: {each.name}": each for bug in BUGS for each in bug.cases}
SCENARIOS = {f"{bug.source}: {each.number}": each for bug in BUGS for each in bug.scenarios}


def test_the_page_says_what_the_table_says():
    """With OTTLA_REWRITE=1 the page is written instead."""
    written = bugs_page()
    if os.environ.get("OTTLA_REWRITE"):
        PAGE.write_text(written, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == written


def test_the_named_ones_are_there_and_ten_more():
    sources = [each.source for each in BUGS]
    assert len(sources) == len(set(sources)) >= len(NAMED) + 10
    assert set(sources) >= NAMED


@pytest.mark.parametrize("bug", BUGS, ids=lambda each: each.source)
def test_each_has_a_source_and_is_shown(bug):
    keys = re.findall(r"^\| ([^|]+?) \|", (DOCS / "sources.md").read_text("utf-8"), re.MULTILINE)
    assert bug.source in keys
    assert bug.cases or bug.scenarios


@pytest.mark.parametrize("name", CASES)
def test_a_case_shows_it(name):
    shown = CASES[name]
    expected = [shown.expected(each) for each in (shown.has, shown.hasnt)]
    assert expected[0] != expected[1]
    assert told(expected[0]) != told(expected[1])
    for profile in (shown.has, shown.hasnt) if shown.modelled else (shown.hasnt,):
        found = contradictions(shown.case, played(shown.case, profile), profile)
        assert [each for each in found if each.step == shown.step] == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_shows_it(name):
    shown = SCENARIOS[name]
    if shown.ends == NOTHING:
        wanted = r"^  no invariant is broken$"
    else:
        command = f"mutant {shown.mutant}" if shown.mutant else "judge"
        wanted = rf"^> {command} -> .*\b{shown.ends}\b"
    assert re.search(wanted, shown.text, re.MULTILINE)


@pytest.mark.parametrize("bug", [each for each in BUGS if each.seed], ids=lambda each: each.source)
def test_a_seed_shows_it(bug):
    page = (DOCS / "explanation" / "published-bugs.md").read_text(encoding="utf-8")
    (text,) = re.findall(
        rf"^## {re.escape(bug.seed)}.*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL
    )
    assert re.search(r"^\$ ottla sim run --seed \d+", text, re.MULTILINE)
