"""What the guard in front of the codec costs, beside what the codec takes for the same body.

Times are of CPU, the least of several passes: another process on the machine only adds. Bodies are
those of small, usual and the largest requests.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kio.serial import entity_reader

from bench.measure import Outcome, Report
from ottla.broker.wire.codec import Schema, request_schema
from ottla.broker.wire.guard import Guard
from ottla.broker.wire.walk import REQUEST_LIMITS

LONGEST_MS = 15.0
"""A check of the largest body runs in one turn of the loop."""


@dataclass(slots=True)
class Plan:
    """How much is measured."""

    passes: int
    seconds: float
    """Of CPU, for a pass."""


FULL = Plan(7, 0.1)
QUICK = Plan(2, 0.005)


def run(plan: Plan) -> Report:
    """Small bodies, and the largest that are allowed."""
    most = REQUEST_LIMITS.elements
    named = most // 2
    wanted = most - 3  # beside a topic: a name and an array
    created = most // 4  # a name and two arrays each
    outcomes = [
        _measured(plan, "Metadata 1, 10 names", *metadata(1, 10)),
        _measured(plan, "Metadata 12, 10 names", *metadata(12, 10)),
        _measured(plan, "Fetch 11, 50 partitions", *fetch(11, 50)),
        _measured(plan, "Fetch 12, 50 partitions", *fetch(12, 50)),
        _measured(plan, "Produce 9, 50 partitions", *produce(50)),
        _measured(plan, f"Metadata 12, {named:,} names", *metadata(12, named), largest=True),
        _measured(plan, f"Fetch 12, {wanted:,} partitions", *fetch(12, wanted), largest=True),
        _measured(
            plan, f"CreateTopics 7, {created:,} topics", *create_topics(created), largest=True
        ),
    ]
    return Report("guard", outcomes)


def metadata(version: int, count: int) -> tuple[Schema, bytes]:
    """A Metadata request of so many names."""
    schema = request_schema(3, version)
    topics = [{"name": f"topic-{number}", "topic_id": bytes(16)} for number in range(count)]
    return schema, schema.write(
        schema.build(
            topics=topics,
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
    )


def fetch(version: int, count: int) -> tuple[Schema, bytes]:
    """A Fetch of so many partitions of one topic."""
    schema = request_schema(1, version)
    wanted = [
        {"partition": number, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        for number in range(count)
    ]
    fields: dict[str, Any] = {"max_wait": 500, "min_bytes": 1, "forgotten_topics_data": ()}
    topics = [{"topic": "topic", "partitions": wanted}]
    return schema, schema.write(schema.build(topics=topics, **fields))


def produce(count: int) -> tuple[Schema, bytes]:
    """A Produce of 200 bytes to each of so many partitions of one topic."""
    schema = request_schema(0, 9)
    data = [{"index": number, "records": bytes(200)} for number in range(count)]
    topics = [{"name": "topic", "partition_data": data}]
    fields = {"transactional_id": None, "acks": -1, "timeout": 30_000}
    return schema, schema.write(schema.build(topic_data=topics, **fields))


def create_topics(count: int) -> tuple[Schema, bytes]:
    """A CreateTopics of so many topics: nothing of an element is of fixed size."""
    schema = request_schema(19, 7)
    rest = {"num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": ()}
    topics = [rest | {"name": f"topic-{number}"} for number in range(count)]
    return schema, schema.write(schema.build(topics=topics, timeout=1, validate_only=True))


def _measured(
    plan: Plan, name: str, schema: Schema, body: bytes, *, largest: bool = False
) -> Outcome:
    frame = memoryview(body)
    guard = Guard(schema.cls, REQUEST_LIMITS)
    read = entity_reader(schema.cls)
    checked = _least_seconds(plan, lambda: guard.check(frame, 0))
    decoded = _least_seconds(plan, lambda: read(frame, 0))
    unit, times = ("ms", 1e3) if largest else ("us", 1e6)
    return Outcome(
        name,
        checked * times,
        unit,
        LONGEST_MS if largest else None,
        note=f"{len(body):,} bytes; the codec takes {decoded * times:.1f} {unit}",
        details={"codec": decoded * times},
    )


def _least_seconds(plan: Plan, call: Callable[[], object]) -> float:
    """Of CPU, for one call."""
    call()
    least = float("inf")
    for _ in range(plan.passes):
        calls, spent, began = 0, 0.0, time.process_time()
        while spent < plan.seconds:
            call()
            calls += 1
            spent = time.process_time() - began
        least = min(least, spent / calls)
    return least
