"""The Java producer: Sender, RecordAccumulator and TransactionManager without transactions.

Its rules (KIP-98, KIP-360, KIP-480, KIP-951; K-CLIENTS):

* There is a queue of batches per partition. A request takes the first batch of each partition that
  its node leads, as long as the connection has less than `in_flight` requests open.
* A batch gets its sequence when it first leaves the queue and keeps it over retries. A batch that
  comes back goes to its place in the sequence. Only the lowest one in flight may be sent again, so
  that after an error a partition goes on one batch at a time.
* A batch that expires after it was sent leaves a hole: nothing new is sent until nothing is in
  flight. Then, if the hole was not filled, the producer bumps the epoch by itself, and that
  partition's batches get new sequences. Other partitions follow when they are empty.
* Without idempotence a batch that comes back goes to the front. With several in flight, two that
  come back change places. Plain producers do that.

`work` is the Sender's loop body (runOnce), run until there is nothing left to send.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.answers import PartitionProduced
from ottla.log.types import NO_OFFSET, NO_PRODUCER_ID
from ottla.raft.types import Micros, NodeId
from ottla.sim.clients.java_lane import JavaLane
from ottla.sim.clients.link import Link
from ottla.sim.clients.producer import LINGER, MAX_EPOCH, Producer
from ottla.sim.clients.rules_java import rule_for
from ottla.sim.clients.worker import NEVER, Surroundings
from ottla.sim.world.batch import Batch, Op
from ottla.sim.world.outcomes import GivenUp, Outcome


class JavaProducer(Producer):
    """See the module's docstring."""

    model = "java"

    def __init__(self, surroundings: Surroundings, number: int, acks: int):
        super().__init__(surroundings, number, acks)
        self._lanes: dict[int, JavaLane] = {}
        self._first = 0
        """The partition that a request looks at first: they take turns."""
        self._one_at_a_time = self.in_flight == 1

    # ---- in

    def accept(self, op: Op) -> None:
        """Put an op into the open batch of its partition, or a new one."""
        lane = self._lanes.get(op.partition)
        if lane is None:
            lane = self._lanes[op.partition] = JavaLane(op.partition, self.first_seq)
        lane.put(op, self.batch_records)
        self.wake()

    def abandon(self) -> Sequence[Batch]:
        """The batches in the network and in the queues."""
        found: list[Batch] = []
        for lane in self._lanes.values():
            found += (*lane.network, *lane.queue)
            lane.network.clear()
            lane.queue.clear()
        return found

    # ---- the loop

    def work(self) -> None:
        """Resolve, bump, get an id, expire, send."""
        if self.idempotent:
            for lane in self._lanes.values():
                lane.resolve()
            if any(each.bump_wanted for each in self._lanes.values()):
                self._bump()
            if not self.have_id():
                self._expire()
                return
        while self._send_round():
            pass
        self._expire()

    def _bump(self) -> None:
        """Start the next epoch, with new sequences for the partitions that asked for it."""
        if self.pid == NO_PRODUCER_ID:
            return
        if self.epoch == MAX_EPOCH:
            self.pid = NO_PRODUCER_ID  # the next id gives the lanes new sequences
            return
        self.epoch += 1
        for lane in self._lanes.values():
            if lane.bump_wanted:
                lane.start_over(self.pid, self.epoch)

    def _send_round(self) -> bool:
        """Send one request to each node that is ready for one. False: none was sent."""
        lanes: dict[NodeId, list[JavaLane]] = {}
        ready: dict[NodeId, None] = {}
        for lane in self._turned():
            if lane.queue:
                node = self.view.leader(lane.partition)
                if node == 0:
                    self.view.refresh()
                    continue
                lanes.setdefault(node, []).append(lane)
                if self._sendable(lane):
                    ready[node] = None
        sent = False
        for node in ready:
            link = self.link(node)
            if link is not None and len(link.open) < self.in_flight:
                sent = self._drain(link, lanes[node]) or sent
        self._first += 1
        return sent

    def _turned(self) -> list[JavaLane]:
        lanes = list(self._lanes.values())
        start = self._first % len(lanes) if lanes else 0
        return lanes[start:] + lanes[:start]

    def _muted(self, lane: JavaLane) -> bool:
        """With `in_flight` 1, a partition has one batch in the network, wherever its leader
        goes."""
        return self._one_at_a_time and bool(lane.network)

    def _sendable(self, lane: JavaLane) -> bool:
        """Whether there is a reason to send now (RecordAccumulator.batchReady)."""
        if self._muted(lane):
            return False
        first = lane.queue[0]
        if self._backs_off(lane, first):
            return False
        if first.attempts or len(lane.queue) > 1 or len(first.ops) >= self.batch_records:
            return True
        due = first.created + LINGER
        if self.kernel.now >= due:
            return True
        self.alarm(due)
        return False

    def _backs_off(self, lane: JavaLane, batch: Batch) -> bool:
        """Whether its backoff is not over; a new leader is tried at once (KIP-951)."""
        epoch = self.view.epoch(lane.partition)
        if epoch > batch.leader_epoch:
            batch.leader_epoch, batch.leader_attempts = epoch, batch.attempts
        if not batch.attempts or batch.leader_attempts == batch.attempts:
            return False
        until = batch.tried + self.backed_off(batch.attempts - 1)
        if self.kernel.now >= until:
            return False
        self.alarm(until)
        return True

    def _drain(self, link: Link, lanes: list[JavaLane]) -> bool:
        """Send one request with the first batch of each partition that may be sent."""
        taken: list[Batch] = []
        for lane in lanes:
            if self._muted(lane) or self._backs_off(lane, lane.queue[0]):
                continue
            if not self.idempotent:
                batch = lane.queue.popleft()
            elif lane.must_wait(self.pid, self.epoch):
                continue
            else:
                batch = lane.drain(self.pid, self.epoch)
            lane.network.append(batch)
            taken.append(batch)
        if not taken:
            return False
        self.send(link, taken)
        return True

    # ---- time runs out

    def _expire(self) -> None:
        """End batches that were not acknowledged within the delivery timeout, first those in the
        network."""
        now, soonest = self.kernel.now, NEVER
        for lane in self._lanes.values():
            for batch in self._overdue(lane.network, now):
                self._expired(lane, batch)
            while lane.queue and lane.queue[0].created + self.delivery_timeout <= now:
                self._expired(lane, lane.queue.popleft())
            for line in (lane.network, lane.queue):
                if line:
                    soonest = min(soonest, line[0].created + self.delivery_timeout)
        if soonest < NEVER:
            self.alarm(soonest)

    def _overdue(self, network: list[Batch], now: Micros) -> Iterator[Batch]:
        while network and network[0].created + self.delivery_timeout <= now:
            yield network.pop(0)

    def _expired(self, lane: JavaLane, batch: Batch) -> None:
        self.give_up(batch, GivenUp.EXPIRED)
        if self.idempotent and batch.has_seq:
            lane.expired(batch)
        self.wake()

    # ---- outcomes

    def came(
        self, batch: Batch, outcome: Outcome, part: PartitionProduced | None, node: NodeId
    ) -> None:
        """Sender.completeBatch."""
        lane = self._lanes[batch.partition]
        if batch in lane.network:
            lane.network.remove(batch)
        if outcome is ErrorCode.NONE:
            self._succeeded(lane, batch, part, node)
        elif outcome is ErrorCode.MESSAGE_TOO_LARGE and len(batch.ops) > 1 and not batch.done:
            lane.split(batch, in_order=self.idempotent)
        else:
            self._went_wrong(lane, batch, outcome, part)
            if rule_for(outcome).refresh:
                self.view.refresh()
            if outcome is ErrorCode.NOT_LEADER_OR_FOLLOWER and part is not None:
                self.view.hint(lane.partition, part.leader, part.leader_epoch)

    def _succeeded(
        self, lane: JavaLane, batch: Batch, part: PartitionProduced | None, node: NodeId
    ) -> None:
        if self.idempotent:
            lane.acknowledged(batch)
        if not batch.done:
            self.succeed(batch, NO_OFFSET if part is None else part.base_offset, node)

    def _went_wrong(
        self, lane: JavaLane, batch: Batch, outcome: Outcome, part: PartitionProduced | None
    ) -> None:
        if batch.done:
            return  # expired meanwhile
        overdue = batch.created + self.delivery_timeout <= self.kernel.now
        if self.idempotent:
            start = NO_OFFSET if part is None else part.log_start_offset
            retry = not overdue and lane.may_retry(batch, outcome, start)
        else:
            retry = not overdue and rule_for(outcome).retry
        if retry:
            lane.give_back(batch, self.kernel.now, in_order=self.idempotent)
            return
        self.give_up(batch, outcome)
        if self.idempotent:
            # Retries are not counted, so none is ever exhausted: the sequence is free again.
            lane.forget(batch)
            lane.bump_wanted = True
