"""What clients ask, as values: one NamedTuple per API, whatever version it came in.

Handlers (`broker/wire/api/`) take these and know nothing of bytes. The connection makes them of
what the codec has read (`ottla.broker.wire.translation.reading`); the simulator's clients make them
themselves. So the names of the fields are those of Kafka's schemas, and a default says what a
version means that does not have the field.

Durations are `Micros`, topic ids 16 bytes. Arrays are collections: a large one is translated while
it is walked over, so walk once.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ottla.broker.turn.tickets import ANY_EPOCH, CONSUMER
from ottla.log.types import NO_PRODUCER_ID, Millis, Offset, ProducerEpoch, ProducerId, Term
from ottla.raft.types import Micros, NodeId

ZERO_ID = bytes(16)
"""The topic id that means: none."""
NO_EPOCH: ProducerEpoch = -1
NO_SESSION = 0
"""The fetch session id that means: none."""


# ---- Produce


class ProducePartition(NamedTuple):
    """What is to be appended to one partition."""

    partition: int
    """Kafka's `index`, which a tuple has a method of."""
    records: bytes | memoryview | None
    """Record batches; a view where they lie in a frame that is not kept."""


class ProduceTopic(NamedTuple):
    """What is to be appended to one topic."""

    name: str
    partition_data: Collection[ProducePartition]


class ProduceRequest(NamedTuple):
    """Append record batches. No answer with acks=0 (promise-P1)."""

    acks: int
    timeout: Micros
    topic_data: Collection[ProduceTopic]


# ---- Fetch


class FetchPartition(NamedTuple):
    """Where to read one partition."""

    partition: int
    fetch_offset: Offset
    partition_max_bytes: int
    current_leader_epoch: Term = ANY_EPOCH
    last_fetched_epoch: Term = ANY_EPOCH


class FetchTopic(NamedTuple):
    """Where to read one topic."""

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
    """Which time, or special timestamp, is asked of a partition."""

    partition_index: int
    timestamp: Millis
    current_leader_epoch: Term = ANY_EPOCH


class ListOffsetsTopic(NamedTuple):
    """What is asked of a topic."""

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
    """Who leads what? `topics` None: all."""

    topics: Collection[MetadataTopic] | None = None
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False


# ---- topics made and deleted


class Assignment(NamedTuple):
    """The replicas of one partition."""

    partition_index: int
    broker_ids: Collection[NodeId]


class ConfigWanted(NamedTuple):
    """A config of a topic."""

    name: str
    value: str | None


class TopicWanted(NamedTuple):
    """A topic that is to be made."""

    name: str
    num_partitions: int
    replication_factor: int
    assignments: Collection[Assignment]
    configs: Collection[ConfigWanted]


class CreateTopicsRequest(NamedTuple):
    """Make topics."""

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
    """By name, before version 6."""
    topics: Collection[TopicNamed] = ()
    """From then on."""


# ---- DeleteRecords


class DeleteRecordsPartition(NamedTuple):
    """Where the log of a partition is to begin."""

    partition_index: int
    offset: Offset


class DeleteRecordsTopic(NamedTuple):
    """The same of a topic."""

    name: str
    partitions: Collection[DeleteRecordsPartition]


class DeleteRecordsRequest(NamedTuple):
    """Move the log start of partitions."""

    topics: Collection[DeleteRecordsTopic]
    timeout: Micros


# ---- OffsetForLeaderEpoch


class EpochPartition(NamedTuple):
    """Which epoch's end is asked for."""

    partition: int
    leader_epoch: Term
    current_leader_epoch: Term = ANY_EPOCH


class EpochTopic(NamedTuple):
    """The same of a topic."""

    topic: str
    partitions: Collection[EpochPartition]


class OffsetForLeaderEpochRequest(NamedTuple):
    """Where did leader epochs end?"""

    topics: Collection[EpochTopic]


# ---- the rest


class ApiVersionsRequest(NamedTuple):
    """What is served here?"""

    client_software_name: str = "unknown"
    client_software_version: str = "unknown"


class InitProducerIdRequest(NamedTuple):
    """A producer id for a new producer, or its next epoch after an error (KIP-360)."""

    transactional_id: str | None = None
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_EPOCH


class DescribeClusterRequest(NamedTuple):
    """Which brokers are there?"""

    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1
    include_fenced_brokers: bool = False


class FindCoordinatorRequest(NamedTuple):
    """Who looks after a key?"""

    key_type: int = 0
    coordinator_keys: Collection[str] | None = None
    """Several keys, from version 4 on."""


class GroupRequest(NamedTuple):
    """JoinGroup, SyncGroup and others of which nothing is looked at."""


class ConsumerGroupHeartbeatRequest(NamedTuple):
    """A member of a group of the newer protocol is alive."""


class OffsetDeleteRequest(NamedTuple):
    """Forget offsets."""


class OffsetCommitPartition(NamedTuple):
    """A partition with an offset to keep."""

    partition_index: int


class OffsetCommitTopic(NamedTuple):
    """The same of a topic."""

    name: str
    partitions: Collection[OffsetCommitPartition]


class OffsetCommitRequest(NamedTuple):
    """Keep offsets for a group."""

    topics: Collection[OffsetCommitTopic]


class OffsetFetchTopic(NamedTuple):
    """Partitions of a topic by number."""

    name: str
    partition_indexes: Collection[int]


class OffsetFetchGroup(NamedTuple):
    """What is asked of one group."""

    group_id: str
    topics: Collection[OffsetFetchTopic] | None


class OffsetFetchRequest(NamedTuple):
    """Which offsets are kept?"""

    topics: Collection[OffsetFetchTopic] | None = None
    """Of one group; None: all."""
    groups: Collection[OffsetFetchGroup] | None = None
    """Of several, from version 8 on."""


class DescribeGroupsRequest(NamedTuple):
    """What are these groups?"""

    groups: Collection[str]


class ConsumerGroupDescribeRequest(NamedTuple):
    """What are these groups of the newer protocol?"""

    group_ids: Collection[str]


class DeleteGroupsRequest(NamedTuple):
    """Forget these groups."""

    groups_names: Collection[str]
