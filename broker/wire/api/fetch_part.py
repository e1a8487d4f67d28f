"""`Part`: one partition of a Fetch (`ottla.broker.wire.api.fetch`)."""

from __future__ import annotations

from ottla.broker.errors import ErrorCode
from ottla.broker.turn.tickets import ANY_EPOCH
from ottla.broker.wire.answers import PartitionFetched
from ottla.broker.wire.host import ReplicaInbox
from ottla.broker.wire.requests import FetchPartition
from ottla.log.types import NO_OFFSET, EpochStart, RecordBatch, Term


class Part:
    """One partition of a fetch: what the request asks for, and what was read so far."""

    __slots__ = (
        "aborted_is_null",
        "batches",
        "bytes",
        "cut",
        "diverging",
        "epoch",
        "error",
        "full",
        "high_watermark",
        "last_fetched_epoch",
        "leader_epoch",
        "limit",
        "log_start_offset",
        "next_offset",
        "partition",
        "replica",
        "topic",
    )

    def __init__(self, topic: str, wanted: FetchPartition):
        self.topic = topic
        self.partition: int = wanted.partition
        self.next_offset: int = wanted.fetch_offset
        self.limit: int = wanted.partition_max_bytes
        self.epoch: int = max(wanted.current_leader_epoch, ANY_EPOCH)
        self.last_fetched_epoch = max(wanted.last_fetched_epoch, ANY_EPOCH)
        """The client's epoch, until it is compared with the log."""
        self.diverging: EpochStart | None = None
        self.replica: ReplicaInbox | None = None
        self.error = ErrorCode.NONE
        self.aborted_is_null = True
        self.leader_epoch: Term = -1
        """The term of the replica's last answer."""
        self.high_watermark = NO_OFFSET
        self.log_start_offset = NO_OFFSET
        self.batches: list[RecordBatch] = []
        self.bytes = 0
        self.cut: tuple[RecordBatch, int] | None = None
        self.full = False
        """There are more records, but the limits are reached."""

    def fail(self, error: ErrorCode) -> None:
        """Answer this error instead of records."""
        self.error = error
        self.high_watermark = self.log_start_offset = NO_OFFSET
        self.aborted_is_null = True

    def answer(self) -> PartitionFetched:
        """The answer for this partition, as far as it is known."""
        return PartitionFetched(
            self.partition,
            self.error,
            self.high_watermark,
            self.log_start_offset,
            self.batches,
            self.aborted_is_null,
            self.cut,
            self.diverging,
            self.leader_epoch,
        )
