"""Gathers the evidence: every replica's own log from its store, and what a consumer reads.

The stores are read on the cluster's loop, which only collects references. The entries are decoded
elsewhere, so that the cluster does not miss its heartbeats. The consumer is confluent-kafka's, with
the check of CRCs switched on.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.cluster.events import ClusterEvent
from ottla.broker.node.node import Node
from ottla.demo.audit import Claims, Evidence, LogEntry
from ottla.demo.ledger import Ledger
from ottla.demo.losses import Dropped
from ottla.demo.settings import NODES, PARTITIONS, TOPIC
from ottla.demo.work import Work
from ottla.log.records import records_of
from ottla.log.types import Offset, RecordBatch
from ottla.raft.types import Entry, GroupId, LogIndex, NodeId
from ottla.sim.studies.audit.sequences import Finding, Seen
from ottla.sim.studies.audit.sequences import Ledger as Sequences

READ_BYTES = 4 << 20
SETTLE_SECONDS = 10.0
CONSUME_SECONDS = 30.0
ASK_AGAIN = 0.1
"""Seconds between two requests for a high watermark."""


class Stored(NamedTuple):
    """One partition as read from the stores: committed entries by node."""

    leader: NodeId
    entries: dict[NodeId, list[Entry]]


class Logs:
    """The logs in the stores: per partition, the entries by node and the leader's records."""

    def __init__(self, stored: Iterable[Stored]) -> None:
        self.replicas: list[dict[NodeId, list[LogEntry]]] = []
        self.records: list[dict[Offset, bytes]] = []
        self.findings: list[list[Finding]] = []
        """What is wrong with the sequences in the leader's log."""
        self.batches = 0
        """Stored batches, of all partitions together."""
        for each in stored:
            self.replicas.append(
                {node: list(map(_as_value, found)) for node, found in each.entries.items()}
            )
            leaders = list(_batches(each.entries[each.leader]))
            self.records.append(
                {r.offset: r.value or b"" for batch in leaders for r in records_of(batch)}
            )
            sequences = Sequences()
            self.findings.append(
                [found for batch in leaders for found in sequences.observe(_as_seen(batch))]
            )
            self.batches += len(leaders)


async def settled(cluster: AsyncCluster) -> None:
    """Wait until every replica has applied its whole log, for at most 10 s.

    The audit finds what still differs then.
    """
    for _ in range(round(SETTLE_SECONDS / 0.02)):
        seen = cluster.describe().topics[TOPIC]
        ends = [
            {(each.last_index, each.applied_index) for each in partition.members.values()}
            for partition in seen
        ]
        if all(len(each) == 1 and next(iter(each))[0] == next(iter(each))[1] for each in ends):
            return
        await asyncio.sleep(0.02)


async def read_stores(cluster: AsyncCluster) -> list[Stored]:
    """Read every replica's committed entries back from its node's store.

    `Logs` decodes them elsewhere: decoding here would delay the cluster's heartbeats.
    """
    await settled(cluster)
    found = []
    for partition in range(PARTITIONS):
        seen = cluster.describe().topics[TOPIC][partition]
        entries: dict[NodeId, list[Entry]] = {}
        for node in range(1, NODES + 1):
            life = cluster.node(node)
            group = life.topics()[TOPIC].partitions[partition].group
            entries[node] = _read(life, group, seen.members[node].commit_index)
        found.append(Stored(await cluster.leader(TOPIC, partition), entries))
        await asyncio.sleep(0)
    return found


def _read(node: Node, group: GroupId, commit: LogIndex) -> list[Entry]:
    entries: list[Entry] = []
    while found := node.store.read(group, len(entries) + 1, commit, READ_BYTES):
        entries.extend(found)
    return entries


def _as_value(entry: Entry) -> LogEntry:
    payload = entry.payload
    data = payload.stamped() if isinstance(payload, RecordBatch) else payload
    assert isinstance(data, bytes), f"entry {entry.index} holds {type(data).__name__}"
    digest = hashlib.blake2b(data, digest_size=8).digest()
    return LogEntry(entry.index, entry.term, entry.kind.name, digest)


def _batches(entries: Iterable[Entry]) -> Iterator[RecordBatch]:
    return (entry.payload for entry in entries if isinstance(entry.payload, RecordBatch))


def _as_seen(batch: RecordBatch) -> Seen:
    """A batch in the form that the audit of sequences takes."""
    place = (batch.base_offset, batch.last_offset)
    who = (batch.producer_id, batch.producer_epoch, batch.base_sequence)
    return Seen(*place, *who, batch.record_count, batch.leader_epoch)


def dropped_records(events: Iterable[ClusterEvent]) -> list[Dropped]:
    """Every record that a truncation removed from a replica's log."""
    return [
        Dropped(
            event.at,
            event.partition,
            event.node,
            record.value or b"",
            record.offset,
            entry.index,
            entry.term,
            event.leader,
            event.term,
        )
        for event in events
        if event.kind == "truncated" and event.topic == TOPIC
        for entry in event.dropped
        if isinstance(entry.payload, RecordBatch)
        for record in records_of(entry.payload)
    ]


# --- the consumer ---------------------------------------------------------------------------------


def consume(bootstrap: str) -> list[list[tuple[Offset, bytes]]]:
    """Read every partition from its start to its high watermark, with confluent-kafka.

    A partition whose high watermark cannot be learned stays empty; then the audit fails.
    """
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "demo",
            "enable.auto.commit": False,
            "check.crcs": True,
            "fetch.wait.max.ms": 50,
        }
    )
    try:
        places = [TopicPartition(TOPIC, each, 0) for each in range(PARTITIONS)]
        ends = [high_watermark(consumer, each) for each in places]
        consumer.assign(places)
        return _read_until(consumer, ends)
    finally:
        consumer.close()


def high_watermark(consumer: Any, place: Any, seconds: float = CONSUME_SECONDS) -> Offset:
    """The high watermark of a `TopicPartition`; 0 if it is not known after `seconds`. The request
    is repeated while the partition has no leader or a new one, which happens on a busy machine."""
    from confluent_kafka import KafkaException

    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            _, high = consumer.get_watermark_offsets(place, timeout=10)
        except KafkaException:
            time.sleep(ASK_AGAIN)  # without a leader, a request is refused at once
        else:
            return cast(int, high)
    return 0


def _read_until(consumer: Any, ends: list[Offset]) -> list[list[tuple[Offset, bytes]]]:
    found: list[list[tuple[Offset, bytes]]] = [[] for _ in ends]
    deadline = time.monotonic() + CONSUME_SECONDS
    while time.monotonic() < deadline and any(
        not lane or lane[-1][0] < end - 1 for lane, end in zip(found, ends, strict=True) if end
    ):
        for message in consumer.consume(num_messages=5000, timeout=0.2):
            if message.error() is None:
                found[message.partition()].append((message.offset(), message.value()))
    return found


def _refused(work: Work, ledger: Ledger, partition: int) -> list[bytes]:
    """Values that the broker refused for good; only the raw producer has any."""
    if ledger is not work.probe:
        return []
    sent = frozenset(ledger.sent[partition])
    return [each.value for each in ledger.failed if each.value in sent]


def evidence(work: Work, logs: Logs, consumed: list[list[tuple[Offset, bytes]]]) -> list[Evidence]:
    """The evidence about every partition, for the audit."""
    return [
        Evidence(
            partition,
            [
                Claims(
                    ledger.producer,
                    ledger.sent[partition],
                    ledger.acked[partition],
                    _refused(work, ledger, partition),
                )
                for ledger in work.ledgers
            ],
            logs.records[partition],
            logs.replicas[partition],
            consumed[partition],
            logs.findings[partition],
        )
        for partition in range(PARTITIONS)
    ]
