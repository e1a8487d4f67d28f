"""The audit after a test with faults: all records are read back and compared with the answers.

| check | holds when | for |
|---|---|---|
| nothing lost | every acknowledged value is read at its acknowledged offset | acks=all |
| nothing twice | no value is at two offsets | idempotent |
| nothing moved | a writer's values are in the order of sending | idempotent |
| nothing refused | no record failed, no client gave up | idempotent |
| nothing invented | every value was sent, and not refused for good | all |
| no holes | offsets run from the log start to the high watermark | all |
| replicas agree | every replica that runs has the leader's log end and high watermark | all |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import confluent_kafka as ck

from clients_kits import WAIT, quiet
from clients_patience import until
from clients_writers import UNKNOWN, Writer

Log = Mapping[int, bytes]
"""Value by offset, of one partition."""


def settled(cluster: Any, topic: str) -> None:
    """Wait until every partition is led and every replica that runs has caught up."""

    def agree() -> bool:
        return all(
            each.leader
            and len(each.members) == len(each.replicas)
            and {(m.high_watermark, m.log_end_offset) for m in each.members.values()}
            == {(each.high_watermark, each.high_watermark)}
            for each in cluster.describe().topics[topic]
        )

    until(f"agreement of the replicas of {topic}", agree)


def read_back(cluster: Any, topic: str) -> dict[int, Log]:
    """Everything between log start and high watermark, partition by partition."""
    settled(cluster, topic)
    described = cluster.describe().topics[topic]
    consumer = ck.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "unused",
            "enable.auto.commit": False,
            "logger": quiet,
        }
    )
    consumer.assign(
        [ck.TopicPartition(topic, each.partition, each.log_start_offset) for each in described]
    )
    logs: dict[Any, dict[Any, Any]] = {each.partition: {} for each in described}
    missing = sum(each.high_watermark - each.log_start_offset for each in described)
    while missing:
        messages = consumer.consume(min(missing, 5000), WAIT)
        assert messages, f"{missing} records of {topic} are not to be read"
        for message in messages:
            assert message.error() is None, message.error()
            logs[message.partition()][message.offset()] = message.value()
            missing -= 1
    consumer.close()
    for each in described:
        wanted = list(range(each.log_start_offset, each.high_watermark))
        assert sorted(logs[each.partition]) == wanted, f"holes in {topic}-{each.partition}"
    return {partition: logs[partition] for partition in sorted(logs)}


def lost(log: Log, writer: Writer, partition: int) -> list[Any]:
    """Acknowledged records that are not where they were said to be, or nowhere (promise-K4)."""
    present = frozenset(log.values())
    return [
        ack
        for ack in writer.acked[partition]
        if (log.get(ack.offset) != ack.value if ack.offset != UNKNOWN else ack.value not in present)
    ]


def numbers(log: Log, writer: Writer, partition: int) -> list[int]:
    """The numbers of a writer's values as they lie in the log."""
    mine = f"{writer.name}:{partition}:".encode()
    return [int(log[at].rsplit(b":", 1)[1]) for at in sorted(log) if log[at].startswith(mine)]


def audit(cluster: Any, topic: str, writers: Iterable[Writer]) -> dict[int, Log]:
    """Assert all that the module's table says of these writers, who wrote to `topic`."""
    logs = read_back(cluster, topic)
    known: set[bytes] = set()
    for writer in writers:
        assert not writer.problems, f"{writer.name}: {writer.problems}"
        if writer.strict:
            assert not writer.failed, f"{writer.name}: {writer.failed[:5]}"
        refused = {value for value, _ in writer.failed if writer.strict}
        for partition, log in logs.items():
            known.update(value for value in writer.sent[partition] if value not in refused)
            found = lost(log, writer, partition) if writer.strict else []
            assert not found, f"{topic}-{partition}: {len(found)} lost: {found[:10]}"
            order = numbers(log, writer, partition)
            if writer.strict:
                expected = list(range(len(writer.sent[partition])))
                assert order == expected, f"{topic}-{partition}: {_first_wrong(order, expected)}"
    strangers = [v for log in logs.values() for v in log.values() if v not in known]
    assert not strangers, f"nobody sent {strangers[:10]}"
    return logs


def present(logs: Mapping[int, Log], writer: Writer) -> list[Any]:
    """Acknowledged records of a plain writer with acks=all that are not in the log at all."""
    return [
        ack
        for partition, log in logs.items()
        for values in (frozenset(log.values()),)
        for ack in writer.acked[partition]
        if ack.value not in values
    ]


def _first_wrong(order: list[int], expected: list[int]) -> str:
    for at, (found, wanted) in enumerate(zip(order, expected, strict=False)):
        if found != wanted:
            return f"number {wanted} wanted at place {at}, found {order[at : at + 5]}"
    return f"{len(order)} records found, {len(expected)} wanted"
