"""Answers to clients as values: one NamedTuple per API, for all versions.

Handlers (`broker/wire/api/`) make these and know nothing of bytes. The connection writes them in
the version of the request (`ottla.broker.wire.translation`); the simulator's clients get the
values. Fields have the names of Kafka's schemas; a field that a version does not have is left out.
Errors are `ErrorCode`, durations `Millis`, topic ids 16 bytes.

Arrays are collections; the items of a large array may be made while it is written (`Lazily`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple, TypeVar

from ottla.broker.errors import ErrorCode
from ottla.broker.images import BrokerImage
from ottla.broker.wire.requests import NO_EPOCH, ZERO_ID
from ottla.log.inspection import Fault
from ottla.log.types import (
    NO_OFFSET,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    EpochStart,
    Millis,
    Offset,
    ProducerEpoch,
    ProducerId,
    RecordBatch,
    Term,
)
from ottla.raft.types import NodeId

NOT_ASKED = -(2**31)
"""Authorized operations: the client did not ask for them, or its version of the request cannot."""

Item = TypeVar("Item")
Source = TypeVar("Source")


class Lazily(Collection[Item]):
    """An array with one item for each of `items`; `describe` makes an item when it is needed."""

    __slots__ = ("_describe", "_items")

    def __init__(self, items: Collection[Source], describe: Callable[[Source], Item]):
        self._items = items
        self._describe = describe

    def __len__(self) -> int:
        """How many items there are."""
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        """The items, one by one."""
        return map(self._describe, self._items)

    def __contains__(self, item: object) -> bool:
        """Whether there is such an item; makes items until it is found."""
        return any(item == each for each in self)


# ---- Produce


class PartitionProduced(NamedTuple):
    """The outcome of the batch for one partition."""

    partition: int
    error: ErrorCode
    base_offset: Offset = NO_OFFSET
    log_append_time: Millis = NO_TIMESTAMP
    log_start_offset: Offset = NO_OFFSET
    message: str | None = None
    leader: NodeId = -1
    """The current leader, -1 if it is not known; only with NOT_LEADER_OR_FOLLOWER (KIP-951)."""
    leader_epoch: Term = -1
    faults: Sequence[Fault] = ()
    """The faulty records, and what is wrong with each."""


class TopicProduced(NamedTuple):
    """The outcomes for one topic."""

    topic: str
    partitions: Sequence[PartitionProduced]


class ProduceAnswer(NamedTuple):
    """Answer to Produce."""

    topics: Sequence[TopicProduced]
    brokers: Sequence[BrokerImage] = ()
    """The addresses of the leaders that the answer names."""


# ---- Fetch


class PartitionFetched(NamedTuple):
    """The records of one partition."""

    partition: int
    error: ErrorCode
    high_watermark: Offset = NO_OFFSET
    log_start_offset: Offset = NO_OFFSET
    batches: Sequence[RecordBatch] = ()
    """The first batch may begin before the offset that was asked for."""
    aborted_is_null: bool = True
    """Whether the list of aborted transactions is null, as in Kafka (K-FETCH). It is empty instead
    for an unknown partition, and for a client with isolation level *read committed*."""
    cut: tuple[RecordBatch, int] | None = None
    """The batch behind `batches`, and how many of its first bytes are sent."""
    diverging: EpochStart | None = None
    """Where the client's log and this one begin to differ (from version 12 on)."""
    leader_epoch: Term = -1
    """The term in which the replica answered. It is in no version of the answer, only in the
    simulator's history."""


class TopicFetched(NamedTuple):
    """The records of one topic."""

    topic: str
    partitions: Collection[PartitionFetched]


class FetchAnswer(NamedTuple):
    """Answer to Fetch."""

    topics: Collection[TopicFetched]
    error: ErrorCode = ErrorCode.NONE


# ---- ListOffsets


class PartitionListed(NamedTuple):
    """The offset that was found in one partition."""

    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    timestamp: Millis = NO_TIMESTAMP
    offset: Offset = NO_OFFSET
    leader_epoch: Term = -1


class TopicListed(NamedTuple):
    """The offsets that were found in one topic."""

    name: str
    partitions: Collection[PartitionListed]


class ListOffsetsAnswer(NamedTuple):
    """Answer to ListOffsets."""

    topics: Collection[TopicListed]


# ---- Metadata


class MetadataBroker(NamedTuple):
    """A node that clients may connect to."""

    node_id: NodeId
    host: str
    port: int
    rack: str | None = None


class PartitionDescribed(NamedTuple):
    """One partition: its leader (-1 if none is known) and its replicas."""

    error_code: ErrorCode
    partition_index: int
    leader_id: NodeId
    leader_epoch: Term
    replica_nodes: Collection[NodeId]
    isr_nodes: Collection[NodeId]
    offline_replicas: Collection[NodeId]


class TopicDescribed(NamedTuple):
    """A topic, or the error for one that is not known."""

    error_code: ErrorCode
    name: str | None
    topic_id: bytes = ZERO_ID
    is_internal: bool = False
    partitions: Collection[PartitionDescribed] = ()
    topic_authorized_operations: int = NOT_ASKED


class MetadataAnswer(NamedTuple):
    """Answer to Metadata."""

    topics: Collection[TopicDescribed]
    brokers: Collection[MetadataBroker] = ()
    cluster_id: str | None = None
    controller_id: NodeId = -1
    cluster_authorized_operations: int = NOT_ASKED


# ---- topics created and deleted


class ConfigCreated(NamedTuple):
    """A config of a topic, and the source of its value."""

    name: str
    value: str | None
    read_only: bool
    config_source: int
    is_sensitive: bool


class TopicCreated(NamedTuple):
    """The outcome of the creation of one topic."""

    name: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    topic_id: bytes = ZERO_ID
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Collection[ConfigCreated] = ()


class CreateTopicsAnswer(NamedTuple):
    """Answer to CreateTopics."""

    topics: Collection[TopicCreated]


class TopicDeleted(NamedTuple):
    """The outcome of the deletion of one topic."""

    name: str | None
    topic_id: bytes
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class DeleteTopicsAnswer(NamedTuple):
    """Answer to DeleteTopics."""

    responses: Collection[TopicDeleted]


# ---- DeleteRecords


class RecordsDeleted(NamedTuple):
    """The log start offset of one partition after the deletion."""

    partition_index: int
    low_watermark: Offset = NO_OFFSET
    error_code: ErrorCode = ErrorCode.NONE


class TopicRecordsDeleted(NamedTuple):
    """The log start offsets of one topic."""

    name: str
    partitions: Collection[RecordsDeleted]


class DeleteRecordsAnswer(NamedTuple):
    """Answer to DeleteRecords."""

    topics: Collection[TopicRecordsDeleted]


# ---- OffsetForLeaderEpoch


class EpochEnd(NamedTuple):
    """Where an epoch ended in one partition."""

    partition: int
    error_code: ErrorCode = ErrorCode.NONE
    leader_epoch: Term = -1
    end_offset: Offset = NO_OFFSET


class TopicEpochEnds(NamedTuple):
    """The ends of epochs in one topic."""

    topic: str
    partitions: Collection[EpochEnd]


class OffsetForLeaderEpochAnswer(NamedTuple):
    """Answer to OffsetForLeaderEpoch."""

    topics: Collection[TopicEpochEnds]


# ---- the rest


class ApiServed(NamedTuple):
    """An API and its advertised versions."""

    api_key: int
    min_version: int
    max_version: int


class ApiVersionsAnswer(NamedTuple):
    """Answer to ApiVersions."""

    error_code: ErrorCode
    api_keys: Collection[ApiServed]


class InitProducerIdAnswer(NamedTuple):
    """Answer to InitProducerId."""

    error_code: ErrorCode
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_EPOCH


class ClusterBroker(NamedTuple):
    """A broker of the cluster."""

    broker_id: NodeId
    host: str
    port: int
    is_fenced: bool
    rack: str | None = None


class DescribeClusterAnswer(NamedTuple):
    """Answer to DescribeCluster."""

    error_code: ErrorCode
    error_message: str | None = None
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: NodeId = -1
    brokers: Collection[ClusterBroker] = ()
    cluster_authorized_operations: int = NOT_ASKED


class Coordinator(NamedTuple):
    """The coordinator of one key."""

    error_code: ErrorCode
    error_message: str | None = None
    node_id: NodeId = -1
    host: str = ""
    port: int = -1
    key: str = ""


class FindCoordinatorAnswer(NamedTuple):
    """Answer to FindCoordinator from version 4 on. Before version 4 it is a `Coordinator`."""

    coordinators: Collection[Coordinator]
