"""The page of assumptions says what the cases say, and has no row that cannot differ."""

import os
from pathlib import Path

import pytest

from compare_kit import every_case
from pages_assumptions import PROFILES, Assumption, answer, assumptions_page, questions

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "assumptions.md"
ROWS = [row for rows in questions().values() for row in rows]
CASES = {each.name: each for each in every_case()}


def test_the_page_says_what_the_cases_say():
    """With OTTLA_REWRITE=1 the page is written instead."""
    written = assumptions_page()
    if os.environ.get("OTTLA_REWRITE"):
        PAGE.write_text(written, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == written


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.says)
def test_each_row_names_a_field_that_its_case_judges_for_every_profile(row: Assumption):
    told = [answer(CASES[row.case], row, profile) for profile in PROFILES.values()]
    assert all(told)


def test_some_hold_everywhere_some_nowhere_and_some_on_one_of_them():
    found = set()
    for row in ROWS:
        case = CASES[row.case]
        holds = [answer(case, row, profile) == row.holds for profile in PROFILES.values()]
        found.add(tuple(holds[:2]))
    assert found == {(True, True), (False, False), (True, False)}
