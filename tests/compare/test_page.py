"""The page of the cases is what the cases say; OTTLA_REWRITE=1 writes it anew."""

import os

from pages_compare import cases_page
from tidy.source import repository


def test_the_page_says_what_the_cases_say():
    page, written = repository() / "docs/reference/compare-cases.md", cases_page()
    if os.environ.get("OTTLA_REWRITE"):
        page.write_text(written, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == written
