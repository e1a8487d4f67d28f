"""Fetch requests over the wire, for tests of what they are answered with.

Bytes of one batch that `fill` produces with one record are `ONE`.
"""

from typing import Any

from ottla.broker.client import Client, split_batches
from ottla.log.build import build_batch

ONE = len(build_batch([b"v" * 100]))


async def fill(client: Client, batches: int, partition: int = 0, records: int = 1) -> None:
    """Produce so many batches of so many records to topic t."""
    for _ in range(batches):
        await client.produce("t", partition, [b"v" * 100] * records)


def fetch(client: Client, *parts: Any, version: int = 11, wait: int = 0, **fields: Any) -> Any:
    """Fetch (topic, partition, offset[, partition_max_bytes[, leader epoch]])..."""
    topics = []
    for topic, partition, offset, *more in parts:
        wanted = {
            "partition": partition,
            "fetch_offset": offset,
            "partition_max_bytes": more[0] if more else 1 << 20,
            "current_leader_epoch": more[1] if len(more) > 1 else -1,
        }
        topics.append({"topic": topic, "partitions": [wanted]})
    defaults = {"min_bytes": 1, "max_bytes": 1 << 20, "forgotten_topics_data": []}
    return client.send("fetch", version, **defaults | {"max_wait": wait, "topics": topics} | fields)


def only(response: Any) -> Any:
    """The one partition of an answer."""
    ((part,),) = (topic.partitions for topic in response.responses)
    return part


def offsets(part: Any) -> list[int]:
    """Base offsets of the whole batches in it."""
    return [batch.base_offset for batch in split_batches(part.records)]
