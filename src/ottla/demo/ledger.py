"""`Ledger`: the records that one producer sent, and the answers that it got.

Values are unique and name their place: producer, partition, number. Lists only grow, and one thread
writes each of them, so that other threads may count them meanwhile.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.log.types import Offset

VALUE_BYTES = 100


class Ack(NamedTuple):
    """A record that the client reported as stored; `offset` is None with acks=0."""

    value: bytes
    offset: Offset | None


class Failure(NamedTuple):
    """A record that the client reported as not stored, or as uncertain."""

    value: bytes
    reason: str


def make_value(producer: str, partition: int, number: int) -> bytes:
    """A unique value of a fixed size."""
    return b"%s/%d/%d " % (producer.encode(), partition, number) + b"." * (
        VALUE_BYTES - len(producer) - len(str(number)) - 4
    )


def place_of(value: bytes) -> str:
    """`producer/partition/number` of a value, as a text for people."""
    return value.split(b" ", 1)[0].decode(errors="replace")


class Ledger:
    """Sent, acknowledged and failed records of one producer, per partition."""

    def __init__(self, producer: str, partitions: int):
        self.producer = producer
        self.sent: list[list[bytes]] = [[] for _ in range(partitions)]
        """Values in the order of sending."""
        self.acked: list[list[Ack]] = [[] for _ in range(partitions)]
        """Acknowledgements in the order in which the client reported them."""
        self.failed: list[Failure] = []
        self.problems: list[str] = []
        """Errors of the client itself: a fatal one, or records that it never reported on."""

    def next_value(self, partition: int) -> bytes:
        """Make the next value and note it as sent."""
        sent = self.sent[partition]
        value = make_value(self.producer, partition, len(sent))
        sent.append(value)
        return value

    @property
    def sent_count(self) -> int:
        """Records sent so far."""
        return sum(map(len, self.sent))

    @property
    def acked_count(self) -> int:
        """Records acknowledged so far."""
        return sum(map(len, self.acked))

    @property
    def open_counts(self) -> list[int]:
        """Records sent and not acknowledged, one number for each partition."""
        return [len(sent) - len(acked) for sent, acked in zip(self.sent, self.acked, strict=True)]
