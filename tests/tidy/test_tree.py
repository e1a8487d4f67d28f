"""The limits of the house hold for every python file of the checkout."""

import pytest

from tidy import docs
from tidy.rules import RULES
from tidy.source import Violation, repository, sources

ROOT = repository()


@pytest.fixture(scope="module")
def files():
    return sources(ROOT)


@pytest.fixture(scope="module")
def not_implemented() -> str:
    return (ROOT / docs.NOT_IMPLEMENTED).read_text(encoding="utf-8")


def report(violations: list[Violation]) -> str:
    return "\n".join(["", *map(str, violations)])


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_rule_holds_everywhere(rule, files):
    violations = [violation for file in files for violation in rule(file)]
    assert not violations, report(violations)


def test_deferred_work_is_listed(files, not_implemented):
    known = frozenset(refusal.what for refusal in docs.refusals(not_implemented))
    violations = [violation for file in files for violation in docs.deferred(file, known)]
    assert not violations, report(violations)


def test_every_refusal_is_proven(not_implemented):
    violations = list(docs.unproven(ROOT, not_implemented))
    assert not violations, report(violations)
