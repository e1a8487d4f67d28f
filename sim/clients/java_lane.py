"""One partition inside the Java producer: its queue, its batches in flight, its sequence.

In Java, a batch is *in flight* if it has a sequence and no outcome: it is in the network, or back
in the queue to be sent again. These batches stay in the order of their sequences, whatever order
answers come in. `network` are those that wait for an answer now.

Source: RecordAccumulator (queue), TxnPartitionEntry and TransactionManager (sequences). Two things
differ from Java: comparisons of sequences wrap, and there is `place`.
"""

from __future__ import annotations

from collections import deque

from ottla.broker.errors import ErrorCode
from ottla.idempotency.sequence import MAX_SEQUENCE
from ottla.log.types import (
    NO_OFFSET,
    NO_PRODUCER_ID,
    Offset,
    ProducerEpoch,
    ProducerId,
    Sequence,
)
from ottla.raft.types import Micros
from ottla.sim.clients.rules_java import rule_for
from ottla.sim.world.batch import Batch, Op
from ottla.sim.world.outcomes import Outcome

HALF = 1 << 30


class JavaLane:
    """See the module's docstring."""

    __slots__ = (
        "_first_seq",
        "_places",
        "bump_wanted",
        "epoch",
        "in_flight",
        "last_acked",
        "network",
        "next_seq",
        "partition",
        "pid",
        "queue",
        "unresolved",
    )

    def __init__(self, partition: int, first_seq: Sequence = 0):
        self.partition = partition
        self._first_seq = first_seq
        """Sequence with which the first epoch begins; every later one begins with 0."""
        self.queue: deque[Batch] = deque()
        self.in_flight: list[Batch] = []
        self.network: list[Batch] = []
        self.pid: ProducerId = NO_PRODUCER_ID
        self.epoch: ProducerEpoch = -1
        self.next_seq: Sequence = 0
        self.last_acked: Sequence = -1
        """Sequence of the last record acknowledged in this epoch; -1: none."""
        self.unresolved: Sequence | None = None
        """The sequence after a batch that expired without a known outcome; None: no such batch."""
        self.bump_wanted = False
        self._places = 0

    def put(self, op: Op, batch_records: int) -> Batch:
        """Take one more op, into the open batch at the end or a new one; returns that batch."""
        last = self.queue[-1] if self.queue else None
        if last is None or last.has_seq or last.attempts or len(last.ops) >= batch_records:
            self._places += 1
            last = Batch(self.partition, (self._places,), op.handed)
            self.queue.append(last)
        last.ops.append(op)
        return last

    # ---- sequences

    def drain(self, pid: ProducerId, epoch: ProducerEpoch) -> Batch:
        """Take the first batch out of the queue and give it its sequence."""
        batch = self.queue.popleft()
        if not batch.has_seq:
            if (pid, epoch) != (self.pid, self.epoch) and not self.in_flight:
                self.start_over(pid, epoch)
            batch.number(pid, epoch, self.next_seq)
            self.next_seq = (self.next_seq + len(batch.ops)) & MAX_SEQUENCE
            self.in_flight.append(batch)
        return batch

    def must_wait(self, pid: ProducerId, epoch: ProducerEpoch) -> bool:
        """Whether the first batch may not be sent yet, for the sake of order
        (RecordAccumulator.shouldStopDrainBatchesForPartition)."""
        first = self.queue[0]
        if first.has_seq:
            # It is a retry: only the lowest sequence in flight may be sent.
            return bool(self.in_flight) and self.in_flight[0] is not first
        if self.in_flight and (pid, epoch) != (self.pid, self.epoch):
            return True  # else the new epoch could be stored before the old one is finished
        return self.unresolved is not None

    def start_over(self, pid: ProducerId, epoch: ProducerEpoch) -> None:
        """A new id or epoch: give new sequences, from 0, to everything in flight."""
        self.pid, self.epoch = pid, epoch
        self.next_seq, self._first_seq = self._first_seq, 0
        for batch in self.in_flight:
            batch.number(pid, epoch, self.next_seq)
            batch.reset = True
            self.next_seq = (self.next_seq + len(batch.ops)) & MAX_SEQUENCE
        self.last_acked = -1
        self.bump_wanted = False
        self.unresolved = None

    def is_next(self, seq: Sequence) -> bool:
        """Whether `seq` follows the last acknowledged sequence."""
        expected = 0 if self.last_acked < 0 else (self.last_acked + 1) & MAX_SEQUENCE
        return seq == expected

    # ---- outcomes

    def acknowledged(self, batch: Batch) -> None:
        """The batch is stored."""
        last = batch.last_seq
        if self.last_acked < 0 or 0 < ((last - self.last_acked) & MAX_SEQUENCE) < HALF:
            self.last_acked = last
        self.forget(batch)

    def forget(self, batch: Batch) -> None:
        """The batch is no longer in flight."""
        if batch in self.in_flight:
            self.in_flight.remove(batch)

    def may_retry(self, batch: Batch, outcome: Outcome, log_start: Offset = NO_OFFSET) -> bool:
        """TransactionManager.canRetry, for a producer without transactions. `log_start`: as the
        answer says."""
        if outcome is ErrorCode.UNKNOWN_PRODUCER_ID:
            # A broker that does not know where its log starts may not know the producer yet.
            self.bump_wanted |= log_start != NO_OFFSET and not batch.renumbered
            return True
        if outcome is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return rule_for(outcome).retry
        if self.unresolved is None:
            if not batch.reset and self.is_next(batch.seq):
                self.bump_wanted = True  # nothing before it can be missing
        elif batch.seq == self.unresolved:
            self.bump_wanted = True
        return True

    def expired(self, batch: Batch) -> None:
        """The batch expired. If it was sent before, it may leave a hole."""
        self.forget(batch)
        if batch.attempts:
            behind = (batch.last_seq + 1) & MAX_SEQUENCE
            if self.unresolved is None or ((behind - self.unresolved) & MAX_SEQUENCE) < HALF:
                self.unresolved = behind

    def resolve(self) -> None:
        """When nothing is in flight: the hole is filled, or a new epoch is needed
        (TransactionManager.maybeResolveSequences)."""
        if self.unresolved is not None and not self.in_flight:
            if not self.is_next(self.next_seq):
                self.bump_wanted = True
            self.unresolved = None

    # ---- the queue

    def give_back(self, batch: Batch, now: Micros, *, in_order: bool) -> None:
        """Queue a batch to be sent again: at its place in the sequence (`in_order`), or at the
        front."""
        batch.attempts += 1
        batch.tried = now
        self.insert(batch, in_order=in_order)

    def insert(self, batch: Batch, *, in_order: bool) -> None:
        """Queue a batch before those that follow it."""
        before = 0
        if in_order:
            for each in self.queue:
                if not each.has_seq or each.place > batch.place:
                    break
                before += 1
        self.queue.insert(before, batch)

    def split(self, batch: Batch, *, in_order: bool) -> None:
        """Replace a batch that was too large by its two halves, which count as never sent
        (RecordAccumulator.splitAndReenqueue)."""
        middle = (len(batch.ops) + 1) // 2
        at = self.in_flight.index(batch) if batch in self.in_flight else -1
        halves = [batch.part(0, middle, 0), batch.part(middle, len(batch.ops), 1)]
        if at >= 0:
            self.in_flight[at : at + 1] = halves
        for half in reversed(halves):
            self.insert(half, in_order=in_order)
        batch.done = True
