"""docs/reference/rules.md is the table of rules, neither more nor less.

OTTLA_REWRITE=1 writes the page anew.
"""

import os
from pathlib import Path

from ottla.broker.profiles.named import PROFILES
from ottla.idempotency.rules import FACTS
from pages_rules import rules_markdown

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "rules.md"


def test_the_page_is_the_table():
    written = rules_markdown(PROFILES)
    if os.environ.get("OTTLA_REWRITE"):
        PAGE.write_text(written, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == written


def test_every_row_and_fact_is_on_the_page():
    lines = rules_markdown(PROFILES).splitlines()
    for row in {row.label: row for profile in PROFILES for row in profile.rulebook.rules}.values():
        told = {
            (line.split("|")[1].strip(" `"), line.split("|")[-2].strip())
            for line in lines
            if line.startswith(f"| `{row.label}` |")
        }
        assert told == {(row.label, row.source)}
    for profile in PROFILES:
        assert lines.count(f"## Profile `{profile.name}`") == 1
    for text in FACTS.values():
        assert sum(line.endswith(f"| {text} |") for line in lines) == 1
    assert all(line.count("|") == 7 for line in lines if line.startswith("| `"))
