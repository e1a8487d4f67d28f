"""A raw idempotent producer that leaves out sequence numbers: the broker must refuse it."""

from __future__ import annotations

from ottla.broker.client import Client
from ottla.broker.errors import ErrorCode
from ottla.demo.ledger import Ack, Failure, Ledger
from ottla.demo.settings import TOPIC

SKIPPED = 5


async def skip_a_sequence(address: tuple[str, int], partition: int, ledger: Ledger) -> None:
    """Write one record, leave out `SKIPPED` sequence numbers, write another.

    The first must be stored; the second must be refused with OUT_OF_ORDER_SEQUENCE_NUMBER and is
    noted as failed. Anything else is a problem in the ledger.
    """
    client = await Client.connect(*address)
    try:
        producer = await client.init_producer_id()
        value = ledger.next_value(partition)
        first = await client.produce(TOPIC, partition, [value], producer=producer)
        assert first is not None, "acks=all is answered"
        if first.error is ErrorCode.NONE:
            ledger.acked[partition].append(Ack(value, first.base_offset))
        else:
            ledger.problems.append(f"sequence 0 of a new producer refused: {first.error.name}")
        value = ledger.next_value(partition)
        beyond = producer._replace(sequence=1 + SKIPPED)
        second = await client.produce(TOPIC, partition, [value], producer=beyond)
        assert second is not None, "acks=all is answered"
        if second.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            ledger.failed.append(Failure(value, second.error.name))
        else:
            ledger.problems.append(
                f"sequence {1 + SKIPPED} after 0 was answered {second.error.name}"
            )
    finally:
        client.close()
