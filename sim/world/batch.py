"""Records on their way through a producer: ops, and the batches that carry them.

An *op* is one record, from when a producer is handed it until its outcome is known. Its number is
the value that the record holds, so that every copy of it is recognised. A batch keeps its ops
together, unless it is split because it is too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.idempotency.sequence import MAX_SEQUENCE
from ottla.log.build import NewRecord, build_batch
from ottla.log.types import NO_PRODUCER_ID, Millis, ProducerEpoch, ProducerId, Term
from ottla.log.types import Sequence as SequenceNumber
from ottla.raft.types import Micros
from ottla.sim.world.outcomes import Outcome, may_be_stored

VALUE_BYTES = 8
NO_SEQUENCE: SequenceNumber = -1
FIRST_TIME: Millis = 1_000_000
"""About the time of the first record, in ms."""


class Op(NamedTuple):
    """One record that was handed to a producer."""

    number: int
    partition: int
    handed: Micros
    """When it was handed in."""


def payload_of(value: int, size: int) -> bytes:
    """The bytes of a record that holds `value`: `size` bytes."""
    return value.to_bytes(VALUE_BYTES, "big").ljust(size, b"\0")


def time_of(value: int) -> Millis:
    """The timestamp of the record that holds `value`. Timestamps grow in the long run, but a record
    is often earlier than those just before it, so that requests by time get answers of all
    kinds."""
    return FIRST_TIME + 10 * value + 3 * (value * 37 % 101 - 50)


def record_of(value: int, size: int) -> NewRecord:
    """The record that holds `value`, in `size` bytes."""
    return NewRecord(payload_of(value, size), timestamp=time_of(value))


def value_of(payload: bytes) -> int:
    """The value that a record holds."""
    return int.from_bytes(payload[:VALUE_BYTES], "big")


def encode(
    values: Sequence[int],
    size: int,
    *,
    pid: ProducerId,
    epoch: ProducerEpoch,
    seq: SequenceNumber,
    time: Millis | None = None,
) -> bytes:
    """The bytes of a batch of the records that hold these values, each in `size` bytes, as a
    producer of that id sends it. `time`: of every record, instead of its own."""
    records = [record_of(each, size) for each in values]
    if time is not None:
        records = [each._replace(timestamp=time) for each in records]
    return build_batch(
        records,
        producer_id=pid,
        producer_epoch=epoch,
        base_sequence=seq,
        base_timestamp=time_of(values[0]) if time is None else time,
    )


class Batch:
    """Ops that are sent together. `place` orders the batches of one partition."""

    __slots__ = (
        "_data",
        "_suspect",
        "_unanswered",
        "attempts",
        "created",
        "done",
        "epoch",
        "leader_attempts",
        "leader_epoch",
        "ops",
        "partition",
        "pid",
        "place",
        "reset",
        "retries",
        "seq",
        "tried",
    )

    def __init__(self, partition: int, place: tuple[int, ...], created: Micros):
        self.partition = partition
        self.place = place
        self.created = created
        """When its first op was handed in: its delivery timeout is counted from here."""
        self.ops: list[Op] = []
        self.attempts = 0
        """How often it was queued again after a failed attempt."""
        self.retries = 0
        """librdkafka: how many of its attempts count as retries."""
        self.tried: Micros = created
        """When it was last queued."""
        self.pid: ProducerId = NO_PRODUCER_ID
        self.epoch: ProducerEpoch = -1
        self.seq: SequenceNumber = NO_SEQUENCE
        """Sequence of its first record, once it has one."""
        self.reset = False
        """Whether its sequence is no longer the one it was first sent with."""
        self._suspect = False
        self._unanswered = 0
        self.done = False
        """Its ops have their outcome: later answers change nothing for them."""
        self.leader_epoch: Term = -1
        self.leader_attempts = -1
        """The value of `attempts` when its leader last changed (KIP-951)."""
        self._data: bytes | None = None

    @property
    def has_seq(self) -> bool:
        """Whether it has sequences; never for a plain producer."""
        return self.seq >= 0

    @property
    def renumbered(self) -> bool:
        """Whether its sequences are not those of its last attempt."""
        return self._data is None

    def numbers(self) -> dict[str, int]:
        """The columns of the history that say which sequences it holds."""
        if self.seq < 0:
            return {}
        return {"pid": self.pid, "epoch": self.epoch, "seq": self.seq, "seq_last": self.last_seq}

    @property
    def last_seq(self) -> SequenceNumber:
        """Sequence of its last record."""
        return self.seq_of(len(self.ops) - 1)

    def seq_of(self, place: int) -> SequenceNumber:
        """Sequence of the record at `place`, from 0."""
        return (self.seq + place) & MAX_SEQUENCE

    def number(self, pid: ProducerId, epoch: ProducerEpoch, seq: SequenceNumber) -> None:
        """Give it sequences, or other ones."""
        self.pid, self.epoch, self.seq = pid, epoch, seq & MAX_SEQUENCE
        self._data = None

    def data(self, record_bytes: int) -> bytes:
        """The bytes that are sent: the same bytes as long as its sequences are the same."""
        if self._data is None:
            numbers = [op.number for op in self.ops]
            self._data = encode(numbers, record_bytes, pid=self.pid, epoch=self.epoch, seq=self.seq)
        return self._data

    # ---- is it in the log?

    @property
    def may_be_stored(self) -> bool:
        """Whether any attempt may be in the log, whatever answers still come."""
        return self._suspect or self._unanswered > 0

    def sent(self) -> None:
        """An attempt was sent to a node."""
        self._unanswered += 1

    def came(self, outcome: Outcome) -> None:
        """An attempt ended with this outcome."""
        self._unanswered -= 1
        if may_be_stored(outcome):
            self._suspect = True

    def part(self, start: int, end: int, place: int) -> Batch:
        """Some of its records as a new batch, with the same sequences."""
        part = Batch(self.partition, (*self.place, place), self.created)
        part.ops = self.ops[start:end]
        part._suspect = self._suspect
        if self.has_seq:
            part.number(self.pid, self.epoch, self.seq_of(start))
        return part
