"""Who is forgotten for a new producer: the longest idle one, at a cost that does not grow.

A burst of 8,000 new producers on a full table took 5.8 s of one turn: each looked past all that
were about to be forgotten for those before it, and counted all that were in flight.
"""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.idempotency.producer import InFlight
from ottla.idempotency.rulebooks import RULEBOOKS
from ottla.idempotency.sessions import make_table
from ottla.log.types import BatchIdentity
from work import instructions_of

TERM = 1
IDS = range(8)


def full_table(size):
    table = make_table(RULEBOOKS["reference"], size)
    for producer in range(size):
        table.apply(BatchIdentity(producer, 0, 0, 0), producer, 0, index=producer + 1, term=TERM)
    return table


def burst(table, size):
    """So many new producers come, and for each the longest idle one goes; nothing is applied."""
    for number in range(size):
        table.expire(table.longest_idle(1))
        who = BatchIdentity(10_000 + number, 0, 0, 0)
        table.decide(who, TERM)
        table.begin(who, TERM)


@pytest.mark.slow
def test_room_for_a_new_producer_costs_the_same_however_many_came_before():
    spent = [instructions_of(partial(burst, full_table(1000), size)) for size in (200, 400, 800)]
    first, second, third = spent
    assert third - second == pytest.approx(2 * (second - first), rel=0.1)


def test_a_table_of_busy_producers_is_not_looked_through_for_each_new_one():
    table = full_table(1000)
    for producer in range(1000):
        table.begin(BatchIdentity(producer, 0, 1, 1), TERM)
    assert table.longest_idle(1) == []
    assert instructions_of(partial(table.longest_idle, 1)) < 200


class Model:
    """A table, and what is known of it without looking into it."""

    def __init__(self, profile):
        self.table = make_table(RULEBOOKS[profile], 100)
        self.order: list[int] = []
        self.flights: dict[int, list[InFlight]] = {}
        self.expiring: set[int] = set()
        self.sequences: dict[int, int] = {}
        self.index = 0

    def idle(self):
        return [
            each for each in self.order if each not in self.flights and each not in self.expiring
        ]

    def begin(self, producer):
        sequence = self.sequences[producer] = self.sequences.get(producer, -1) + 1
        begun = self.table.begin(BatchIdentity(producer, 0, sequence, sequence), TERM)
        self.flights.setdefault(producer, []).append(begun)

    def abandon(self, producer):
        """The newest request of it fails, before it has a place in the log."""
        if producer in self.flights:
            self.table.abandon(self.flights[producer].pop())
            if not self.flights[producer]:
                del self.flights[producer]

    def apply(self, producer):
        """A batch of another leader: whatever is in flight here stays in flight."""
        self.index += 1
        who = BatchIdentity(producer, 0, 500, 500)
        self.table.apply(who, self.index, 0, index=self.index, term=TERM)
        self.order = [each for each in self.order if each != producer] + [producer]

    def expire(self, _):
        victims = self.table.longest_idle(1)
        assert victims == self.idle()[:1]
        self.table.expire(victims)
        self.expiring.update(victims)

    def keep(self, _):
        self.table.keep(self.expiring)
        self.expiring = set()

    def forget(self, _):
        self.index += 1
        self.table.apply_expire(sorted(self.expiring), index=self.index)
        self.order = [each for each in self.order if each not in self.expiring]
        self.expiring = set()

    def new_term(self, _):
        self.table.new_term(TERM)
        self.flights.clear()
        self.expiring = set()


ACTS = ["begin", "abandon", "apply", "apply", "expire", "keep", "forget", "new_term"]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(ACTS), st.sampled_from(IDS)), max_size=60))
def test_the_longest_idle_are_those_that_a_look_at_all_would_find(acts):
    model = Model("reference")
    for act, producer in acts:
        if act != "apply" or producer not in model.expiring:
            getattr(model, act)(producer)
        assert model.table.longest_idle(3) == model.idle()[:3]
        assert model.table.longest_idle() == model.idle()
