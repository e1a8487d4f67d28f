"""docs/reference/profiles.md has every profile, and each difference names a test or a case."""

import re
from pathlib import Path

import pytest

from ottla.broker.profiles.named import ALIASES, PROFILES
from ottla.compare.finding import CASES
from tidy.docs import is_test

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/reference/profiles.md").read_text(encoding="utf-8")
CELLS = re.findall(r"\| ((?:(?:case )?`[^`]*/[^`]*`(?:; )?)+) \|$", PAGE, re.MULTILINE)
"""What shows a difference: a test, a case of `ottla compare`, or both."""
SHOWN_BY = re.findall(r"(case )?`([^`]*)`", "\n".join(CELLS))


@pytest.mark.parametrize("profile", [each.name for each in PROFILES])
def test_every_profile_has_its_row(profile):
    assert len(re.findall(rf"^\| `{re.escape(profile)}`", PAGE, re.MULTILINE)) == 1


@pytest.mark.parametrize("alias", ALIASES)
def test_every_alias_is_named(alias):
    assert f"`{alias}`" in PAGE


@pytest.mark.parametrize(("case", "name"), SHOWN_BY)
def test_every_difference_is_shown_by_a_test_or_a_case(case, name):
    assert (CASES / f"{name}.toml").is_file() if case else is_test(ROOT, name)


def test_every_row_of_a_difference_has_a_test():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and line.count(" | ") == 3]
    heads = [line for line in rows if line.endswith("| shown by |")]
    assert len(rows) - len(heads) == len(CELLS)
    assert len(heads) == 7
