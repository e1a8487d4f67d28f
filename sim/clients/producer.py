"""What both producer models share: ops and their outcomes, ids, produce requests.

A producer is *handed* ops, and each op gets exactly one outcome: `ok`, `fail` (certainly not
stored) or `info` (unknown). What happens in between depends on the model. A producer is idempotent
only with acks=all; otherwise both libraries refuse idempotence or switch it off.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.answers import InitProducerIdAnswer, PartitionProduced, ProduceAnswer
from ottla.broker.wire.requests import InitProducerIdRequest
from ottla.log.types import NO_OFFSET, NO_PRODUCER_ID, Offset, ProducerEpoch, ProducerId
from ottla.raft.types import Micros, NodeId
from ottla.sim.clients.base import Client
from ottla.sim.clients.link import Link, ProtocolViolation
from ottla.sim.clients.worker import MS, Surroundings
from ottla.sim.world.batch import Batch, Op, time_of
from ottla.sim.world.frames import produce, produced
from ottla.sim.world.outcomes import GivenUp, Lost, Outcome, Reason

LINGER: Micros = 5 * MS
"""How long an open batch waits for more (linger.ms since Java 4.0, queue.buffering.max.ms)."""
MAX_EPOCH: ProducerEpoch = 32767


class Producer(Client):
    """See the module's docstring."""

    model: str
    """The rules that it follows: a value of the setting `client_model`."""

    def __init__(self, surroundings: Surroundings, number: int, acks: int):
        super().__init__(surroundings, number)
        config = surroundings.config
        self.acks = acks
        self.idempotent = config.idempotent and acks == -1
        self.in_flight = config.in_flight
        self.batch_records = config.batch_records
        self.record_bytes = config.record_bytes
        self.first_seq = config.first_sequence
        self.delivery_timeout: Micros = config.delivery_timeout_ms * MS
        self.pid: ProducerId = NO_PRODUCER_ID
        self.epoch: ProducerEpoch = -1
        self.failed = False
        """Whether it is in a fatal state and takes no ops any more."""
        self.open_ops = 0
        """Ops without an outcome."""
        self._handed: dict[int, int] = {}
        self._asking_id = False
        self._id_failures = 0
        self._ask_id_at: Micros = 0

    # ---- ops

    def hand(self, number: int, partition: int) -> None:
        """Take a record that holds `number`."""
        place = self._handed.get(partition, 0)
        self._handed[partition] = place + 1
        self.open_ops += 1
        self.note(
            "inv",
            client=self.number,
            op=number,
            value=number,
            partition=partition,
            seq=place,
            acks=self.acks,
            code=self.model,
            aux=time_of(number),
        )
        self.accept(Op(number, partition, self.kernel.now))

    def accept(self, op: Op) -> None:
        """Put an op into the queue."""
        raise NotImplementedError

    def abandon(self) -> Sequence[Batch]:
        """Take out every batch that has ops without an outcome; none is sent any more."""
        raise NotImplementedError

    def at_rest(self) -> bool:
        """Whether no op is open, and none may still be stored."""
        return self.open_ops == 0 and not any(
            each.answer is ProduceAnswer for link in self.links.values() for each in link.open
        )

    def crash(self) -> None:
        """Die, as a process does: whether what was sent is stored stays unknown."""
        self.stop()
        for batch in self.abandon():
            self.give_up(batch, GivenUp.CRASHED)
        assert self.open_ops == 0, f"{self.open_ops} ops have no outcome after a crash"

    def succeed(self, batch: Batch, base: Offset, node: NodeId | None) -> None:
        """Its ops are acknowledged; `base` is NO_OFFSET if the offset is unknown."""
        batch.done = True
        self.open_ops -= len(batch.ops)
        for place in range(len(batch.ops)):
            off = base if base == NO_OFFSET else base + place
            self._end("ok", batch, place, off=off, node=node)

    def give_up(self, batch: Batch, reason: Reason) -> None:
        """Its ops fail: certainly not stored, or unknown."""
        batch.done = True
        self.open_ops -= len(batch.ops)
        kind = "info" if batch.may_be_stored else "fail"
        for place in range(len(batch.ops)):
            self._end(kind, batch, place, code=reason.name)

    def _end(
        self,
        kind: str,
        batch: Batch,
        place: int,
        *,
        off: Offset | None = None,
        node: NodeId | None = None,
        code: str | None = None,
    ) -> None:
        op, numbered = batch.ops[place], batch.has_seq
        self.note(
            kind,
            client=self.number,
            node=node,
            off=off,
            code=code,
            op=op.number,
            value=op.number,
            partition=op.partition,
            pid=batch.pid if numbered else None,
            epoch=batch.epoch if numbered else None,
            seq=batch.seq_of(place) if numbered else None,
            acks=self.acks,
        )

    # ---- requests

    def send(self, link: Link, batches: Sequence[Batch], patience: Micros | None = None) -> None:
        """Send batches of different partitions in one request."""
        for batch in batches:
            batch.sent()
            self._sent_row(batch, link.node)
        parts = tuple([(each.partition, each.data(self.record_bytes)) for each in batches])
        request = produce(self.acks, self.request_timeout, parts)
        if self.acks == 0:
            link.tell(request)
            for batch in batches:
                self._outcome(batch, ErrorCode.NONE, None, link.node)
            return
        sent = {each.partition: each for each in batches}
        answered = partial(self._answered, link.node, sent)
        link.ask(request, ProduceAnswer, answered, partial(self._lost, link.node, sent), patience)

    def _sent_row(self, batch: Batch, node: NodeId) -> None:
        numbered = batch.has_seq
        self.note(
            "send",
            client=self.number,
            node=node,
            op=batch.ops[0].number,
            partition=batch.partition,
            aux=batch.attempts + 1,
            pid=batch.pid if numbered else None,
            epoch=batch.epoch if numbered else None,
            seq=batch.seq if numbered else None,
            seq_last=batch.last_seq if numbered else None,
        )

    def _answered(self, node: NodeId, sent: dict[int, Batch], answer: ProduceAnswer) -> None:
        parts = produced(answer)
        if sorted(each.partition for each in parts) != sorted(sent):
            text = f"asked about {list(sent)}, answered {parts}"
            self.row("error", node=node, code=f"protocol violation: {text}")
            raise ProtocolViolation(f"client {self.number}, node {node}: {text}")
        for part in parts:
            self._outcome(sent[part.partition], part.error, part, node)
        self.wake()

    def _lost(self, node: NodeId, sent: dict[int, Batch], lost: Lost) -> None:
        for batch in sent.values():
            self._outcome(batch, lost, None, node)

    def _outcome(
        self, batch: Batch, outcome: Outcome, part: PartitionProduced | None, node: NodeId
    ) -> None:
        batch.came(outcome)
        if outcome is not ErrorCode.NONE:
            self.row(
                "error",
                node=node,
                op=batch.ops[0].number,
                partition=batch.partition,
                code=outcome.name,
                **batch.numbers(),
            )
        self.came(batch, outcome, part, node)

    def came(
        self, batch: Batch, outcome: Outcome, part: PartitionProduced | None, node: NodeId
    ) -> None:
        """A batch that was sent to `node` has an outcome; `part` is the answer, if there is one."""
        raise NotImplementedError

    # ---- ids

    def have_id(self) -> bool:
        """Whether there is a producer id; if not, it asks a node for one."""
        if self.pid != NO_PRODUCER_ID:
            return True
        if self._asking_id:
            return False
        if self.kernel.now < self._ask_id_at:
            self.alarm(self._ask_id_at)
            return False
        link = self.link_for_id()
        if link is not None:
            self._asking_id = True
            request = InitProducerIdRequest()
            link.ask(request, InitProducerIdAnswer, self._id_answered, self._no_id)
        return False

    def link_for_id(self) -> Link | None:
        """A connection to ask for an id on (Java:
        `Sender.maybeSendAndPollTransactionalRequest`)."""
        return self.least_loaded()

    def _id_answered(self, answer: InitProducerIdAnswer) -> None:
        if answer.error_code is not ErrorCode.NONE:
            self._no_id(answer.error_code)
            return
        self._asking_id, self._id_failures = False, 0
        self.pid, self.epoch = answer.producer_id, answer.producer_epoch
        self.wake()

    def _no_id(self, outcome: Outcome) -> None:
        """No producer id could be had now (sim-L3): try again, each time after a longer wait."""
        self.row("error", code=outcome.name)
        self._asking_id = False
        self._ask_id_at = self.kernel.now + self.backed_off(self._id_failures)
        self._id_failures += 1
        self.wake()
