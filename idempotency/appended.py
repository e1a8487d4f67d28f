"""`AppendedTable`: a producer table in which a batch counts from its append on, as in Kafka.

Kafka remembers the last five batches of a producer in the log, replicated or not (K-SEQUENCE). So
a batch that is in flight takes the place of an older one at once. `ProducerTable` remembers all
that are in flight, and five finished ones besides.
"""

from __future__ import annotations

from itertools import islice

from ottla.idempotency.identity import NO_EPOCH
from ottla.idempotency.producer import Finished, Flights, Term
from ottla.idempotency.rules import Fact
from ottla.idempotency.sequence import is_successor
from ottla.idempotency.table import ProducerTable
from ottla.log.types import BatchIdentity

_FINISHED, _IN_FLIGHT = int(Fact.FINISHED), int(Fact.IN_FLIGHT)
_SEEN = _FINISHED | _IN_FLIGHT
_TAIL, _SUCCESSOR, _KNOWN = int(Fact.TAIL), int(Fact.SUCCESSOR), int(Fact.KNOWN)


class AppendedTable(ProducerTable):
    """See the module's docstring."""

    __slots__ = ()

    def facts(self, identity: BatchIdentity, term: Term) -> int:
        """As `ProducerTable.facts`, of the last `window` batches only."""
        facts = super().facts(identity, term)
        flights = self._flights.get(identity.producer_id)
        if flights is None or not facts & _SEEN:
            return facts
        room = self._window - len(flights.requests)
        if facts & _FINISHED and not self._kept(identity, room):
            facts &= ~_FINISHED
        if facts & _IN_FLIGHT and not _newest(flights, identity, self._window):
            facts &= ~_IN_FLIGHT
        if identity.epoch == NO_EPOCH and not facts & _SEEN:
            facts &= ~_TAIL  # nothing of it is known, so there is nothing to compare to
        return facts

    def _kept(self, identity: BatchIdentity, room: int) -> bool:
        """Whether the finished batch is among the newest `room` ones."""
        finished = reversed(self._applied[identity.producer_id].finished)
        kept: list[Finished] = list(islice(finished, max(room, 0)))
        return any(each[:2] == identity[2:] for each in kept)


class OrderedTable(AppendedTable):
    """The same with an order of epoch -1, as Kafka had it before KIP-360."""

    __slots__ = ()

    def facts(self, identity: BatchIdentity, term: Term) -> int:
        """As `AppendedTable.facts`, with the tail of epoch -1."""
        facts = super().facts(identity, term)
        producer_id, epoch, first, _ = identity
        if epoch != NO_EPOCH or not facts & _KNOWN:
            return facts
        current = self._flights.get(producer_id) or self._applied[producer_id]
        if current.epoch == NO_EPOCH:
            facts |= _TAIL
            if is_successor(first, current.tail):
                facts |= _SUCCESSOR
        return facts


def _newest(flights: Flights, identity: BatchIdentity, window: int) -> bool:
    """Whether this request is among the newest `window` ones in flight."""
    return identity in islice(reversed(flights.requests), window)
