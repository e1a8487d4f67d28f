"""The requests that a step may name, and what each makes of its keys.

Each function reads a table to its end and returns the fields of a request, by kio's names and for
all versions: the codec leaves out what a version does not have. Records are a tuple of `Batch`,
bytes, or null; they become bytes when the case is run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ottla.compare.batches import read_batch_table
from ottla.compare.case import TOPIC
from ottla.compare.tables import Table

NO_TOPIC_ID = "00000000-0000-0000-0000-000000000000"
WHOLE_MEGABYTE = 1 << 20


def produce(told: Table) -> dict[str, Any]:
    """One partition, with the keys of a batch beside it, or `to` with a table for each."""
    acks = told.anything("acks", -1)
    if acks == "all":
        acks = -1
    if isinstance(acks, bool) or not isinstance(acks, int):
        raise told.wrong("acks", f'is {acks!r}; a whole number or "all" is wanted')
    fields: dict[str, Any] = {
        "transactional_id": told.text("transactional_id", None),
        "acks": acks,
        "timeout": told.whole("timeout", 30_000),
        "topic_data": [],
    }
    many = told.take("to", list, "a list of tables", None)
    if many is None:
        fields["topic_data"] = [_produced(told)]
        return fields
    told.done()
    tables = [told.table(f"to[{number}]", each) for number, each in enumerate(many)]
    for each in map(_produced, tables):
        last = fields["topic_data"][-1] if fields["topic_data"] else None
        if last is not None and last["name"] == each["name"]:
            last["partition_data"] += each["partition_data"]
        else:
            fields["topic_data"].append(each)
    return fields


def _produced(told: Table) -> dict[str, Any]:
    topic = told.text("topic", TOPIC)
    topic_id = told.text("topic_id", NO_TOPIC_ID)
    partition = told.whole("partition", 0)
    data = {"index": partition, "records": records(told)}
    return {"name": topic, "topic_id": topic_id, "partition_data": [data]}


def records(told: Table) -> Any:
    """Records by `null`, `bytes`, `batches` or the keys of one batch."""
    if told.truth("null"):
        told.done()
        return None
    if "bytes" in told.names:
        raw = told.hexadecimal("bytes")
        told.done()
        return raw
    if "batches" in told.names:
        many = told.take("batches", list, "a list of tables")
        told.done()
        inside = [told.table(f"batches[{number}]", each) for number, each in enumerate(many)]
        return tuple(map(read_batch_table, inside))
    return (read_batch_table(told),)


def fetch(told: Table) -> dict[str, Any]:
    """One partition from one offset, or none at all with `nothing`."""
    fields: dict[str, Any] = {
        "replica_id": told.whole("replica_id", -1),
        "max_wait": told.whole("max_wait", 0),
        "min_bytes": told.whole("min_bytes", 1),
        "max_bytes": told.whole("max_bytes", WHOLE_MEGABYTE),
        "isolation_level": told.whole("isolation_level", 0),
        "session_id": told.number("session_id", 0),
        "session_epoch": told.whole("session_epoch", -1),
        "topics": [],
        "forgotten_topics_data": [],
        "rack_id": "",
    }
    if not told.truth("nothing"):
        partition = {
            "partition": told.whole("partition", 0),
            "current_leader_epoch": told.number("leader_epoch", -1),
            "fetch_offset": told.number("offset", 0),
            "last_fetched_epoch": told.number("last_fetched_epoch", -1),
            "log_start_offset": told.whole("log_start_offset", -1),
            "partition_max_bytes": told.whole("partition_max_bytes", WHOLE_MEGABYTE),
        }
        topic = {"topic": told.text("topic", TOPIC), "partitions": [partition]}
        fields["topics"] = [{**topic, "topic_id": told.text("topic_id", NO_TOPIC_ID)}]
    told.done()
    return fields


def list_offsets(told: Table) -> dict[str, Any]:
    """One time of one partition."""
    partition = {
        "partition_index": told.whole("partition", 0),
        "current_leader_epoch": told.number("leader_epoch", -1),
        "timestamp": told.number("timestamp", -1),
    }
    fields = {
        "replica_id": told.whole("replica_id", -1),
        "isolation_level": told.whole("isolation_level", 0),
        "topics": [{"name": told.text("topic", TOPIC), "partitions": [partition]}],
        "timeout": 30_000,
    }
    told.done()
    return fields


def metadata(told: Table) -> dict[str, Any]:
    """Topics by name or, with `topic_id`, one by id; never all topics of a broker."""
    by_id = told.text("topic_id", None)
    names = told.texts("topics", [TOPIC] if by_id is None else [])
    topics: list[dict[str, Any]] = [{"topic_id": NO_TOPIC_ID, "name": each} for each in names]
    if by_id is not None:
        topics.append({"topic_id": by_id, "name": None})
    fields = {
        "topics": topics,
        "allow_auto_topic_creation": told.truth("create"),
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": told.truth("operations"),
    }
    told.done()
    return fields


def create_topics(told: Table) -> dict[str, Any]:
    """One topic, or `topics` with a table for each."""
    fields: dict[str, Any] = {
        "timeout": told.whole("timeout", 10_000),
        "validate_only": told.truth("validate_only"),
    }
    many = told.take("topics", list, "a list of tables", None)
    if many is None:
        fields["topics"] = [_created(told)]
        return fields
    told.done()
    tables = [told.table(f"topics[{number}]", each) for number, each in enumerate(many)]
    fields["topics"] = list(map(_created, tables))
    return fields


def _created(told: Table) -> dict[str, Any]:
    configs = told.anything("configs", {})
    inside = told.table("configs", configs)
    named = [{"name": name, "value": inside.text(name)} for name in configs]
    places = told.take("assignments", list, "a list of lists of broker ids", [])
    topic = {
        "name": told.text("name"),
        "num_partitions": told.whole("partitions", -1 if places else 1),
        "replication_factor": told.whole("replication_factor", -1 if places else 1),
        "assignments": [
            {"partition_index": number, "broker_ids": each} for number, each in enumerate(places)
        ],
        "configs": named,
    }
    first = told.whole("first_partition", 0)
    for number, each in enumerate(topic["assignments"]):
        each["partition_index"] = first + number
    told.done()
    return topic


def delete_topics(told: Table) -> dict[str, Any]:
    """Topics by name or, with `topic_id`, one by id."""
    by_id = told.text("topic_id", None)
    names = told.texts("topics", [TOPIC] if by_id is None else [])
    topics: list[dict[str, Any]] = [{"name": each, "topic_id": NO_TOPIC_ID} for each in names]
    if by_id is not None:
        topics.append({"name": None, "topic_id": by_id})
    fields = {"topic_names": names, "topics": topics, "timeout": told.whole("timeout", 10_000)}
    told.done()
    return fields


def delete_records(told: Table) -> dict[str, Any]:
    """The records of one partition below an offset."""
    partition = {
        "partition_index": told.whole("partition", 0),
        "offset": told.number("offset"),
    }
    topic = {"name": told.text("topic", TOPIC), "partitions": [partition]}
    fields = {"topics": [topic], "timeout": told.whole("timeout", 10_000)}
    told.done()
    return fields


def init_producer_id(told: Table) -> dict[str, Any]:
    """A producer id and its epoch."""
    fields = {
        "transactional_id": told.text("transactional_id", None),
        "transaction_timeout": told.whole("transaction_timeout", 0),
        "producer_id": told.number("producer", -1),
        "producer_epoch": told.number("epoch", -1),
        "enable2_pc": False,
        "keep_prepared_txn": False,
    }
    told.done()
    return fields


def api_versions(told: Table) -> dict[str, Any]:
    """Which versions there are."""
    fields = {
        "client_software_name": told.text("software_name", "ottla"),
        "client_software_version": told.text("software_version", "1"),
    }
    told.done()
    return fields


def leader_epoch(told: Table) -> dict[str, Any]:
    """Where an epoch ends."""
    partition = {
        "partition": told.whole("partition", 0),
        "current_leader_epoch": told.number("current", -1),
        "leader_epoch": told.number("epoch"),
    }
    topic = {"topic": told.text("topic", TOPIC), "partitions": [partition]}
    told.done()
    return {"replica_id": -1, "topics": [topic]}


def describe_cluster(told: Table) -> dict[str, Any]:
    """The brokers of the cluster."""
    fields = {
        "include_cluster_authorized_operations": told.truth("operations"),
        "endpoint_type": told.whole("endpoint_type", 1),
        "include_fenced_brokers": told.truth("fenced"),
    }
    told.done()
    return fields


SHORTHANDS: Mapping[str, tuple[str, Callable[[Table], dict[str, Any]]]] = {
    "produce": ("produce", produce),
    "fetch": ("fetch", fetch),
    "list_offsets": ("list_offsets", list_offsets),
    "metadata": ("metadata", metadata),
    "create_topics": ("create_topics", create_topics),
    "delete_topics": ("delete_topics", delete_topics),
    "delete_records": ("delete_records", delete_records),
    "init_producer_id": ("init_producer_id", init_producer_id),
    "api_versions": ("api_versions", api_versions),
    "leader_epoch": ("offset_for_leader_epoch", leader_epoch),
    "describe_cluster": ("describe_cluster", describe_cluster),
}
"""By the word of a step: the API, and the function that reads its table."""
