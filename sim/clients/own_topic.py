"""What the sequential client sends: requests about one partition of a topic of its own.

Source: Kafka protocol guide.
"""

from __future__ import annotations

from ottla.broker.turn.tickets import ANY_EPOCH
from ottla.broker.wire.requests import (
    ConfigWanted,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
    TopicNamed,
    TopicWanted,
)
from ottla.log.build import NewRecord, build_batch
from ottla.log.types import Millis, Offset
from ottla.raft.types import Micros
from ottla.sim.clients.topic_model import Written
from ottla.sim.world.batch import VALUE_BYTES, payload_of, time_of
from ottla.sim.world.frames import NO_LIMIT

OWN_TOPICS = ("sequential.client", "sequential_client")
"""The topic's name, and that of the topic that is made when it is deleted. Kafka takes no two names
that differ in `.` and `_` only, as long as both are there."""
MOST_BYTES = 2_000
"""Of a batch: the topic's own limit, whatever that of the cluster is."""


def batch_of(batch: Written, *, size: int = VALUE_BYTES, time: Millis | None = None) -> bytes:
    """Its bytes, with records of `size` bytes; `time`: of each record, instead of its own."""
    records = [
        NewRecord(payload_of(each, size), timestamp=time_of(each) if time is None else time)
        for each in batch.values
    ]
    return build_batch(
        records,
        producer_id=batch.pid,
        producer_epoch=batch.epoch,
        base_sequence=batch.seq,
        base_timestamp=time_of(batch.values[0]) if time is None else time,
    )


def produce(topic: str, acks: int, timeout: Micros, data: bytes) -> ProduceRequest:
    """Append a batch."""
    return ProduceRequest(acks, timeout, (ProduceTopic(topic, (ProducePartition(0, data),)),))


def fetch(
    topic: str, off: Offset, max_bytes: int, max_wait: Micros, min_bytes: int
) -> FetchRequest:
    """Read from an offset on, or wait for `min_bytes`."""
    part = FetchPartition(0, off, max_bytes, ANY_EPOCH, ANY_EPOCH)
    return FetchRequest(max_wait, min_bytes, NO_LIMIT, (FetchTopic(topic, (part,)),))


def list_offsets(topic: str, time: Millis) -> ListOffsetsRequest:
    """Ask for an offset by time, or by one of the special times."""
    part = ListOffsetsPartition(0, time, ANY_EPOCH)
    return ListOffsetsRequest((ListOffsetsTopic(topic, (part,)),))


def delete_records(topic: str, off: Offset, timeout: Micros) -> DeleteRecordsRequest:
    """Move the log start."""
    part = DeleteRecordsPartition(0, off)
    return DeleteRecordsRequest((DeleteRecordsTopic(topic, (part,)),), timeout)


def create(topic: str, replicas: int, min_insync: int, timeout: Micros) -> CreateTopicsRequest:
    """Make the topic."""
    configs = (
        ConfigWanted("max.message.bytes", str(MOST_BYTES)),
        ConfigWanted("min.insync.replicas", str(min_insync)),
    )
    return CreateTopicsRequest((TopicWanted(topic, 1, replicas, (), configs),), timeout)


def delete(topic_id: bytes, timeout: Micros) -> DeleteTopicsRequest:
    """Delete the topic that has this id: a request that arrives late deletes no other."""
    return DeleteTopicsRequest(timeout, topics=(TopicNamed(None, topic_id),))
