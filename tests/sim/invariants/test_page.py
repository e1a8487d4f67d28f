"""docs/reference/invariants.md is the table of invariants, neither more nor less.

OTTLA_REWRITE=1 writes the page anew.
"""

import os
from pathlib import Path

from ottla.sim.invariants.registry import INVARIANTS
from pages_invariants import invariants_markdown

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "invariants.md"


def test_the_page_is_the_table():
    written = invariants_markdown()
    if os.environ.get("OTTLA_REWRITE"):
        PAGE.write_text(written, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == written


def test_every_invariant_is_on_the_page_once():
    lines = invariants_markdown().splitlines()
    for row in INVARIANTS:
        (line,) = (each for each in lines if each.startswith(f"| {row.id} |"))
        assert line.split("|")[2:5] == [f" {row.name} ", f" {row.says} ", f" {row.place.value} "]
