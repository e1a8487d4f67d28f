"""A producer id with epoch -1: no client sends it, Apache Kafka 4.3.1 takes it (K-NO-EPOCH).

Each story is one producer's batches of one record as measured there: epoch, sequence, and what
became of it. Offsets count from 0 in each story. Nothing has an order under epoch -1, a repeated
batch is a duplicate all the same, and whoever names an epoch begins anew and fences it.
"""

import pytest

from ottla.idempotency.decisions import Accept, Duplicate, Park, Reject
from ottla.idempotency.producer import InFlight
from ottla.idempotency.rulebooks import RULEBOOKS
from ottla.idempotency.table import ProducerTable
from ottla.log.types import BatchIdentity

STORIES = {
    "any order": [
        (-1, 0, 0),
        (-1, 1, 1),
        (-1, 2, 2),
        (-1, 2, "duplicate of 2"),
        (-1, 7, 3),
        (-1, 3, 4),
        (-1, 0, "duplicate of 0"),
    ],
    "fenced by 0": [(-1, 0, 0), (0, 0, 1), (-1, 1, "stale"), (-1, 0, "stale"), (0, 1, 2)],
    "an epoch begins anywhere": [(-1, 0, 0), (0, 5, 1), (0, 6, 2), (0, 9, "gap")],
    "too late": [(0, 0, 0), (-1, 1, "stale"), (-1, 0, "stale"), (0, 1, 1)],
    "begins anywhere": [(-1, 9, 0), (-1, 9, "duplicate of 0"), (-1, 10, 1), (0, 11, 2)],
    "below it is nothing": [(-2, 0, "malformed"), (-1, 0, 0), (-2, 2, "malformed")],
    "window of five": [
        *((-1, number, number) for number in range(7)),
        (-1, 0, 7),
        (-1, 2, 8),
        (-1, 6, "duplicate of 6"),
    ],
}


def outcome(decision):
    if isinstance(decision, Duplicate):
        return f"duplicate of {decision.base_offset}"
    if isinstance(decision, Reject):
        return decision.reason.value.split()[0]
    return None


def names(what):
    return BatchIdentity(7, what[0], what[1], what[1])


@pytest.mark.parametrize(
    ("story", "together"),
    [
        *((story, False) for story in STORIES),
        *((story, True) for story in STORIES if story != "window of five"),
    ],
)
def test_as_measured(story, together):
    """Each batch is applied before the next is judged, or (`together`) all are in flight."""
    table = ProducerTable(RULEBOOKS["reference"], 10)
    offset = 0
    flying: list[InFlight] = []
    for epoch, sequence, expected in STORIES[story]:
        who = names((epoch, sequence))
        decision = table.decide(who, 1)
        if isinstance(decision, Park):
            assert expected == f"duplicate of {flying.index(decision.in_flight)}"
        elif isinstance(decision, Accept):
            assert expected == offset
            flying.append(table.begin(who, 1))
            offset += 1
            table.enqueued(flying[-1], offset)
            if not together:
                table.apply(who, offset - 1, 77, index=offset, term=1)
        else:
            assert outcome(decision) == expected
    again = ProducerTable(RULEBOOKS["reference"], 10)
    again.restore(table.snapshot())
    assert again.digest() == table.digest()


def test_nobody_was_forgotten_so_the_strict_profile_wants_the_beginning():
    table = ProducerTable(RULEBOOKS["reference-strict"], 10)
    assert outcome(table.decide(names((-1, 3)), 1)) == "gap"
    table.apply(names((-1, 0)), 0, 77, index=1, term=1)
    assert isinstance(table.decide(names((-1, 3)), 1), Accept)
    assert outcome(table.decide(names((0, 3)), 1)) == "gap"
    assert isinstance(table.decide(names((0, 0)), 1), Accept)
