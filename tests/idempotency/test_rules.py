"""The table of rules: every set of facts has one row, and every row does what it says.

The walk over all sets does not use the compiler; the compiler is compared with it. Then every row
is reached through a real table, and its decision and its action are seen to happen.
"""

import re

import msgpack
import pytest

from ottla.idempotency.decisions import Accept, Duplicate, Park, Reject
from ottla.idempotency.rulebooks import RULEBOOKS
from ottla.idempotency.rules import (
    COMBINATIONS,
    FACTS,
    IMPOSSIBLE,
    REFERENCE,
    Action,
    Fact,
    RejectReason,
    Row,
    Verdict,
    compile_rules,
)
from ottla.idempotency.sessions import make_table
from ottla.idempotency.snapshot import TAG
from ottla.log.types import BatchIdentity
from tidy.citations import names_a_source, page_keys

SOURCES = page_keys()
ALL = list(RULEBOOKS.values())
NAMES = list(RULEBOOKS)


@pytest.mark.parametrize("rulebook", ALL, ids=NAMES)
def test_every_set_of_facts_has_exactly_one_row_or_a_reason_to_be_impossible(rulebook):
    for facts in range(COMBINATIONS):
        rows = [row.label for row in rulebook.rules if row.matches(facts)]
        reasons = [impossible.reason for impossible in IMPOSSIBLE if impossible.matches(facts)]
        assert reasons or len(rows) == 1, f"{Fact(facts)!r}: {rows}"


@pytest.mark.parametrize("rulebook", ALL, ids=NAMES)
def test_the_compiled_table_is_the_walk(rulebook):
    compiled = compile_rules(rulebook.rules)
    assert len(compiled) == COMBINATIONS
    for facts, row in enumerate(compiled):
        if any(impossible.matches(facts) for impossible in IMPOSSIBLE):
            assert row is None
        else:
            assert row is not None
            assert row.matches(facts)


@pytest.mark.parametrize("rulebook", ALL, ids=NAMES)
def test_every_row_is_needed_and_explained(rulebook):
    compiled = compile_rules(rulebook.rules)
    labels = [row.label for row in rulebook.rules]
    assert len(set(labels)) == len(labels)
    for row in rulebook.rules:
        assert row in compiled
        assert not row.when & row.unless
        assert re.fullmatch(r"[A-Z][^.]*\.", row.reason), row.reason
        for source in row.source.split("; "):
            assert names_a_source(source, SOURCES) or source.startswith("docs/decisions/")
        assert isinstance(row.decision, RejectReason) or not row.barrier
        changes = row.action is not Action.NOTHING
        assert changes == (row.decision is Verdict.ACCEPT)


def test_every_fact_is_described():
    assert list(FACTS) == list(Fact)
    assert 2 ** len(Fact) == COMBINATIONS


def test_every_reason_to_refuse_has_a_row():
    rows = [row for rulebook in ALL for row in rulebook.rules]
    assert {row.decision for row in rows if isinstance(row.decision, RejectReason)} == {
        *RejectReason
    }


def test_a_hole_in_the_table_is_found():
    with pytest.raises(AssertionError, match=r"\d+ sets of facts have a row, \d+ need one"):
        compile_rules(REFERENCE[:-1])


def test_an_overlap_in_the_table_is_found():
    second = Row(
        label="again",
        when=Fact.WELL_FORMED | Fact.FULL | Fact.ZERO,
        unless=Fact(0),
        decision=Verdict.ACCEPT,
        action=Action.START,
        reason="Overlaps.",
        source="nowhere",
    )
    with pytest.raises(AssertionError, match="table-full"):
        compile_rules((*REFERENCE, second))


# ---- every row, reached through a real table


class Maker:
    """Makes tables of one rulebook in which something was written."""

    def __init__(self, rulebook):
        self.rulebook = rulebook

    def __call__(self, *written, room=10):
        made = make_table(self.rulebook, room)
        for index, who in enumerate(written, 1):
            made.apply(BatchIdentity(*who), index * 10, 5, index=index, term=1)
        return made


def with_flight(made, *who):
    in_flight = made.begin(BatchIdentity(*who), 1)
    made.enqueued(in_flight, 50)
    return made


def ended(made):
    """Its leadership is over, and nothing of it was applied."""
    made.new_term(2)
    return made


def tailless(made):
    """Only a snapshot written elsewhere can hold a producer without batches."""
    made.restore(msgpack.packb([TAG, 9, False, [[7, 0, 9, []]]]))
    return made


def forgetful(made):
    made.apply_expire([8], index=2)
    return made


def known_as(made, pid, epoch):
    """What `describe` says of a producer."""
    producers = made.describe()["producers"]
    return producers.get(pid) or producers.get(f"{pid}/{epoch}") or {"finished": []}


CASES = {
    "malformed": (lambda new: new(), (7, -2, 0, 4)),
    "table-full": (lambda new: new((8, 0, 0, 4), room=1), (7, 0, 0, 4)),
    "unknown-start": (lambda new: new(), (7, 0, 0, 4)),
    "unknown-resumes": (lambda new: new(), (7, 3, 5, 9)),
    "forgotten-resumes": (lambda new: forgetful(new((8, 3, 0, 4))), (8, 3, 5, 9)),
    "unknown-start-missing": (lambda new: new((8, 0, 0, 4)), (7, 3, 5, 9)),
    "unknown-elsewhere": (lambda new: new(), (7, 3, 5, 9)),
    "stale-epoch": (lambda new: new((7, 1, 0, 4)), (7, 0, 5, 9)),
    "epoch-start": (lambda new: new((7, 1, 0, 4)), (7, 2, 0, 4)),
    "epoch-start-missing": (lambda new: new((7, 1, 0, 4)), (7, 2, 5, 9)),
    "tail-lost": (lambda new: tailless(new()), (7, 0, 5, 9)),
    "duplicate": (lambda new: new((7, 0, 0, 4), (7, 0, 5, 9)), (7, 0, 0, 4)),
    "in-flight": (lambda new: with_flight(new((7, 0, 0, 4)), 7, 0, 5, 9), (7, 0, 5, 9)),
    "next": (lambda new: new((7, 0, 0, 4)), (7, 0, 5, 9)),
    "gap": (lambda new: new((7, 0, 0, 4)), (7, 0, 6, 9)),
    "epoch-out-of-order": (lambda new: new((7, 1, 0, 4)), (7, 2, 5, 9)),
    "without-order": (lambda new: new((7, -1, 0, 4)), (7, -1, 8, 9)),
    "appended": (lambda new: with_flight(new((7, 0, 0, 4)), 7, 0, 5, 9), (7, 0, 5, 9)),
    "out-of-order": (lambda new: new((7, 0, 0, 4)), (7, 0, 6, 9)),
    "session-start-missing": (lambda new: new((7, 0, 0, 4)), (7, 1, 5, 9)),
    "tail-unknown-start": (lambda new: tailless(new()), (7, 0, 0, 4)),
    "tail-unknown-elsewhere": (lambda new: tailless(new()), (7, 0, 5, 9)),
    "session-tail-lost": (lambda new: tailless(new()), (7, 0, 5, 9)),
    "last-sequence-finished": (lambda new: new((7, 0, 0, 4), (7, 1, 0, 4)), (7, 0, 3, 4)),
    "last-sequence-in-flight": (lambda new: with_flight(new(), 7, 0, 0, 4), (7, 0, 2, 4)),
    "session-next": (lambda new: new((7, 0, 0, 4), (7, 1, 0, 9)), (7, 0, 5, 9)),
    "session-gap": (lambda new: new((7, 0, 0, 4)), (7, 0, 6, 9)),
    "begun-tail-lost": (lambda new: tailless(new()), (7, 0, 5, 9)),
    "begun-finished": (lambda new: new((7, 0, 0, 4), (7, 0, 5, 9)), (7, 0, 0, 4)),
    "begun-without-offset": (lambda new: ended(with_flight(new(), 7, 0, 0, 4)), (7, 0, 0, 4)),
    "begun-next": (lambda new: ended(with_flight(new(), 7, 0, 0, 4)), (7, 0, 5, 9)),
    "begun-gap": (lambda new: new((7, 0, 0, 4)), (7, 0, 6, 9)),
    "too-many-producers": (lambda new: new((8, 0, 0, 4), room=1), (7, 0, 0, 4)),
    "negative-sequence": (lambda new: new(), (7, 0, -1, 0)),
    "newcomer-at-zero": (lambda new: new(), (7, 0, 0, 4)),
    "newcomer-anywhere": (lambda new: new(), (7, 3, 5, 9)),
    "range-finished": (lambda new: new((7, 1, 0, 4), (7, 1, 5, 9)), (7, 0, 0, 4)),
    "range-in-flight": (lambda new: with_flight(new((7, 1, 0, 4)), 7, 1, 5, 9), (7, 0, 5, 9)),
    "empty-at-zero": (lambda new: new((7, 1, 0, 4)), (7, 2, 0, 4)),
    "empty-elsewhere": (lambda new: new((7, 1, 0, 4)), (7, 2, 5, 9)),
    "follows": (lambda new: new((7, 1, 0, 4)), (7, 0, 5, 9)),
    "follows-nothing": (lambda new: new((7, 0, 0, 4)), (7, 0, 6, 9)),
    "across-the-wrap": (lambda new: new((7, 0, 0, 2**31 - 3)), (7, 0, 2**31 - 2, 1)),
}
KINDS = {Verdict.ACCEPT: Accept, Verdict.DUPLICATE: Duplicate, Verdict.PARK: Park}


def test_every_row_has_a_case():
    assert set(CASES) == {row.label for rulebook in ALL for row in rulebook.rules}


@pytest.mark.parametrize(
    ("rulebook", "row"),
    [
        pytest.param(rulebook, row, id=f"{rulebook.name}-{row.label}")
        for rulebook in ALL
        for row in rulebook.rules
    ],
)
def test_row(rulebook, row):
    build, who = CASES[row.label]
    made = build(Maker(rulebook))
    identity = BatchIdentity(*who)
    before, digest = made.describe(), made.digest()
    stored = known_as(made, *who[:2])["finished"]
    decision = made.decide(identity, 1)
    assert decision.row is row
    assert row.matches(made.facts(identity, 1))
    assert made.describe() == before, "a decision changes nothing"
    if isinstance(row.decision, RejectReason):
        assert decision == Reject(row.decision, row, row.barrier)
        return
    assert isinstance(decision, KINDS[row.decision])
    if not isinstance(decision, Accept):
        return
    made.enqueued(made.begin(identity, 1), 100)
    assert made.digest() == digest, "stored state changes by apply alone"
    made.apply(identity, 1000, 5, index=100, term=1)
    window = known_as(made, *who[:2])["finished"]
    kept = [] if row.action is Action.START else stored
    assert window == [*kept, [*who[2:], 1000, 5]]
