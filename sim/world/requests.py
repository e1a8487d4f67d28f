"""What clients of the simulator ask, and what they are answered: Kafka's requests as values.

The bytes of record batches are real; everything around them is a tuple, because framing and schemas
are not what a sweep is about (the asyncio mode runs the real ones). `number` is the correlation id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from ottla.broker.errors import ErrorCode
from ottla.log.types import Offset, ProducerEpoch, ProducerId, RecordBatch, Term
from ottla.raft.types import Micros, NodeId


class ApiVersions(NamedTuple):
    """What real clients ask first on every connection: does anybody serve there?"""

    number: int


class ApiVersionsAnswer(NamedTuple):
    """Answer to `ApiVersions`."""

    number: int


class Produce(NamedTuple):
    """Batches, at most one for a partition. No answer with acks=0 (mission-P1)."""

    number: int
    acks: int
    timeout: Micros
    batches: tuple[tuple[int, bytes], ...]
    """Partition and record batch."""


class ProducedPart(NamedTuple):
    """Outcome of one batch."""

    partition: int
    error: ErrorCode
    base_offset: Offset
    log_start_offset: Offset
    leader: NodeId
    """With NOT_LEADER_OR_FOLLOWER: who leads instead, 0 when unknown (KIP-951)."""
    leader_epoch: Term
    """And since which term; -1 when unknown."""


class Produced(NamedTuple):
    """Answer to `Produce`."""

    number: int
    parts: tuple[ProducedPart, ...]


class Fetch(NamedTuple):
    """Records of one partition from an offset on."""

    number: int
    partition: int
    offset: Offset
    max_bytes: int
    max_wait: Micros


class Fetched(NamedTuple):
    """Answer to `Fetch`; `batches` may begin before the offset asked for."""

    number: int
    partition: int
    error: ErrorCode
    high_watermark: Offset
    log_start_offset: Offset
    batches: Sequence[RecordBatch]
    leader_epoch: Term = -1
    """In which the node leads. For the history alone: the protocol does not say it."""


class ListOffsets(NamedTuple):
    """Where does a partition begin (-2) or end (-1)?"""

    number: int
    partition: int
    timestamp: int


class ListedOffset(NamedTuple):
    """Answer to `ListOffsets`."""

    number: int
    partition: int
    error: ErrorCode
    offset: Offset


class DeleteRecords(NamedTuple):
    """Move the log start of a partition; -1 for the high watermark."""

    number: int
    partition: int
    offset: Offset
    timeout: Micros


class DeletedRecords(NamedTuple):
    """Answer to `DeleteRecords`."""

    number: int
    partition: int
    error: ErrorCode
    log_start_offset: Offset


class Metadata(NamedTuple):
    """Who leads what?"""

    number: int


class Leads(NamedTuple):
    """Who leads one partition: `leader` 0 when nobody is known to."""

    partition: int
    leader: NodeId
    epoch: Term


class MetadataAnswer(NamedTuple):
    """Answer to `Metadata`: the nodes that are up, the topic's partitions."""

    number: int
    nodes: tuple[NodeId, ...]
    partitions: tuple[Leads, ...]


class InitProducerId(NamedTuple):
    """A producer id for a new producer, or its next epoch after an error (KIP-360)."""

    number: int


class ProducerIdAnswer(NamedTuple):
    """Answer to `InitProducerId`."""

    number: int
    error: ErrorCode
    producer_id: ProducerId
    epoch: ProducerEpoch


Request: TypeAlias = (
    ApiVersions | Produce | Fetch | ListOffsets | DeleteRecords | Metadata | InitProducerId
)
Answer: TypeAlias = (
    ApiVersionsAnswer
    | Produced
    | Fetched
    | ListedOffset
    | DeletedRecords
    | MetadataAnswer
    | ProducerIdAnswer
)


def size_of(request: Request) -> int:
    """About how many bytes a request has on the wire; a node charges its connection for them."""
    if isinstance(request, Produce):
        return 100 + sum(len(data) for _, data in request.batches)
    return 100
