"""The limits of the house hold for every python file of the checkout."""

import pytest

from tidy import docs
from tidy.rules import RULES
from tidy.source import ROOTS, Violation, repository, sources

ROOT = repository()


@pytest.fixture(scope="module")
def files():
    return sources(ROOT)


@pytest.fixture(scope="module")
def not_implemented() -> str:
    return (ROOT / docs.NOT_IMPLEMENTED).read_text(encoding="utf-8")


def accept(violations: list[Violation]) -> None:
    if violations:
        pytest.fail("\n".join(map(str, violations)), pytrace=False)


def test_the_rules_see_the_tree(files):
    """Guards against a listing that comes back empty and makes everything green."""
    assert {file.path.split("/", 1)[0] for file in files} == set(ROOTS)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_rule_holds_everywhere(rule, files):
    accept([violation for file in files for violation in rule(file)])


def test_deferred_work_is_listed(files, not_implemented):
    known = frozenset(refusal.what for refusal in docs.refusals(not_implemented))
    accept([violation for file in files for violation in docs.deferred(file, known)])


def test_every_refusal_is_proven(not_implemented):
    accept(list(docs.unproven(ROOT, not_implemented)))
