"""What clients are answered, as values: one NamedTuple per API, whatever version it leaves in.

Handlers (`broker/wire/api/`) make these and know nothing of bytes. The connection writes them in
the version of the request (`ottla.broker.wire.translation`); the simulator's clients get them as
they are. The names of the fields are those of Kafka's schemas; a field that a version does not have
is left out. Errors are `ErrorCode`, durations `Millis`, topic ids 16 bytes.

Arrays are collections: the items of a large one may be made while it is written (`Lazily`).
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
"""Authorized operations: the client did not ask, or its version of the request cannot."""

Item = TypeVar("Item")
Source = TypeVar("Source")


class Lazily(Collection[Item]):
    """An array with an item for each of `items`, made when it is its turn."""

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
        """Whether there is such an item; makes them for it."""
        return any(item == each for each in self)


# ---- Produce


class PartitionProduced(NamedTuple):
    """What came of the batch for one partition."""

    partition: int
    error: ErrorCode
    base_offset: Offset = NO_OFFSET
    log_append_time: Millis = NO_TIMESTAMP
    log_start_offset: Offset = NO_OFFSET
    message: str | None = None
    leader: NodeId = -1
    """Current leader, -1 when unknown; said with NOT_LEADER_OR_FOLLOWER only (KIP-951)."""
    leader_epoch: Term = -1
    faults: Sequence[Fault] = ()
    """What is wrong with which record."""


class TopicProduced(NamedTuple):
    """The same of a topic."""

    topic: str
    partitions: Sequence[PartitionProduced]


class ProduceAnswer(NamedTuple):
    """Answer to Produce."""

    topics: Sequence[TopicProduced]
    brokers: Sequence[BrokerImage] = ()
    """Where the leaders are that it names."""


# ---- Fetch


class PartitionFetched(NamedTuple):
    """What is given of one partition."""

    partition: int
    error: ErrorCode
    high_watermark: Offset = NO_OFFSET
    log_start_offset: Offset = NO_OFFSET
    batches: Sequence[RecordBatch] = ()
    """The first may begin before the offset asked for."""
    aborted_is_null: bool = True
    """Kafka answers null, but for partitions it does not know (K-FETCH), and to who reads
    what is committed."""
    cut: tuple[RecordBatch, int] | None = None
    """The batch behind `batches`, and how many bytes of its beginning are given."""
    diverging: EpochStart | None = None
    """Where the asker's log and this one part (version 12 on)."""
    leader_epoch: Term = -1
    """In which term the replica answered. No version says it; the simulator's history does."""


class TopicFetched(NamedTuple):
    """The same of a topic."""

    topic: str
    partitions: Collection[PartitionFetched]


class FetchAnswer(NamedTuple):
    """Answer to Fetch."""

    topics: Collection[TopicFetched]
    error: ErrorCode = ErrorCode.NONE


# ---- ListOffsets


class PartitionListed(NamedTuple):
    """What was found in one partition."""

    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    timestamp: Millis = NO_TIMESTAMP
    offset: Offset = NO_OFFSET
    leader_epoch: Term = -1


class TopicListed(NamedTuple):
    """The same of a topic."""

    name: str
    partitions: Collection[PartitionListed]


class ListOffsetsAnswer(NamedTuple):
    """Answer to ListOffsets."""

    topics: Collection[TopicListed]


# ---- Metadata


class MetadataBroker(NamedTuple):
    """A node that clients may turn to."""

    node_id: NodeId
    host: str
    port: int
    rack: str | None = None


class PartitionDescribed(NamedTuple):
    """Who leads one partition: -1 when nobody is known to."""

    error_code: ErrorCode
    partition_index: int
    leader_id: NodeId
    leader_epoch: Term
    replica_nodes: Collection[NodeId]
    isr_nodes: Collection[NodeId]
    offline_replicas: Collection[NodeId]


class TopicDescribed(NamedTuple):
    """A topic, or why it is none."""

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


# ---- topics made and deleted


class ConfigCreated(NamedTuple):
    """A config of a topic, and where its value comes from."""

    name: str
    value: str | None
    read_only: bool
    config_source: int
    is_sensitive: bool


class TopicCreated(NamedTuple):
    """What came of one topic."""

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
    """What came of one topic."""

    name: str | None
    topic_id: bytes
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class DeleteTopicsAnswer(NamedTuple):
    """Answer to DeleteTopics."""

    responses: Collection[TopicDeleted]


# ---- DeleteRecords


class RecordsDeleted(NamedTuple):
    """Where the log of one partition begins now."""

    partition_index: int
    low_watermark: Offset = NO_OFFSET
    error_code: ErrorCode = ErrorCode.NONE


class TopicRecordsDeleted(NamedTuple):
    """The same of a topic."""

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
    """The same of a topic."""

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
    """Who looks after one key."""

    error_code: ErrorCode
    error_message: str | None = None
    node_id: NodeId = -1
    host: str = ""
    port: int = -1
    key: str = ""


class FindCoordinatorAnswer(NamedTuple):
    """Answer to FindCoordinator from version 4 on; before, it is a `Coordinator`."""

    coordinators: Collection[Coordinator]
