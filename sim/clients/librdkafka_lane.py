"""One partition inside librdkafka's producer (a *toppar* there): messages and their ids.

Each message has an id, counted from 1 in the order in which they were handed in. A sequence is the
distance from the first id of the epoch. So a batch that comes back keeps its messages and, within
an epoch, its sequences (its *exact range*). After a bump everything gets new sequences, starting
with what is first in the queue. Here `Batch.place` is the id of a batch's first message.

| of an epoch | meaning |
|---|---|
| `next_ack` | the sequence that should be acknowledged next |
| `next_err` | the sequence that should be refused next, if an earlier one was refused |
| `acked` | highest message id that was acknowledged, over all epochs |

Source: rd_kafka_toppar_t.rktp_eos, rd_kafka_handle_idempotent_Produce_success.
"""

from __future__ import annotations

from bisect import insort
from collections import deque

from ottla.idempotency.sequence import MAX_SEQUENCE
from ottla.log.types import NO_PRODUCER_ID, ProducerEpoch, ProducerId, Sequence
from ottla.raft.types import Micros, NodeId
from ottla.sim.world.batch import Batch, Op


class LibrdkafkaLane:
    """See the module's docstring."""

    __slots__ = (
        "_first_seq",
        "_last_id",
        "acked",
        "base_id",
        "epoch",
        "flight",
        "leader",
        "next_ack",
        "next_err",
        "ops",
        "partition",
        "pid",
        "rewound",
        "wait_drain",
    )

    def __init__(self, partition: int, first_seq: Sequence = 0):
        self.partition = partition
        self._first_seq = first_seq
        """Sequence with which the first epoch begins; every later one begins with 0."""
        self.ops: deque[Op] = deque()
        """Ops that were never sent, in order; the last one has message id `_last_id`."""
        self.rewound: list[Batch] = []
        """Batches to be sent again, by message id; they precede all of `ops`."""
        self.flight: list[Batch] = []
        """Batches that are sent and not answered."""
        self.leader: NodeId = 0
        """The node that it produces to."""
        self.wait_drain = False
        """Whether nothing is sent until nothing is in flight."""
        self.pid: ProducerId = NO_PRODUCER_ID
        self.epoch: ProducerEpoch = -1
        self.base_id = 1
        """The message id that has sequence 0 in this epoch."""
        self.next_ack: Sequence = 0
        self.next_err: Sequence = 0
        self.acked = 0
        self._last_id = 0

    def put(self, op: Op) -> None:
        """Take one more op."""
        self._last_id += 1
        self.ops.append(op)

    @property
    def first_id(self) -> int:
        """Message id of the first queued message; if none is queued, of the next to come."""
        if self.rewound:
            return self.rewound[0].place[0]
        return self._last_id + 1 - len(self.ops)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to send."""
        return not self.rewound and not self.ops

    def purge(self) -> list[Batch]:
        """Take everything queued out; ops that were never sent form one batch."""
        found, self.rewound = self.rewound, []
        if self.ops:
            found.append(self._form(len(self.ops)))
        return found

    # ---- sent

    def take(self, batch_records: int) -> Batch:
        """The next batch to send: one that came back, unchanged, or a new one of up to
        `batch_records` ops."""
        batch = self.rewound.pop(0) if self.rewound else self._form(batch_records)
        self.flight.append(batch)
        return batch

    def _form(self, batch_records: int) -> Batch:
        batch = Batch(self.partition, (self.first_id,), self.ops[0].handed)
        for _ in range(min(batch_records, len(self.ops))):
            batch.ops.append(self.ops.popleft())
        return batch

    def number(self, batch: Batch) -> None:
        """Give a batch its sequences in the present epoch."""
        batch.number(self.pid, self.epoch, batch.place[0] - self.base_id)

    def start_epoch(self, pid: ProducerId, epoch: ProducerEpoch) -> None:
        """Give new sequences to everything queued (rd_kafka_toppar_pid_change)."""
        assert not self.flight, f"{len(self.flight)} batches in flight while the epoch changes"
        begins, self._first_seq = self._first_seq, 0
        self.pid, self.epoch, self.base_id = pid, epoch, self.first_id - begins
        self.next_ack = self.next_err = begins

    # ---- answered

    def rewind(self, batch: Batch) -> None:
        """The batch comes back, to be sent again at its place."""
        insort(self.rewound, batch, key=lambda each: each.place)

    def acknowledged(self, batch: Batch) -> tuple[list[Batch], bool]:
        """The batch is stored. Returns the earlier batches that are therefore stored too, and
        whether all is well. A success where a refusal was expected means that the order is lost;
        that is fatal."""
        first = batch.place[0]
        last = first + len(batch.ops) - 1
        behind = (batch.seq + len(batch.ops)) & MAX_SEQUENCE
        proven: list[Batch] = []
        if self.acked < first - 1:
            while self.rewound and self.rewound[0].place[0] <= last:
                proven.append(self.rewound.pop(0))
        elif self.next_ack != batch.seq == self.next_err:
            self.next_err = behind
            self.acked = max(self.acked, last)
            return [], False
        if self.next_err == self.next_ack:
            self.next_err = behind
        self.next_ack = behind
        self.acked = max(self.acked, last)
        return proven, True

    def refused(self, batch: Batch) -> None:
        """The batch is not stored, or that is unknown: the batch after it should be refused
        next."""
        self.next_err = (batch.seq + len(batch.ops)) & MAX_SEQUENCE

    def expire(self, before: Micros) -> list[Batch]:
        """Take out what was handed in at `before` or earlier and is not in flight."""
        expired: list[Batch] = []
        while self.rewound and self.rewound[0].created <= before:
            expired.append(self.rewound.pop(0))
        if not self.rewound:
            count = 0
            while count < len(self.ops) and self.ops[count].handed <= before:
                count += 1
            if count:
                expired.append(self._form(count))
        return expired
