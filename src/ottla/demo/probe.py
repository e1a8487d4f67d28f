"""A raw idempotent producer that leaves out sequence numbers: the broker must refuse it."""

from __future__ import annotations

import asyncio

from ottla.broker.client import Client, Produced, Producer
from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.errors import ErrorCode
from ottla.demo.ledger import Ack, Failure, Ledger
from ottla.demo.settings import TOPIC

SKIPPED = 5
TRIES = 20
RETRY_SECONDS = 0.1


async def skip_a_sequence(cluster: AsyncCluster, partition: int, ledger: Ledger) -> None:
    """Write one record, leave out `SKIPPED` sequence numbers, write another.

    The first must be stored. The second must be refused with OUT_OF_ORDER_SEQUENCE_NUMBER, and is
    noted as failed. Any other answer is noted as a problem in the ledger.
    """
    producer = await _identity(cluster, partition)
    value = ledger.next_value(partition)
    first = await _produce(cluster, partition, value, producer)
    if first.error is ErrorCode.NONE:
        ledger.acked[partition].append(Ack(value, first.base_offset))
    else:
        ledger.problems.append(f"sequence 0 of a new producer refused: {first.error.name}")
    value = ledger.next_value(partition)
    beyond = producer._replace(sequence=1 + SKIPPED)
    second = await _produce(cluster, partition, value, beyond)
    if second.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
        ledger.failed.append(Failure(value, second.error.name))
    else:
        ledger.problems.append(f"sequence {1 + SKIPPED} after 0 was answered {second.error.name}")


async def _identity(cluster: AsyncCluster, partition: int) -> Producer:
    client = await Client.connect(*cluster.addresses[await cluster.leader(TOPIC, partition)])
    try:
        return await client.init_producer_id()
    finally:
        client.close()


async def _produce(
    cluster: AsyncCluster, partition: int, value: bytes, producer: Producer
) -> Produced:
    """Send one record to the leader; if the leader has just moved, try again, as clients do."""
    answer = None
    for _ in range(TRIES):
        client = await Client.connect(*cluster.addresses[await cluster.leader(TOPIC, partition)])
        try:
            answer = await client.produce(TOPIC, partition, [value], producer=producer)
        finally:
            client.close()
        assert answer is not None, "acks=all is answered"
        if answer.error is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
            break
        await asyncio.sleep(RETRY_SECONDS)
    assert answer is not None, f"{TRIES} tries"
    return answer
