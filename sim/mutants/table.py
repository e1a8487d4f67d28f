"""`MutatedTable`: a producer table without one of its safety mechanisms.

Mutants of the rules change no code: they give the rules other facts than those observed, by one
more look-up table made when the rulebook is compiled. The others override one method each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ottla.idempotency.decisions import Outcome, compile_outcomes
from ottla.idempotency.producer import InFlight
from ottla.idempotency.rulebooks import Rulebook
from ottla.idempotency.rules import Fact
from ottla.idempotency.snapshot import Decoding
from ottla.idempotency.table import NOBODY, ProducerTable, Waiters
from ottla.log.types import BatchIdentity, Millis, Offset, ProducerId
from ottla.raft.types import LogIndex, Micros, Term
from ottla.sim.mutants.mutant import Mutant, Mutants

_DUPLICATE = int(Fact.FINISHED | Fact.IN_FLIGHT)


class MutatedTable(ProducerTable):
    """See the module's docstring. `leads` says whether this replica leads now."""

    def __init__(
        self, rulebook: Rulebook, max_producers: int, mutants: Mutants, leads: Callable[[], bool]
    ):
        super().__init__(rulebook, max_producers)
        self.mutants = mutants
        self._leads = leads
        self._outcomes = _outcomes(rulebook, mutants)
        self._window = rulebook.window - (Mutant.SHORT_WINDOW in mutants)

    def facts(self, identity: BatchIdentity, term: Term) -> int:
        """As `ProducerTable.facts`, but an equal first sequence may be enough for a duplicate."""
        facts = super().facts(identity, term)
        producer = self._applied.get(identity.producer_id)
        if (
            Mutant.FIRST_SEQUENCE_ONLY in self.mutants
            and producer is not None
            and not facts & int(Fact.IN_FLIGHT)
            and producer.epoch == identity.epoch
            and identity.first_sequence in producer.firsts
        ):
            facts |= int(Fact.FINISHED)
        return facts

    def decide(self, identity: BatchIdentity, term: Term) -> Any:
        """As `ProducerTable.decide`, with the finished batch of the same first sequence."""
        if Mutant.FIRST_SEQUENCE_ONLY in self.mutants:
            producer = self._applied.get(identity.producer_id)
            known = () if producer is None else tuple(producer.finished)
            alike = next((each for each in known if each[0] == identity.first_sequence), None)
            if alike is not None and self.facts(identity, term) & int(Fact.FINISHED):
                identity = identity._replace(last_sequence=alike[1])
        return super().decide(identity, term)

    def begin(self, identity: BatchIdentity, term: Term) -> InFlight:
        """As `ProducerTable.begin`, but a new epoch may replace the old one at once."""
        producer = self._applied.get(identity.producer_id)
        if (
            Mutant.EPOCH_BEFORE_COMMIT in self.mutants
            and producer is not None
            and producer.epoch != identity.epoch
        ):
            producer.restart(identity.epoch)
        return super().begin(identity, term)

    def apply(
        self,
        identity: BatchIdentity,
        base_offset: Offset,
        max_timestamp: Millis,
        *,
        index: LogIndex,
        term: Term,
        now: Micros = 0,
    ) -> Waiters:
        """As `ProducerTable.apply`, but followers may ignore it."""
        if Mutant.STATE_IN_LEADER_ONLY in self.mutants and not self._leads():
            return NOBODY
        return super().apply(identity, base_offset, max_timestamp, index=index, term=term, now=now)

    def new_term(self, term: Term) -> list[InFlight]:
        """As `ProducerTable.new_term`, but what was in flight may stay."""
        if Mutant.SPECULATION_KEPT in self.mutants:
            return []
        return super().new_term(term)

    def expire(self, producer_ids: Iterable[ProducerId]) -> None:
        """As `ProducerTable.expire`, but requests in flight are dropped, too."""
        if Mutant.EVICTS_IN_FLIGHT in self.mutants:
            for producer_id in producer_ids:
                self._flights.pop(producer_id, None)
        super().expire(producer_ids)

    def forget(self, producer_ids: Iterable[ProducerId]) -> None:
        """Forget producers at once, whatever the log says."""
        for producer_id in producer_ids:
            self._applied.pop(producer_id, None)
        self._recount()

    def adopt(self, decoding: Decoding) -> None:
        """As `ProducerTable.adopt`, but a snapshot may restore no producers."""
        super().adopt(decoding)
        if Mutant.SNAPSHOT_WITHOUT_STATE in self.mutants:
            self._applied.clear()
            self._recount()

    def _is_free(self, producer_id: ProducerId) -> bool:
        if Mutant.EVICTS_IN_FLIGHT in self.mutants:
            return producer_id not in self._expiring
        return super()._is_free(producer_id)


def _outcomes(rulebook: Rulebook, mutants: Mutants) -> tuple[Outcome, ...]:
    """The outcome for each set of facts if the rules get other facts."""
    barrier = rulebook.gap_after_barrier and Mutant.GAPS_WITHOUT_BARRIER not in mutants
    compiled = compile_outcomes(rulebook.rules, barrier)
    told: list[Outcome] = []
    for facts, outcome in enumerate(compiled):
        other = _told(facts, mutants)
        told.append(outcome if other == facts else compiled[other])
    return tuple(told)


def _told(facts: int, mutants: Mutants) -> int:
    if Mutant.NO_DUPLICATES in mutants:
        if facts & _DUPLICATE:
            facts |= int(Fact.SUCCESSOR)
        facts &= ~_DUPLICATE
    if Mutant.GAPS_ACCEPTED in mutants and facts & int(Fact.KNOWN):
        facts |= int(Fact.SUCCESSOR)
    if Mutant.NO_FENCING in mutants:
        facts &= ~int(Fact.OLDER)
    if Mutant.NO_WRAP in mutants and facts & int(Fact.ZERO):
        facts &= ~int(Fact.SUCCESSOR)
    return facts
