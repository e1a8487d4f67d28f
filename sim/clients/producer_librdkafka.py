"""librdkafka's producer, idempotent or plain (confluent-kafka and all that is built on it).

It differs from Java (K-CLIENTS; src/rdkafka_broker.c, rdkafka_idempotence.c):

* After any retry its partition *drains*: nothing is sent until everything in flight is answered.
  Nothing is sent to a new leader before the old one has answered.
* A bump concerns all partitions together: nothing is sent until nothing is in flight anywhere. Then
  the producer bumps the epoch by itself, and each partition gives what it has queued new sequences
  from 0. What of it was stored before is then stored twice (librdkafka#4953).
* The success of a later batch proves that earlier batches without an answer were stored: they are
  acknowledged without an offset.
* A sequence error at the head of the line is *fatal*: the producer takes nothing any more.
* It knows leaders only from metadata (no hints), and never splits a batch.

One thing is simplified. librdkafka limits what a partition has in flight to 5 less the number of
*messages* in flight, which for batches of 5 and more leaves a single request. Here requests are
counted, so that pipelines are as deep as the settings say.

`work` is rd_kafka_broker_produce_toppars for all nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, unique

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.answers import PartitionProduced
from ottla.log.types import NO_OFFSET
from ottla.raft.types import Micros, NodeId
from ottla.sim.clients.librdkafka_lane import LibrdkafkaLane
from ottla.sim.clients.librdkafka_nodes import LibrdkafkaClient
from ottla.sim.clients.link import Link
from ottla.sim.clients.producer import LINGER, MAX_EPOCH, Producer
from ottla.sim.clients.rules_librdkafka import OrderError, order_error, rule_for
from ottla.sim.clients.worker import MS, Surroundings
from ottla.sim.world.batch import Batch, Op
from ottla.sim.world.outcomes import GivenUp, Outcome

LEAST_PATIENCE: Micros = 100 * MS
"""How long a request may take at least, even if less time is left for its messages."""


@unique
class _State(Enum):
    """rd_kafka_idemp_state_t, as far as it is used without transactions."""

    ASSIGNED = "an id is there, or asked for"
    DRAIN_BUMP = "waits for nothing to be in flight, then bumps the epoch"
    FATAL = "over"


class LibrdkafkaProducer(LibrdkafkaClient, Producer):
    """See the module's docstring."""

    model = "librdkafka"

    def __init__(self, surroundings: Surroundings, number: int, acks: int):
        super().__init__(surroundings, number, acks)
        self._lanes: dict[int, LibrdkafkaLane] = {}
        self._state = _State.ASSIGNED

    # ---- in

    def accept(self, op: Op) -> None:
        """Put an op into the queue of its partition."""
        lane = self._lanes.get(op.partition)
        if lane is None:
            lane = self._lanes[op.partition] = LibrdkafkaLane(op.partition, self.first_seq)
        lane.put(op)
        self.wake()

    def abandon(self) -> Sequence[Batch]:
        """The batches in flight and in the queues."""
        found: list[Batch] = []
        for lane in self._lanes.values():
            found += (*lane.flight, *lane.purge())
        return found

    # ---- the loop

    def work(self) -> None:
        """Expire overdue messages, then send what may be sent."""
        have_id = not self.idempotent or self.have_id()
        expired = 0
        for lane in self._lanes.values():
            expired += self._expire(lane)
        if expired and self.idempotent and have_id:
            self._drain_and_bump()  # expired messages leave a hole in the sequence
        if have_id:
            for lane in self._lanes.values():
                if not lane.empty:
                    self._serve(lane)

    def _expire(self, lane: LibrdkafkaLane) -> int:
        expired = lane.expire(self.kernel.now - self.delivery_timeout)
        for batch in expired:
            self.give_up(batch, GivenUp.EXPIRED)
        if not lane.empty:
            handed = lane.rewound[0].created if lane.rewound else lane.ops[0].handed
            self.alarm(handed + self.delivery_timeout)
        return len(expired)

    def _serve(self, lane: LibrdkafkaLane) -> None:
        """Send what one partition may send (rd_kafka_toppar_producer_serve)."""
        node = self.view.leader(lane.partition)
        if node == 0:
            self.view.refresh()
            return
        if node != lane.leader:
            lane.wait_drain, lane.leader = self.idempotent, node
        if self._may_send(lane):
            link = self.link(node)
            while link is not None and self._has_room(lane, link) and self._due(lane):
                self._send_one(lane, link)

    def _may_send(self, lane: LibrdkafkaLane) -> bool:
        if not self.idempotent:
            return True
        if self._state is not _State.ASSIGNED or (lane.wait_drain and lane.flight):
            return False
        lane.wait_drain = False
        if (lane.pid, lane.epoch) != (self.pid, self.epoch):
            if lane.flight:
                return False
            lane.start_epoch(self.pid, self.epoch)
        return True

    def _has_room(self, lane: LibrdkafkaLane, link: Link) -> bool:
        """Whether one more request may be in flight."""
        if lane.empty or len(link.open) >= self.in_flight:
            return False
        return not self.idempotent or len(lane.flight) < self.in_flight

    def _due(self, lane: LibrdkafkaLane) -> bool:
        """Whether the first batch has waited long enough, for more ops or for its backoff."""
        if lane.rewound:
            first = lane.rewound[0]
            at = first.tried + self.backed_off(max(0, first.retries - 1))
        elif len(lane.ops) >= self.batch_records:
            return True
        else:
            at = lane.ops[0].handed + LINGER
        if self.kernel.now >= at:
            return True
        self.alarm(at)
        return False

    def _send_one(self, lane: LibrdkafkaLane, link: Link) -> None:
        batch = lane.take(self.batch_records)
        if self.idempotent:
            lane.number(batch)
        left = batch.created + self.delivery_timeout - self.kernel.now
        self.send(link, (batch,), min(self.request_timeout, max(LEAST_PATIENCE, left)))

    def link_for_id(self) -> Link | None:
        """A connection to ask for an id on (rd_kafka_idemp_broker_any)."""
        return self.any_up()

    # ---- the epoch

    def _drain_and_bump(self) -> None:
        """Go on in a new epoch when nothing is in flight (rd_kafka_idemp_drain_epoch_bump)."""
        if self._state is not _State.FATAL:
            self._state = _State.DRAIN_BUMP
            self._bump_if_drained()

    def _bump_if_drained(self) -> None:
        if self._state is _State.DRAIN_BUMP and not any(
            lane.flight for lane in self._lanes.values()
        ):
            self.epoch = (self.epoch + 1) & MAX_EPOCH  # it wraps, as rd_kafka_pid_bump does
            self._state = _State.ASSIGNED
            self.wake()

    def _fatal(self) -> None:
        """It cannot know any more what is stored: nothing that is queued will be sent."""
        self.failed = True
        self._state = _State.FATAL
        for lane in self._lanes.values():
            for batch in lane.purge():
                self.give_up(batch, GivenUp.FATAL)

    # ---- outcomes

    def came(
        self, batch: Batch, outcome: Outcome, part: PartitionProduced | None, node: NodeId
    ) -> None:
        """rd_kafka_msgbatch_handle_Produce_result."""
        lane = self._lanes[batch.partition]
        lane.flight.remove(batch)
        if outcome is ErrorCode.NONE:
            self._succeeded(lane, batch, part, node)
        elif self.idempotent and outcome is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            self._out_of_order(lane, batch, outcome)
        elif self.idempotent and outcome is ErrorCode.UNKNOWN_PRODUCER_ID:
            self._unknown(lane, batch, outcome)
        else:
            self._went_wrong(lane, batch, outcome)
        self._bump_if_drained()

    def _succeeded(
        self, lane: LibrdkafkaLane, batch: Batch, part: PartitionProduced | None, node: NodeId
    ) -> None:
        if self.idempotent:
            proven, well = lane.acknowledged(batch)
            for each in proven:
                self.succeed(each, NO_OFFSET, node)
            if not well:
                self._fatal()
        self.succeed(batch, NO_OFFSET if part is None else part.base_offset, node)

    def _out_of_order(self, lane: LibrdkafkaLane, batch: Batch, outcome: Outcome) -> None:
        error = order_error(batch.seq, lane.next_ack)
        if error is OrderError.BEHIND:
            lane.refused(batch)
            self._retry(lane, batch, counts=False)
            self._drain_and_bump()
            return
        if error is OrderError.HEAD_OF_LINE:
            lane.refused(batch)
        self._fatal()
        self.give_up(batch, outcome)

    def _unknown(self, lane: LibrdkafkaLane, batch: Batch, outcome: Outcome) -> None:
        """The broker forgot the producer. Only a batch that was never sent before, behind none that
        is open, is sure not to be stored twice or out of order; else that is fatal."""
        safe = not batch.retries and batch.seq == lane.next_err
        lane.refused(batch)
        if safe:
            self._retry(lane, batch, counts=False)
            self._drain_and_bump()
        else:
            self._fatal()
            self.give_up(batch, outcome)

    def _went_wrong(self, lane: LibrdkafkaLane, batch: Batch, outcome: Outcome) -> None:
        rule = rule_for(outcome)
        if self.idempotent:
            lane.refused(batch)
        if rule.refresh:
            self.view.refresh()
        if rule.retry:
            self._retry(lane, batch, counts=rule.counts)
            return
        self.give_up(batch, outcome)
        if self.idempotent:
            self._drain_and_bump()

    def _retry(self, lane: LibrdkafkaLane, batch: Batch, *, counts: bool) -> None:
        """Put it back into the queue, to be sent again when everything in flight is answered."""
        if self.failed:
            self.give_up(batch, GivenUp.FATAL)
            return
        batch.attempts += 1
        batch.retries += counts
        batch.tried = self.kernel.now
        lane.wait_drain = self.idempotent
        lane.rewind(batch)
