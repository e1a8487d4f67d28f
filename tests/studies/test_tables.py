"""The page of the tables is what the statements say, and the names of tables are theirs.

OTTLA_REWRITE=1 writes the page anew.
"""

import os

import docs_pages
from ottla.sim.studies import names
from ottla.sim.studies.sheets import GOLD, JUDGING, QUANTILES, SILVER, sheets
from pages_studies import page

PAGE = docs_pages.ROOT / "docs" / "reference" / "study-tables.md"


def tables(layer):
    return [each for each in sheets(layer) if not each.shared]


def test_the_page_says_what_the_statements_say():
    if os.environ.get("OTTLA_REWRITE"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()


def test_each_table_and_each_column_has_a_meaning():
    for layer in (SILVER, JUDGING, GOLD, QUANTILES):
        for each in tables(layer):
            assert each.says
            assert each.columns
            assert all(column.says for column in each.columns)
            assert len(each.types) == len(each.columns)


def test_a_study_may_ask_every_table_by_its_name():
    assert {each.name for each in tables(SILVER)} == set(names.SILVER)
    assert [each.name for each in tables(JUDGING)] == [names.VERDICTS]
    assert {each.name for each in tables(GOLD)} == set(names.GOLD)
    assert [each.name for each in tables(QUANTILES)] == [names.STUDENT_T]


def test_silver_tables_say_whose_they_are():
    for each in (*tables(SILVER), *tables(JUDGING)):
        assert list(each.types)[:2] == ["run_id", "variant"], each.name
