"""Requests of clients as values: one NamedTuple per API, for all versions.

Handlers (`broker/wire/api/`) take these and know nothing of bytes. The connection makes them from
what the codec has read (`ottla.broker.wire.translation.reading`); the simulator's clients make them
directly. Fields have the names of Kafka's schemas. A default is the meaning of a version without
the field.

Durations are `Micros`, topic ids 16 bytes. Arrays are collections. A large array is translated
while it is iterated, so iterate it only once.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ottla.broker.turn.tickets import ANY_EPOCH, CONSUMER
from ottla.log.types import NO_PRODUCER_ID, Millis, Offset, ProducerEpoch, ProducerId, Term
from ottla.raft.types import Micros, NodeId

ZERO_ID = bytes(16)
"""The topic id that means *none*."""
NO_EPOCH: ProducerEpoch = -1
NO_SESSION = 0
"""The fetch session id that means *none*."""


# ---- Produce


class ProducePartition(NamedTuple):
    """The records to append to one partition."""

    partition: int
    """Kafka's `index`; a tuple has a method of that name."""
    records: bytes | memoryview | None
    """Record batches. A view points into the request's frame, which is not kept."""


class ProduceTopic(NamedTuple):
    """The records to append to one topic."""

    name: str
    partition_data: Collection[ProducePartition]


class ProduceRequest(NamedTuple):
    """Append record batches. No answer with acks=0 (promise-P1)."""

    acks: int
    timeout: Micros
    topic_data: Collection[ProduceTopic]


# ---- Fetch


class FetchPartition(NamedTuple):
    """From where to read one partition."""

    partition: int
    fetch_offset: Offset
    partition_max_bytes: int
    current_leader_epoch: Term = ANY_EPOCH
    last_fetched_epoch: Term = ANY_EPOCH


class FetchTopic(NamedTuple):
    """From where to read the partitions of one topic."""

    topic: str
    partitions: Collection[FetchPartition]


class FetchRequest(NamedTuple):
    """Read records, or wait for some."""

    max_wait: Micros
    min_bytes: int
    max_bytes: int
    topics: Collection[FetchTopic]
    replica_id: int = CONSUMER
    isolation_level: int = 0
    session_id: int = NO_SESSION
    session_epoch: int = -1


# ---- ListOffsets


class ListOffsetsPartition(NamedTuple):
    """The time, or special timestamp, to find in one partition."""

    partition_index: int
    timestamp: Millis
    current_leader_epoch: Term = ANY_EPOCH


class ListOffsetsTopic(NamedTuple):
    """The times to find in the partitions of one topic."""

    name: str
    partitions: Collection[ListOffsetsPartition]


class ListOffsetsRequest(NamedTuple):
    """Find offsets by time."""

    topics: Collection[ListOffsetsTopic]
    replica_id: int = CONSUMER
    isolation_level: int = 0


# ---- Metadata


class MetadataTopic(NamedTuple):
    """A topic by name, or by id."""

    name: str | None
    topic_id: bytes = ZERO_ID


class MetadataRequest(NamedTuple):
    """Describe topics and their leaders. `topics` None: all topics."""

    topics: Collection[MetadataTopic] | None = None
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False


# ---- topics created and deleted


class Assignment(NamedTuple):
    """The replicas of one partition."""

    partition_index: int
    broker_ids: Collection[NodeId]


class ConfigWanted(NamedTuple):
    """A config of a topic."""

    name: str
    value: str | None


class TopicWanted(NamedTuple):
    """A topic to create."""

    name: str
    num_partitions: int
    replication_factor: int
    assignments: Collection[Assignment]
    configs: Collection[ConfigWanted]


class CreateTopicsRequest(NamedTuple):
    """Create topics."""

    topics: Collection[TopicWanted]
    timeout: Micros
    validate_only: bool = False


class TopicNamed(NamedTuple):
    """A topic by name, or by id."""

    name: str | None
    topic_id: bytes


class DeleteTopicsRequest(NamedTuple):
    """Delete topics."""

    timeout: Micros
    topic_names: Collection[str] = ()
    """Topics by name, before version 6."""
    topics: Collection[TopicNamed] = ()
    """Topics by name or id, from version 6 on."""


# ---- DeleteRecords


class DeleteRecordsPartition(NamedTuple):
    """The new log start offset of one partition."""

    partition_index: int
    offset: Offset


class DeleteRecordsTopic(NamedTuple):
    """The new log start offsets of one topic."""

    name: str
    partitions: Collection[DeleteRecordsPartition]


class DeleteRecordsRequest(NamedTuple):
    """Move the log start offsets of partitions."""

    topics: Collection[DeleteRecordsTopic]
    timeout: Micros


# ---- OffsetForLeaderEpoch


class EpochPartition(NamedTuple):
    """The leader epoch whose end to find in one partition."""

    partition: int
    leader_epoch: Term
    current_leader_epoch: Term = ANY_EPOCH


class EpochTopic(NamedTuple):
    """The leader epochs whose ends to find in one topic."""

    topic: str
    partitions: Collection[EpochPartition]


class OffsetForLeaderEpochRequest(NamedTuple):
    """Find the ends of leader epochs."""

    topics: Collection[EpochTopic]


# ---- the rest


class ApiVersionsRequest(NamedTuple):
    """List the APIs and versions that are served."""

    client_software_name: str = "unknown"
    client_software_version: str = "unknown"


class InitProducerIdRequest(NamedTuple):
    """Give a producer id to a new producer, or the next epoch after an error (KIP-360)."""

    transactional_id: str | None = None
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_EPOCH


class DescribeClusterRequest(NamedTuple):
    """List the brokers of the cluster."""

    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1
    include_fenced_brokers: bool = False


class FindCoordinatorRequest(NamedTuple):
    """Find the coordinator of a key."""

    key_type: int = 0
    coordinator_keys: Collection[str] | None = None
    """Several keys, from version 4 on."""


class GroupRequest(NamedTuple):
    """JoinGroup, SyncGroup and other requests of which no field is read."""


class ConsumerGroupHeartbeatRequest(NamedTuple):
    """A heartbeat of a member of a group (newer protocol)."""


class OffsetDeleteRequest(NamedTuple):
    """Delete committed offsets."""


class OffsetCommitPartition(NamedTuple):
    """A partition with an offset to commit."""

    partition_index: int


class OffsetCommitTopic(NamedTuple):
    """The partitions of one topic with an offset to commit."""

    name: str
    partitions: Collection[OffsetCommitPartition]


class OffsetCommitRequest(NamedTuple):
    """Commit offsets for a group."""

    topics: Collection[OffsetCommitTopic]


class OffsetFetchTopic(NamedTuple):
    """Partitions of a topic by number."""

    name: str
    partition_indexes: Collection[int]


class OffsetFetchGroup(NamedTuple):
    """The partitions whose committed offsets are asked for, of one group."""

    group_id: str
    topics: Collection[OffsetFetchTopic] | None


class OffsetFetchRequest(NamedTuple):
    """Read committed offsets."""

    topics: Collection[OffsetFetchTopic] | None = None
    """For one group, before version 8; None: all topics."""
    groups: Collection[OffsetFetchGroup] | None = None
    """For several groups, from version 8 on."""


class DescribeGroupsRequest(NamedTuple):
    """Describe groups."""

    groups: Collection[str]


class ConsumerGroupDescribeRequest(NamedTuple):
    """Describe groups of the newer protocol."""

    group_ids: Collection[str]


class DeleteGroupsRequest(NamedTuple):
    """Delete groups."""

    groups_names: Collection[str]
