"""Topics with known batches, for tests of the data source and of the audit.

`write` sends batches with exactly the given sequences. `anomalous` is a cluster that remembers a
single producer. So a producer that comes after another one is unknown, and its sequence is
accepted. In this way a test can make gaps and duplicates in a log over the wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from ottla import Cluster, Topic
from ottla.broker.client import PLAIN, Client, Producer
from ottla.broker.errors import ErrorCode


class Sent(NamedTuple):
    """One batch to send; with `first` below 0 by a producer without an id."""

    partition: int
    producer: int
    first: int
    values: Sequence[bytes]
    epoch: int = 0


def batch(partition: int, producer: int, first: int, size: int, epoch: int = 0) -> Sent:
    """A batch whose records are the sequences they have."""
    values = [b"%d" % (first + n) for n in range(size)]
    return Sent(partition, producer, first, values, epoch)


def plain(partition: int, size: int) -> Sent:
    """A batch of a producer without an id."""
    return Sent(partition, -1, -1, [b"plain"] * size)


def write(cluster: Cluster, topic: str, batches: Sequence[Sent]) -> None:
    """Send each batch to its leader and wait for its answer. A refusal fails the test."""
    asyncio.run(_write(cluster, topic, batches))


async def _write(cluster: Cluster, topic: str, batches: Sequence[Sent]) -> None:
    clients: dict[int, Client] = {}
    for sent in batches:
        leader = await asyncio.to_thread(cluster.leader, topic, sent.partition)
        if leader not in clients:
            clients[leader] = await Client.connect(*cluster.addresses[leader])
        who = PLAIN if sent.first < 0 else Producer(sent.producer, sent.epoch, sent.first)
        answer = await clients[leader].produce(topic, sent.partition, sent.values, producer=who)
        assert answer is not None, "acks=all is answered"
        assert answer.error is ErrorCode.NONE, f"{sent}: {answer.error.name}"
    for client in clients.values():
        client.close()


def anomalous(**settings: Any) -> Cluster:
    """A cluster with topic t of two partitions, which anomalies can be written to."""
    topics = [Topic("t", partitions=2)]
    return Cluster(nodes=1, topics=topics, max_producers=1, **settings)


ANOMALIES = (
    batch(0, 1, 0, 5),
    batch(0, 2, 3, 2),  # 0 to 2 are missing
    batch(0, 1, 0, 5),  # again
    batch(0, 2, 0, 2),  # late
    batch(1, 1, 0, 4),
    plain(1, 6),
    batch(1, 1, 4, 4),
)
FOUND = (
    "gap t-0 producer 2 epoch 0: sequences 0 to 2, 3 missing before offset 5",
    "duplicate t-0 producer 1 epoch 0: sequences 0 to 4, 5 again at offset 7",
    "reorder t-0 producer 2 epoch 0: sequences 0 to 1, 2 late at offset 12",
)
"""What an audit says of it, beside the summary."""
SUMMARY = (
    "t: 22 records of 2 producers in 2 partitions: 1 missing, 5 duplicated, 2 out of order; "
    "6 records without a producer id not audited"
)
