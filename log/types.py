"""Values of the log: offsets, record batches, batch identities. No I/O, no rules.

A record batch is kept as the bytes that the producer sent. The broker adds a base offset and a
leader epoch. They are in the *stamp*: the first 16 bytes of a batch, which its CRC does not cover
(Kafka's batch format: base_offset int64, batch_length int32, partition_leader_epoch int32). The
stamp is kept beside the bytes and replaces their first 16 when they are sent or stored. So records
are never encoded again, and replicas in one process share one object.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from typing import Any, NamedTuple, TypeAlias

from ottla.raft.types import Term as RaftTerm

Term: TypeAlias = RaftTerm
"""The leader epoch is the Raft term. Named here for modules that may import only this one."""
Offset: TypeAlias = int
ProducerId: TypeAlias = int
ProducerEpoch: TypeAlias = int
Sequence: TypeAlias = int
Millis: TypeAlias = int
Unpacked: TypeAlias = Any  # a value read by msgpack, JSON or struct: its user checks the type

NO_PRODUCER_ID: ProducerId = -1
NO_OFFSET: Offset = -1
NO_TIMESTAMP: Millis = -1

BATCH_HEADER_BYTES = 61
"""Bytes before the first record of a version 2 batch."""
STAMP_BYTES = 16
"""base_offset, batch_length, partition_leader_epoch: the fields that the broker may rewrite."""
CRC_COVERS_FROM = 21
"""The CRC covers the batch from its attributes on, not the magic byte and the CRC itself."""

CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20

_STAMP = Struct(">qii")


class BatchIdentity(NamedTuple):
    """The producer of a batch, and the batch's place in the producer's sequence (KIP-98)."""

    producer_id: ProducerId
    epoch: ProducerEpoch
    first_sequence: Sequence
    last_sequence: Sequence


@dataclass(slots=True)
class RecordBatch:
    """One version 2 record batch: its bytes as received, and its header read once.

    Fields are in the order of the header, so that one unpack makes a batch.
    `ottla.log.record_batch.read_batch` makes it. Only `base_offset` and `leader_epoch`, the
    broker's stamp, may change: once, before the batch is shared.
    """

    data: bytes
    """The bytes as the producer sent them; `parts` and `stamped` put the stamp over the first
    16."""
    base_offset: Offset
    batch_length: int
    """The header's own length field: bytes after the first 12."""
    leader_epoch: Term
    magic: int
    crc: int
    """The CRC-32C that the header states; it covers everything from the attributes on."""
    attributes: int
    """Bits 0-2 codec, 3 LogAppendTime, 4 transactional, 5 control (KIP-98)."""
    last_offset_delta: int
    base_timestamp: Millis
    max_timestamp: Millis
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    base_sequence: Sequence
    record_count: int
    identity: BatchIdentity | None = field(init=False, default=None, compare=False, repr=False)
    """Computed once by `ottla.log.record_batch.identity`, because every replica needs it."""

    def __len__(self) -> int:
        """Size in bytes."""
        return len(self.data)

    @property
    def codec(self) -> int:
        """Compression codec id: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd; 5 to 7 mean nothing."""
        return self.attributes & CODEC_MASK

    @property
    def last_offset(self) -> Offset:
        """Offset of the last record."""
        return self.base_offset + self.last_offset_delta

    def stamp(self, base_offset: Offset, leader_epoch: Term) -> None:
        """Give the batch its offset and leader epoch. Called once, before the batch is shared."""
        self.base_offset = base_offset
        self.leader_epoch = leader_epoch

    def parts(self) -> tuple[bytes, memoryview]:
        """The 16 bytes of the stamp, and a view of everything behind them: joined, the batch."""
        head = _STAMP.pack(self.base_offset, self.batch_length, self.leader_epoch)
        return head, memoryview(self.data)[STAMP_BYTES:]

    def beginning(self, size: int) -> tuple[bytes, memoryview]:
        """As `parts`, but only the first `size` bytes of the batch."""
        head, rest = self.parts()
        return head[:size], rest[: max(0, size - STAMP_BYTES)]

    def stamped(self) -> bytes:
        """The whole batch with its stamp: one copy."""
        return b"".join(self.parts())


class EpochStart(NamedTuple):
    """A leader epoch and the offset at which it starts (KIP-101)."""

    epoch: Term
    start_offset: Offset
