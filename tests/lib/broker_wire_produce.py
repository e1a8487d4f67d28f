"""Produce requests over the wire, with batches that are damaged on purpose, and their answers."""

import struct
from typing import Any

from broker_fake_host import FakeHost
from ottla.broker.client import Client
from ottla.log.build import build_batch, seal

GOOD = build_batch([b"value"])


def patched(at: int, data: bytes, batch: bytes = GOOD) -> bytes:
    """A batch with other bytes from `at` on, and the CRC that belongs to them."""
    return seal(batch[:at] + data + batch[at + len(data) :])


def length_field(value: int) -> bytes:
    """A good batch that claims another length."""
    return GOOD[:8] + struct.pack(">i", value) + GOOD[12:]


def request(
    client: Client,
    *parts: tuple[str, int, bytes | None],
    acks: int = -1,
    version: int = 9,
    timeout: int = 1000,
    txn: str | None = None,
) -> Any:
    """Produce (topic, partition, records)... as one request."""
    return client.send(
        "produce",
        version,
        transactional_id=txn,
        acks=acks,
        timeout=timeout,
        topic_data=[
            {"name": topic, "partition_data": [{"index": index, "records": records}]}
            for topic, index, records in parts
        ],
    )


def answers(response: Any) -> dict[tuple[str, int], Any]:
    """What is answered for each partition."""
    return {
        (topic.name, part.index): part
        for topic in response.responses
        for part in topic.partition_responses
    }


def errors(response: Any) -> dict[tuple[str, int], Any]:
    """The error of each partition."""
    return {key: part.error_code for key, part in answers(response).items()}


def ends(host: FakeHost, topic: str = "t") -> list[int]:
    """Where the three partitions end."""
    return [host.replicas[topic, p].high_watermark for p in range(3)]
