"""Produce requests without one of Kafka's checks, or with two of them in the other order.

Each class is the broker's own `Several` with one method changed (`ottla.broker.wire.api.produce`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ottla.broker.wire.answers import PartitionProduced
from ottla.broker.wire.api import produce
from ottla.broker.wire.api.call import Call
from ottla.broker.wire.requests import ProduceRequest
from ottla.sim.mutants.mutant import Mutant, Mutants


class _AnyAcks(produce.Several):
    """Step 8 is left out."""

    def refuse_acks(self, item: produce.Item) -> PartitionProduced | None:
        """As `Several.refuse_acks`, but allows any acks."""
        return None


class _AcksFirst(produce.Several):
    """Step 8 comes before steps 4 and 5."""

    def unreadable(self, item: produce.Item) -> PartitionProduced | None:
        """As `Several.unreadable`, but after the check of acks."""
        return self.refuse_acks(item) or super().unreadable(item)


_WITHOUT: dict[Mutant, type[produce.Several]] = {
    Mutant.ANY_ACKS: _AnyAcks,
    Mutant.ACKS_FIRST: _AcksFirst,
}


def produce_without(mutants: Mutants) -> Callable[[ProduceRequest, Call], None]:
    """The handler of produce requests on a node with these mutants."""
    for mutant, several in _WITHOUT.items():
        if mutant in mutants:
            return partial(produce.begin, several=several)
    return produce.handle
