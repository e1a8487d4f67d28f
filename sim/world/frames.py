"""The messages on a simulated client's connection: a correlation id and a value.

The values are the broker's own (`ottla.broker.wire.requests`, `ottla.broker.wire.answers`), and so
are the handlers that take and return them. Only record batches are real bytes. The rest stays
values, because a sweep does not test framing and schemas; the asyncio mode runs the real ones. Each
request is about one partition of one topic, except Produce.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from ottla.broker.errors import ErrorCode
from ottla.broker.turn.tickets import ANY_EPOCH
from ottla.broker.wire.answers import (
    CreateTopicsAnswer,
    DeleteRecordsAnswer,
    DeleteTopicsAnswer,
    EpochEnd,
    FetchAnswer,
    ListOffsetsAnswer,
    OffsetForLeaderEpochAnswer,
    PartitionFetched,
    PartitionListed,
    PartitionProduced,
    ProduceAnswer,
    RecordsDeleted,
)
from ottla.broker.wire.requests import (
    ZERO_ID,
    ApiVersionsRequest,
    ConfigWanted,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    EpochPartition,
    EpochTopic,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    InitProducerIdRequest,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
    TopicNamed,
    TopicWanted,
)
from ottla.log.types import Millis, Offset, Term
from ottla.raft.types import Micros

TOPIC = "t"
"""The topic of a run: it has all records."""
NO_LIMIT = 2**31 - 1
"""Most bytes of all partitions of a fetch together: no limit."""
NO_CONFIGS: Mapping[str, int] = MappingProxyType({})
BYTES_AROUND = 100
"""About how many bytes a request has besides its records."""


class Frame(NamedTuple):
    """A request or an answer. An answer has the number of its request."""

    number: int
    """The correlation id."""
    value: Any


def size_of(frame: Frame) -> int:
    """About how many bytes a request has on the wire; a node charges its connection for them."""
    if isinstance(frame.value, ProduceRequest):
        return BYTES_AROUND + sum(len(data) for _, data in batches_of(frame.value))
    return BYTES_AROUND


# ---- requests


def produce(
    acks: int, timeout: Micros, batches: Sequence[tuple[int, bytes]], topic: str = TOPIC
) -> ProduceRequest:
    """Append these batches to these partitions."""
    parts = tuple([ProducePartition(partition, data) for partition, data in batches])
    return ProduceRequest(acks, timeout, (ProduceTopic(topic, parts),))


def batches_of(request: ProduceRequest) -> list[tuple[int, bytes]]:
    """The partitions and batches of a request that `produce` made."""
    return [
        (part.partition, cast(bytes, part.records))
        for topic in request.topic_data
        for part in topic.partition_data
    ]


def fetch(
    partition: int,
    offset: Offset,
    max_bytes: int,
    max_wait: Micros,
    *,
    leads: Term = ANY_EPOCH,
    has: Term = ANY_EPOCH,
    topic: str = TOPIC,
) -> FetchRequest:
    """Read a partition from an offset on, or wait for records. `leads`: the epoch that the leader
    must have; `has`: the epoch of the record before `offset`."""
    part = FetchPartition(partition, offset, max_bytes, leads, has)
    return FetchRequest(max_wait, 1, NO_LIMIT, (FetchTopic(topic, (part,)),))


def list_offsets(
    partition: int, timestamp: Millis, leads: Term = ANY_EPOCH, *, topic: str = TOPIC
) -> ListOffsetsRequest:
    """Ask where a partition begins (-2), where it ends (-1), or for its first record of that time
    or later. `leads`: the epoch that the leader must have."""
    part = ListOffsetsPartition(partition, timestamp, leads)
    return ListOffsetsRequest((ListOffsetsTopic(topic, (part,)),))


def end_of_epoch(
    partition: int, epoch: Term, leads: Term = ANY_EPOCH
) -> OffsetForLeaderEpochRequest:
    """Ask where the leader epoch `epoch` ended. `leads`: the epoch that the leader must have."""
    part = EpochPartition(partition, epoch, leads)
    return OffsetForLeaderEpochRequest((EpochTopic(TOPIC, (part,)),))


def delete_records(
    partition: int, offset: Offset, timeout: Micros, topic: str = TOPIC
) -> DeleteRecordsRequest:
    """Move the log start of a partition to `offset`; -1: to the high watermark."""
    part = DeleteRecordsPartition(partition, offset)
    return DeleteRecordsRequest((DeleteRecordsTopic(topic, (part,)),), timeout)


def create_topic(
    name: str,
    partitions: int,
    replicas: int,
    timeout: Micros,
    configs: Mapping[str, int] = NO_CONFIGS,
) -> CreateTopicsRequest:
    """Create a topic."""
    wanted = tuple([ConfigWanted(each, str(value)) for each, value in configs.items()])
    return CreateTopicsRequest((TopicWanted(name, partitions, replicas, (), wanted),), timeout)


def delete_topic(name: str, timeout: Micros) -> DeleteTopicsRequest:
    """Delete a topic by its name."""
    return DeleteTopicsRequest(timeout, topics=(TopicNamed(name, ZERO_ID),))


def delete_topic_id(topic_id: bytes, timeout: Micros) -> DeleteTopicsRequest:
    """Delete a topic by its id: a request that arrives late deletes no other of its name."""
    return DeleteTopicsRequest(timeout, topics=(TopicNamed(None, topic_id),))


# ---- answers


def produced(answer: ProduceAnswer) -> list[PartitionProduced]:
    """The answer for each batch of a produce request."""
    return [part for topic in answer.topics for part in topic.partitions]


def fetched(answer: FetchAnswer) -> PartitionFetched:
    """What was read from the one partition."""
    ((_, (part,)),) = answer.topics
    return part


def listed(answer: ListOffsetsAnswer) -> PartitionListed:
    """Where the one partition begins or ends."""
    ((_, (part,)),) = answer.topics
    return part


def ended(answer: OffsetForLeaderEpochAnswer) -> EpochEnd:
    """Where an epoch of the one partition ended."""
    ((_, (part,)),) = answer.topics
    return part


def deleted(answer: DeleteRecordsAnswer) -> RecordsDeleted:
    """Where the log of the one partition begins now."""
    ((_, (part,)),) = answer.topics
    return part


def error_of_topic(answer: CreateTopicsAnswer | DeleteTopicsAnswer) -> ErrorCode:
    """The error code for the one topic that was to be created or deleted."""
    topics = answer.topics if isinstance(answer, CreateTopicsAnswer) else answer.responses
    (error,) = [each.error_code for each in topics]
    return error


def partition_of(value: Any) -> int | None:
    """The one partition that a request or an answer is about; None: several, or none."""
    if isinstance(value, ProduceRequest):
        found = [partition for partition, _ in batches_of(value)]
    elif isinstance(value, ProduceAnswer):
        found = [part.partition for part in produced(value)]
    elif isinstance(value, _BY_NUMBER):
        found = [part.partition for topic in value.topics for part in topic.partitions]
    elif isinstance(value, _BY_INDEX):
        found = [part.partition_index for topic in value.topics for part in topic.partitions]
    else:
        return None
    return found[0] if len(found) == 1 else None


def name_of(message: Any) -> str:
    """The usual name of a request, an answer, or a message between nodes."""
    kind = type(message)
    return _NAMES.get(kind, kind.__name__)


_BY_NUMBER = (FetchRequest, FetchAnswer, OffsetForLeaderEpochRequest, OffsetForLeaderEpochAnswer)
_BY_INDEX = (ListOffsetsRequest, ListOffsetsAnswer, DeleteRecordsRequest, DeleteRecordsAnswer)
_NAMES: dict[type, str] = {
    ProduceRequest: "Produce",
    ProduceAnswer: "Produced",
    FetchRequest: "Fetch",
    FetchAnswer: "Fetched",
    ListOffsetsRequest: "ListOffsets",
    ListOffsetsAnswer: "ListedOffset",
    OffsetForLeaderEpochRequest: "OffsetForLeaderEpoch",
    OffsetForLeaderEpochAnswer: "LeaderEpochEnded",
    DeleteRecordsRequest: "DeleteRecords",
    DeleteRecordsAnswer: "DeletedRecords",
    MetadataRequest: "Metadata",
    InitProducerIdRequest: "InitProducerId",
    ApiVersionsRequest: "ApiVersions",
    CreateTopicsRequest: "CreateTopics",
    CreateTopicsAnswer: "CreatedTopics",
    DeleteTopicsRequest: "DeleteTopics",
    DeleteTopicsAnswer: "DeletedTopics",
}
