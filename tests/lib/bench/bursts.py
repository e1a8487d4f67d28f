"""What a burst of produce requests costs in bytecode instructions. They are counted, so other work
on the machine does not change the figure.

A cluster of three nodes, with logs in memory and without heartbeats, gets its requests without a
socket, while the clock stands still. Bytes go into the leader's connection as asyncio would pass
them, and the loop runs until the answers are written. Only instructions of Ottla's own modules
count, on all three replicas, not those of asyncio and C code. The median is reported, because now
and then a burst also makes a snapshot.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
from types import FrameType
from typing import Any, Self

from bench.measure import Outcome, Report
from ottla.broker.client import Exchange
from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.event_loop.clockwork import AsyncioClockwork, Cancel, RunningClock
from ottla.broker.event_loop.native import Writer
from ottla.broker.wire.client_requests import API_KEYS
from ottla.broker.wire.connection import Connection
from ottla.broker.wire.server import Server
from ottla.log.build import build_batch
from ottla.raft.types import Micros

TOPIC = "bursts"
RECORD_BYTES = 1_000
WARM_UP = 20
SETTLED_AFTER = 20
"""Rounds of the loop in which a burst is answered and followers hear of the commit."""
TIME: Micros = 1_000_000
STILL: dict[str, Any] = {"heartbeat_ms": 30_000, "election_timeout_ms": 60_000}
OWN_CODE = ("/broker/", "/raft/", "/idempotency/", "/log/")
"""Folders whose instructions count."""


@dataclass(slots=True)
class Plan:
    """How many bursts of each kind are counted."""

    bursts: int


FULL = Plan(51)
QUICK = Plan(5)


class _Standing(AsyncioClockwork):
    """A clock that stands still: calls that are due now are made, later ones never."""

    def __init__(self, loop: asyncio.AbstractEventLoop, writer: Writer | None = None):
        super().__init__(RunningClock(loop, TIME), writer)
        self.now = lambda: TIME

    def call_at(self, when: Micros, call: Callable[[], None]) -> Cancel:
        """Soon, or never."""
        return self._loop.call_soon(call).cancel if when <= TIME else _nothing


def _standing(writer: Writer | None) -> _Standing:
    return _Standing(asyncio.get_running_loop(), writer)


def _nothing() -> None:
    """There is nothing to cancel."""


class Silent(asyncio.Transport):
    """A client's side without a socket: takes answers and counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = 0

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Count the answers in these bytes; each begins with its length."""
        at = 0
        while at < len(data):
            at += 4 + int.from_bytes(data[at : at + 4], "big")
            self.answers += 1

    def is_closing(self) -> bool:
        """It never is."""
        return False

    def pause_reading(self) -> None:
        """Nothing is read."""

    def resume_reading(self) -> None:
        """Nothing is read."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is no buffer."""

    def close(self) -> None:
        """Nothing is open."""

    def abort(self) -> None:
        """Nothing is open."""


class _Counter:
    """Counts instructions of Ottla's own modules while it is on."""

    def __init__(self) -> None:
        self.found = 0

    def _count(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if not any(each in frame.f_code.co_filename for each in OWN_CODE):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        self.found += event == "opcode"
        return self._count

    def __enter__(self) -> Self:
        sys.settrace(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)


def run(plan: Plan) -> Report:
    """Bursts of one and of five requests, plain and idempotent."""
    outcomes = []
    for name, requests, producer in (
        ("burst of 1", 1, False),
        ("burst of 5", 5, False),
        ("burst of 5, idempotent", 5, True),
    ):
        counts = asyncio.run(_count_bursts(plan.bursts, requests, idempotent=producer))
        note = f"{min(counts):,} to {max(counts):,}"
        outcomes.append(Outcome(name, median(counts), "instructions", note=note))
    return Report("bursts", outcomes)


@asynccontextmanager
async def standing_leader() -> AsyncIterator[tuple[Connection, Silent]]:
    """A connection to the leader of a topic, and what its answers go to; see the module's text."""
    cluster = AsyncCluster(nodes=3, clockwork=_standing, **STILL)
    await cluster.start()
    try:
        await cluster.create_topic(TOPIC, partitions=1, replication_factor=3)
        leader = await cluster.leader(TOPIC)
        server = cluster.node(leader).server
        assert isinstance(server, Server), f"node {leader} listens by {server!r}"
        connection = server.accept()
        transport = Silent()
        connection.connection_made(transport)
        yield connection, transport
    finally:
        await cluster.stop()


async def _count_bursts(bursts: int, requests: int, *, idempotent: bool) -> list[int]:
    """Instructions of each burst."""
    async with standing_leader() as (connection, transport):
        exchange = Exchange()
        found = []
        for number in range(WARM_UP + bursts):
            sent = frames(exchange, range(number * requests, (number + 1) * requests), idempotent)
            with _Counter() as counter:
                await deliver(connection, transport, sent, requests)
            found.append(counter.found)
        return found[WARM_UP:]


def frames(exchange: Exchange, sequences: Sequence[int], idempotent: bool) -> bytes:
    """The requests of a burst, one batch of one record each."""
    found = []
    for sequence in sequences:
        values = [b"x" * RECORD_BYTES]
        if idempotent:
            records = build_batch(values, producer_id=7, producer_epoch=0, base_sequence=sequence)
        else:
            records = build_batch(values)
        fields = {
            "transactional_id": None,
            "acks": -1,
            "timeout": 30_000,
            "topic_data": [{"name": TOPIC, "partition_data": [{"index": 0, "records": records}]}],
        }
        found.append(exchange.request(API_KEYS["produce"], 9, fields)[1])
    return b"".join(found)


async def deliver(connection: Connection, transport: Silent, sent: bytes, requests: int) -> None:
    """Hand the bytes over and wait for all answers."""
    wanted = transport.answers + requests
    buffer = connection.get_buffer(len(sent))
    buffer[: len(sent)] = sent
    connection.buffer_updated(len(sent))
    for _ in range(SETTLED_AFTER):
        await asyncio.sleep(0)
    assert transport.answers == wanted, f"{transport.answers} answers, {wanted} wanted"
