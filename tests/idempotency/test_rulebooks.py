"""Rulebooks are values, found by name."""

import dataclasses

import pytest

from ottla.idempotency.decisions import Duplicate, Reject
from ottla.idempotency.rulebooks import RULEBOOKS, Rulebook
from ottla.idempotency.rules import REFERENCE, RejectReason
from ottla.idempotency.table import ProducerTable
from ottla.log.types import BatchIdentity


def test_reference_is_there_and_is_what_the_design_says():
    rulebook = RULEBOOKS["reference"]
    assert rulebook.window == 5
    assert rulebook.gap_after_barrier


def test_strict_differs_from_reference_in_unknown_producers_only():
    reference, strict = RULEBOOKS["reference"], RULEBOOKS["reference-strict"]
    assert (strict.window, strict.gap_after_barrier) == (5, True)
    changed = {row.label for row in {*reference.rules} ^ {*strict.rules}}
    assert changed == {"unknown-resumes", "forgotten-resumes", "unknown-start-missing"}


def test_rules_are_compiled_when_they_are_first_asked_for():
    """Importing the rulebooks costs nothing that one never used would have to pay for."""
    rulebook = Rulebook("late", REFERENCE[:-1], window=5, gap_after_barrier=True)
    with pytest.raises(AssertionError, match="sets of facts have a row"):
        ProducerTable(rulebook, 10)
    sound = RULEBOOKS["reference"]
    assert sound.outcomes is sound.outcomes


def test_a_rulebook_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(RULEBOOKS["reference"], "window", 6)  # noqa: B010 - not for mypy


def test_switches_are_read_by_name():
    """Another value is another behaviour: nothing asks for the rulebook's name."""
    rules = RULEBOOKS["reference"].rules
    other = Rulebook("other", rules, window=2, gap_after_barrier=False)
    table = ProducerTable(other, 10)
    for n in range(3):
        table.apply(BatchIdentity(7, 0, n, n), n, -1, index=n + 1, term=1)
    refused = table.decide(BatchIdentity(7, 0, 0, 0), 1)
    assert refused == Reject(RejectReason.GAP, refused.row, barrier=False)
    assert isinstance(table.decide(BatchIdentity(7, 0, 1, 1), 1), Duplicate)
