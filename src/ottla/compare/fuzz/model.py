"""What the generator knows of a log: enough to stand near the borders that its rules are about.

The model follows Kafka's decision table (K-RULES) from the requests alone, never from an answer, so
both brokers get the same requests. If it is wrong about a request, the next ones are merely less
interesting.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

ProducerId: TypeAlias = int | str
"""A number, or a reference to the answer that gave it: `$id.producer_id`."""
LAST_SEQUENCE = (1 << 31) - 1
WINDOW = 5
"""Batches of a producer that Kafka knows again."""
REMEMBERED = 7
"""Batches that the model remembers: two more, which are just too old."""


def after(sequence: int, records: int) -> int:
    """The sequence that is `records` behind another one; 2147483647 is followed by 0."""
    return (sequence + records) % (LAST_SEQUENCE + 1)


class Sent(NamedTuple):
    """A batch of a producer that the log has stored."""

    sequence: int
    records: int

    @property
    def next(self) -> int:
        """The sequence behind it."""
        return after(self.sequence, self.records)


@dataclass
class ProducerModel:
    """A producer, as one partition knows it."""

    epoch: int
    sent: list[Sent]
    """Its last batches in this epoch, the newest last; there is at least one."""


@dataclass
class LogModel:
    """One partition."""

    start: int = 0
    end: int = 0
    edges: list[int] = field(default_factory=lambda: [0])
    """The first offset of each batch, and the end."""
    producers: dict[ProducerId, ProducerModel] = field(default_factory=dict)
    deleted: bool = False
    """Whether records may be deleted: the model may be wrong about how many."""

    def store(self, records: int) -> None:
        """Append a batch."""
        self.end += records
        self.edges.append(self.end)

    def idempotent(self, producer: ProducerId, epoch: int, sent: Sent) -> None:
        """Append a batch of a producer if Kafka would store it."""
        known = self.producers.get(producer)
        if known is None or (epoch > known.epoch and sent.sequence == 0):
            self.producers[producer] = ProducerModel(epoch, [sent])
        elif epoch != known.epoch or sent in known.sent[-WINDOW:]:
            return
        elif sent.sequence == known.sent[-1].next:
            known.sent = [*known.sent[1 - REMEMBERED :], sent]
        else:
            return
        self.store(sent.records)

    def delete_below(self, offset: int) -> None:
        """Move the log start, if the offset allows it."""
        self.deleted = True
        wanted = self.end if offset == -1 else offset
        if self.start < wanted <= self.end:
            self.start = wanted
