"""Records on their way through a producer: ops, and the batches that carry them.

An *op* is one record from when it is handed to a producer until its outcome is known; its number is
the value that the record holds, so that a copy is recognised whatever it was sent as. A batch keeps
its ops together for good, unless it is split for being too large.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.idempotency.sequence import MAX_SEQUENCE
from ottla.log.build import NewRecord, build_batch
from ottla.log.types import NO_PRODUCER_ID, Millis, ProducerEpoch, ProducerId, Sequence, Term
from ottla.raft.types import Micros
from ottla.sim.world.outcomes import Outcome, may_be_stored

VALUE_BYTES = 8
NO_SEQUENCE: Sequence = -1
FIRST_TIME: Millis = 1_000_000
"""About the time of the first record."""


class Op(NamedTuple):
    """One record that a producer was handed."""

    number: int
    partition: int
    handed: Micros
    """When."""


def payload_of(value: int, size: int) -> bytes:
    """The bytes of a record that holds `value`."""
    return value.to_bytes(VALUE_BYTES, "big").ljust(size, b"\0")


def time_of(value: int) -> Millis:
    """The time of the record that holds `value`: later ones are later in the long run, and often
    earlier than those just before them, so that questions by time have answers of all kinds."""
    return FIRST_TIME + 10 * value + 3 * (value * 37 % 101 - 50)


def record_of(value: int, size: int) -> NewRecord:
    """The record that holds `value`, in `size` bytes."""
    return NewRecord(payload_of(value, size), timestamp=time_of(value))


def value_of(payload: bytes) -> int:
    """What a record holds."""
    return int.from_bytes(payload[:VALUE_BYTES], "big")


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
        """When its first op was handed in: its delivery timeout counts from here."""
        self.ops: list[Op] = []
        self.attempts = 0
        """How often it was given back to be sent again."""
        self.retries = 0
        """librdkafka: how many of its retries count."""
        self.tried: Micros = created
        """When it was last given back."""
        self.pid: ProducerId = NO_PRODUCER_ID
        self.epoch: ProducerEpoch = -1
        self.seq: Sequence = NO_SEQUENCE
        """Sequence of its first record, once it has one."""
        self.reset = False
        """Its sequence is not the one it was first sent with."""
        self._suspect = False
        self._unanswered = 0
        self.done = False
        """Its ops have their outcome; answers that still come change nothing for them."""
        self.leader_epoch: Term = -1
        self.leader_attempts = -1
        """How often it had been tried when its leader last changed (KIP-951)."""
        self._data: bytes | None = None

    @property
    def has_seq(self) -> bool:
        """Whether it has a place in its producer's sequence; never for a plain producer."""
        return self.seq >= 0

    def numbers(self) -> dict[str, int]:
        """The history's columns that say which sequences it holds."""
        if self.seq < 0:
            return {}
        return {"pid": self.pid, "epoch": self.epoch, "seq": self.seq, "seq_last": self.last_seq}

    @property
    def last_seq(self) -> Sequence:
        """Sequence of its last record."""
        return self.seq_of(len(self.ops) - 1)

    def seq_of(self, place: int) -> Sequence:
        """Sequence of one of its records."""
        return (self.seq + place) & MAX_SEQUENCE

    def number(self, pid: ProducerId, epoch: ProducerEpoch, seq: Sequence) -> None:
        """Give it a place in its producer's sequence, or another one."""
        self.pid, self.epoch, self.seq = pid, epoch, seq & MAX_SEQUENCE
        self._data = None

    def data(self, record_bytes: int) -> bytes:
        """What is sent: the same bytes as long as its numbers are the same."""
        if self._data is None:
            self._data = build_batch(
                [record_of(op.number, record_bytes) for op in self.ops],
                producer_id=self.pid,
                producer_epoch=self.epoch,
                base_sequence=self.seq,
                base_timestamp=time_of(self.ops[0].number),
            )
        return self._data

    # ---- is it in the log?

    @property
    def may_be_stored(self) -> bool:
        """Whether anything of it that was sent may be in the log, whatever comes later."""
        return self._suspect or self._unanswered > 0

    def sent(self) -> None:
        """It has left for a node."""
        self._unanswered += 1

    def came(self, outcome: Outcome) -> None:
        """What came of sending it once."""
        self._unanswered -= 1
        if may_be_stored(outcome):
            self._suspect = True

    def part(self, start: int, end: int, place: int) -> Batch:
        """Some of its records as a batch of their own, with the same sequences."""
        part = Batch(self.partition, (*self.place, place), self.created)
        part.ops = self.ops[start:end]
        part._suspect = self._suspect
        if self.has_seq:
            part.number(self.pid, self.epoch, self.seq_of(start))
        return part
