"""Clients without one of their safety mechanisms; one override each.

| mutant | client | what it does |
|---|---|---|
| sim-M20 | Java | after a gap it begins a new epoch at once, on all partitions, with what is |
| | | in flight: what is stored and not answered is stored again (librdkafka 4953) |
| sim-M21 | Java | a batch whose answer was lost gets new sequences, as if it were not stored; |
| | | the sequences of one that expired go to the next, as if free (KAFKA-14034) |
| sim-M34 | consumer | goes on at the high watermark, not after the records that it got |
| sim-M35 | all | takes an answer for that to its latest request of the kind (promise-P1) |
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.answers import FetchAnswer, PartitionProduced
from ottla.idempotency.sequence import MAX_SEQUENCE
from ottla.raft.types import NodeId
from ottla.sim.clients.base import Client
from ottla.sim.clients.consumer import Consumer, Reading
from ottla.sim.clients.java_lane import JavaLane
from ottla.sim.clients.librdkafka_nodes import LibrdkafkaConsumer
from ottla.sim.clients.link import Link
from ottla.sim.clients.producer_java import JavaProducer
from ottla.sim.clients.producer_librdkafka import LibrdkafkaProducer
from ottla.sim.mutants.mutant import Mutant, Mutants
from ottla.sim.world.batch import Batch
from ottla.sim.world.frames import Frame, fetched
from ottla.sim.world.outcomes import Outcome, may_be_stored

Model = TypeVar("Model", bound=Client)


class MixedUpLink(Link):
    """sim-M35."""

    __slots__ = ()

    def _answered(self, answer: Frame) -> None:
        alike = [each for each in self.open if each.answer is type(answer.value)]
        pending = alike[-1] if alike else None
        if pending is None:
            self._violated(None, answer)
        else:
            self.open.remove(pending)
            pending.on_answer(answer.value)


class _MixesUp(Client):
    """A client that may mix up answers."""

    def __init__(self, *arguments: Any, **named: Any):
        super().__init__(*arguments, **named)
        self.mutants = self.surroundings.mutants
        if Mutant.ANSWERS_MIXED_UP in self.mutants:
            self.link_type = MixedUpLink


class MutatedJavaProducer(_MixesUp, JavaProducer):
    """See the module's docstring."""

    def _went_wrong(
        self, lane: JavaLane, batch: Batch, outcome: Outcome, part: PartitionProduced | None
    ) -> None:
        open_before = not batch.done
        super()._went_wrong(lane, batch, outcome, part)
        if not self.idempotent or not open_before:
            return
        if Mutant.BUMPS_ON_GAPS in self.mutants and outcome is _GAP:
            for each in self._lanes.values():
                each.bump_wanted = True
        if Mutant.NUMBERS_GIVEN_BACK in self.mutants and may_be_stored(outcome) and not batch.done:
            batch.number(lane.pid, lane.epoch, lane.next_seq)
            lane.next_seq = (lane.next_seq + len(batch.ops)) & MAX_SEQUENCE

    def _expired(self, lane: JavaLane, batch: Batch) -> None:
        super()._expired(lane, batch)
        if Mutant.NUMBERS_GIVEN_BACK in self.mutants and batch.has_seq:
            lane.unresolved = None
            lane.next_seq = batch.seq


class MutatedLibrdkafkaProducer(_MixesUp, LibrdkafkaProducer):
    """See the module's docstring."""


class MutatedConsumer(_MixesUp, Consumer):
    """See the module's docstring."""

    def _fetched(self, node: NodeId, reading: Reading, answer: FetchAnswer) -> None:
        super()._fetched(node, reading, answer)
        part = fetched(answer)
        if Mutant.SKIPS_UNFETCHED in self.mutants and part.error is ErrorCode.NONE:
            reading.position = part.high_watermark


class MutatedLibrdkafkaConsumer(MutatedConsumer, LibrdkafkaConsumer):
    """See the module's docstring."""


_GAP = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
_MUTATED: dict[type[Client], type[Client]] = {
    JavaProducer: MutatedJavaProducer,
    LibrdkafkaProducer: MutatedLibrdkafkaProducer,
    Consumer: MutatedConsumer,
    LibrdkafkaConsumer: MutatedLibrdkafkaConsumer,
}


def mutated(model: type[Model], mutants: Mutants) -> type[Model]:
    """The class to make clients of; `model` itself if no mutant is chosen, and a plugin's."""
    return cast(type[Model], _MUTATED.get(model, model)) if mutants else model
