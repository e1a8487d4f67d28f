"""The longest turn of the loop that one client can bring about, by what it sends.

Each *attack* is a valid request with the largest possible body (or a small one that asks for much),
sent to a cluster of three nodes on one loop. The CPU time of the loop's own thread between two
polls of its sockets is measured. Clients run in a thread of their own, with bytes that were made
before. At the same time, a well-behaved client sends small requests, one after the other. Its 99th
percentile is wall time, so it means something only on a quiet machine.

Python's collector is not changed. A full collection takes time for all objects of the process, and
comes when a quarter as many have been added. One is made before each attack, so that another one
during the attack is caused by it. The collector's part of the longest turn is reported, too.
"""

from __future__ import annotations

import asyncio
import gc
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import quantiles
from struct import Struct
from typing import Any, Self

from bench.measure import Outcome, Report
from ottla.broker.client import Exchange
from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.cluster.cluster import Cluster
from ottla.broker.wire.client_requests import API_KEYS
from ottla.log.build import build_batch

NODES = 3
TARGET_MS = 50.0
PATIENCE_S = 120.0
TOPIC = "t"
WIDE = "wide"
SMALL = "small"
NOBODY = "nobody"
"""No topic."""
KNOWN = {"include_topic_authorized_operations": True}

_SIZE = Struct(">i")


@dataclass(slots=True)
class Plan:
    """How large the attacks are: elements of a body, and partitions of a topic."""

    elements: int
    partitions: int
    clients: int

    @property
    def names(self) -> int:
        """The most that a body may have: each counts as two elements."""
        return self.elements // 2 - 2


FULL_COLLECTION = 2
"""The oldest of the collector's generations."""
FULL = Plan(20_000, 1_000, 50)
QUICK = Plan(400, 40, 5)
FIELDS: dict[str, Any] = {"transactional_id": None, "acks": -1, "timeout": 30_000}
"""Of a Produce."""


@dataclass(slots=True)
class Turn:
    """CPU seconds of one turn of the loop, and what Python's collector had of them."""

    whole: float = 0.0
    young: float = 0.0
    full: float = 0.0

    @property
    def note(self) -> str:
        """What the collector had."""
        collector = {"a full collection": self.full, "young ones": self.young}
        return ", ".join(f"{1000 * each:.0f} ms {n}" for n, each in collector.items() if each)


class Watch(selectors.DefaultSelector):
    """Sees the turns of a loop: what lies between two looks at its sockets."""

    def __init__(self) -> None:
        super().__init__()
        self.longest = Turn()
        """The longest turn since `forget`."""
        self._turn = Turn()
        self._since = self._collecting = time.thread_time()
        self._thread = threading.get_ident()
        gc.callbacks.append(self._collected)

    def forget(self) -> None:
        """What was until now."""
        self.longest = Turn()

    def close(self) -> None:
        """No more turns."""
        gc.callbacks.remove(self._collected)
        super().close()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Look at the sockets: one turn is over, the next begins."""
        self._turn.whole = time.thread_time() - self._since
        if self._turn.whole > self.longest.whole:
            self.longest = self._turn
        found = super().select(timeout)
        self._turn, self._since = Turn(), time.thread_time()
        return found

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._collecting = time.thread_time()
            return
        spent = time.thread_time() - self._collecting
        if info["generation"] == FULL_COLLECTION:
            self._turn.full += spent
        else:
            self._turn.young += spent


Address = tuple[str, int]
Attack = Callable[[Address], None]
Named = tuple[str, Attack, str]
"""How an attack is called, and the topic whose leader it goes to."""


def frame(api: str, version: int, **fields: Any) -> bytes:
    """One request."""
    return Exchange().request(API_KEYS[api], version, fields)[1]


def send(*frames: bytes, clients: int = 1) -> Attack:
    """So many clients send these, at once, and take their answers."""

    def attack(address: Address) -> None:
        connections = [socket.create_connection(address, PATIENCE_S) for _ in range(clients)]
        writers = [
            threading.Thread(target=each.sendall, args=(b"".join(frames),)) for each in connections
        ]
        for writer in writers:
            writer.start()
        for connection in connections:
            for _ in frames:
                _take_answer(connection)
        for writer in writers:
            writer.join()
        for connection in connections:
            connection.close()

    return attack


def _take_answer(connection: socket.socket) -> None:
    (size,) = _SIZE.unpack(_exactly(connection, 4))
    _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view, at = memoryview(data), 0
    while at < size:
        got = connection.recv_into(view[at:])
        assert got, f"the broker closed {size - at} bytes before the end of its answer"
        at += got
    return data


# ---- what is sent


def attacks(plan: Plan) -> Iterator[Named]:
    """All attacks; topics `t` (60 MB of records), `small` (small batches) and `wide` stand."""
    others = (*_produces(plan), *_groups(plan), *_topics(plan))
    for name, attack in (*_metadata(plan), *_reads(plan), *others):
        yield name, attack, SMALL if "small batches" in name else TOPIC


def _metadata(plan: Plan) -> Iterator[tuple[str, Attack]]:
    def named(version: int, count: int, create: bool) -> bytes:
        topics = [{"topic_id": None, "name": f"x{n}"} for n in range(count)]
        return frame("metadata", version, topics=topics, allow_auto_topic_creation=create, **KNOWN)

    everything = frame("metadata", 12, topics=None, allow_auto_topic_creation=False, **KNOWN)
    many = named(12, plan.names, create=False)
    yield "Metadata, unknown names", send(many)
    fewer = named(12, plan.names // 5, create=False)
    yield f"Metadata, unknown names, {plan.clients} clients", send(fewer, clients=plan.clients)
    odd = [{"topic_id": None, "name": f"{n:06}" + "\u6f22" * 94} for n in range(plan.names)]
    yield (
        "Metadata, 3 MB of names beyond ASCII",
        send(frame("metadata", 12, topics=odd, allow_auto_topic_creation=False, **KNOWN)),
    )
    yield "Metadata of all topics", send(everything)
    yield "Metadata of all topics, 32 at once", send(*[everything] * 32)
    yield "Metadata, names to be created", send(named(12, plan.partitions, create=True))


def _reads(plan: Plan) -> Iterator[tuple[str, Attack]]:
    def fetch(topic: str, partitions: int, most: int = 1 << 20) -> bytes:
        wanted = [
            {"partition": n, "fetch_offset": 0, "partition_max_bytes": most}
            for n in range(partitions)
        ]
        topics = [{"topic": topic, "partitions": wanted}]
        fields = {"max_wait": 200, "min_bytes": 1, "max_bytes": most, "topics": topics}
        return frame("fetch", 12, **fields, forgotten_topics_data=[])

    absent = plan.elements - 4
    yield "Fetch, unknown partitions", send(fetch(NOBODY, absent))
    yield "Fetch, idle partitions", send(fetch(WIDE, plan.partitions))
    yield "Fetch of 2 GiB", send(fetch(TOPIC, 1, 2**31 - 1))
    small = fetch(SMALL, 1, 2**31 - 1)
    yield "Fetch of 2 GiB in small batches", send(small)
    most = plan.clients * 3 // 5
    yield f"Fetch of 2 GiB in small batches, {most} clients", send(small, clients=most)
    yield "Fetch of 1 MiB in small batches, 64 at once", send(*[fetch(SMALL, 1)] * 64)

    def each(api: str, version: int, part: Callable[[int], Any], **fields: Any) -> Iterator[bytes]:
        name = "topic" if api == "offset_for_leader_epoch" else "name"
        for topic, count in ((NOBODY, absent), (WIDE, plan.partitions)):
            parts = [part(n) for n in range(count)]
            yield frame(api, version, topics=[{name: topic, "partitions": parts}], **fields)

    def at(n: int) -> dict[str, Any]:
        return {"partition_index": n, "timestamp": 5}

    def epoch(n: int) -> dict[str, Any]:
        return {"partition": n, "leader_epoch": 0, "current_leader_epoch": -1}

    def delete(n: int) -> dict[str, Any]:
        return {"partition_index": n, "offset": -1}

    for name, frames in (
        ("ListOffsets", each("list_offsets", 6, at, replica_id=-1, isolation_level=0)),
        ("OffsetForLeaderEpoch", each("offset_for_leader_epoch", 4, epoch, replica_id=-1)),
        ("DeleteRecords", each("delete_records", 2, delete, timeout=5000)),
    ):
        for what, found in zip(("unknown", "idle"), frames, strict=True):
            yield f"{name}, {what} partitions", send(found)
            if name == "ListOffsets":
                yield f"{name}, {what} partitions, 5 clients", send(found, found, clients=5)


def _produces(plan: Plan) -> Iterator[tuple[str, Attack]]:
    half = plan.elements // 2 - 2  # what each of them weighs (`ottla.broker.wire.guard`)

    def produce(topic: str, partitions: int, records: bytes | None) -> bytes:
        data = [{"index": n, "records": records} for n in range(partitions)]
        topics = [{"name": topic, "partition_data": data}]
        return frame("produce", 9, **FIELDS, topic_data=topics)

    yield "Produce, unknown partitions", send(produce(NOBODY, half, b"x"))
    yield "Produce, partitions without records", send(produce(NOBODY, half, None))
    empty = [{"name": f"x{n}", "partition_data": []} for n in range(plan.elements // 3)]
    yield (
        "Produce, topics without partitions",
        send(frame("produce", 9, **FIELDS, topic_data=empty)),
    )
    small = build_batch([b"value"])
    yield "Produce, a batch for each partition", send(produce(WIDE, plan.partitions, small))
    large = build_batch([bytes(1_000_000)])
    yield "Produce, 1 MB for each of 90", send(produce(WIDE, min(plan.partitions, 90), large))
    huge = build_batch([bytes(90_000_000)])
    yield "Produce, 90 MB for one", send(produce(TOPIC, 1, huge))
    yield "Produce, 90 MB for one that does not take them", send(produce(SMALL, 1, huge))
    yield "Produce, 90 MB for nobody", send(produce(NOBODY, 1, huge))


def _groups(plan: Plan) -> Iterator[tuple[str, Attack]]:
    names = [f"g{n}" for n in range(plan.names)]
    asked = {"include_authorized_operations": False}
    yield "DescribeGroups", send(frame("describe_groups", 5, groups=names, **asked))
    yield "DeleteGroups", send(frame("delete_groups", 2, groups_names=names))
    keys = {"key_type": 0, "coordinator_keys": names}
    yield "FindCoordinator", send(frame("find_coordinator", 4, **keys))
    parts = [{"name": "t", "partition_indexes": list(range(plan.elements - 9))}]
    groups = [{"group_id": "g", "topics": parts}]
    yield "OffsetFetch", send(frame("offset_fetch", 8, groups=groups, require_stable=False))


def _topics(plan: Plan) -> Iterator[tuple[str, Attack]]:
    def create(count: int, dry: bool, **fields: Any) -> bytes:
        topic = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
        topics = [topic | {"name": f"made{n}"} | fields for n in range(count)]
        return frame("create_topics", 7, topics=topics, timeout=60_000, validate_only=dry)

    def delete(names: list[str]) -> bytes:
        topics = [{"name": name, "topic_id": None} for name in names]
        return frame("delete_topics", 6, topics=topics, timeout=60_000)

    count = plan.elements - 8
    yield "CreateTopics, validated only", send(create(plan.elements // 4, dry=True))
    configs = [{"name": f"c{n}", "value": "v"} for n in range(count // 4)]
    yield "CreateTopics, configs", send(create(1, dry=True, configs=configs))
    replicas = [{"partition_index": n, "broker_ids": [1]} for n in range(count // 2)]
    own = {"num_partitions": -1, "replication_factor": -1, "assignments": replicas}
    yield "CreateTopics, assignments", send(create(1, dry=True, **own))
    yield "CreateTopics, created", send(create(plan.partitions, dry=False))
    wide = {"num_partitions": plan.partitions, "replication_factor": 3}
    yield "CreateTopics, a wide one", send(create(1, dry=False, **wide, name="wider"))
    yield "DeleteTopics, unknown names", send(delete([f"n{n}" for n in range(plan.names)]))
    yield (
        "DeleteTopics, all that were made",
        send(delete(["wider", *(f"made{n}" for n in range(plan.partitions))])),
    )


# ---- what is measured


class Polite:
    """A client that sends small requests, one behind the other, in a thread of its own."""

    def __init__(self, address: Address):
        self.waited: list[float] = []
        self._address = address
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    async def __aenter__(self) -> Self:
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._over.set()
        await asyncio.to_thread(self._thread.join)

    def _ask(self) -> None:
        asks = frame(
            "list_offsets",
            1,
            replica_id=-1,
            topics=[{"name": TOPIC, "partitions": [{"partition_index": 0, "timestamp": -1}]}],
        )
        with socket.create_connection(self._address, PATIENCE_S) as connection:
            while not self._over.is_set():
                began = time.monotonic()
                connection.sendall(asks)
                _take_answer(connection)
                self.waited.append(time.monotonic() - began)
                time.sleep(0.001)

    @property
    def p99_ms(self) -> float:
        """Of all waits so far."""
        return 1000 * quantiles([*self.waited, *self.waited], n=100)[98]


async def prepared(cluster: AsyncCluster, plan: Plan) -> None:
    """Topics to attack: 60 MB in large batches, 20,000 small ones, many partitions."""
    await cluster.create_topic(TOPIC, configs={"max.message.bytes": "100000000"})
    await cluster.create_topic(SMALL)
    await cluster.create_topic(WIDE, partitions=plan.partitions, timeout=PATIENCE_S)
    large = plan.elements // 300
    for topic, batches, size in ((TOPIC, large, 1_000_000), (SMALL, plan.elements, 1)):
        for number in range(batches):
            stages = cluster.replicate_in_stages(topic, 0, build_batch([bytes(size)]))
            if number % 100 == 0 or number == batches - 1:
                await stages.replicated


async def longest_turns(plan: Plan, watch: Watch) -> list[Outcome]:
    """Every attack, one after the other."""
    found = []
    async with Cluster(NODES, election_timeout_ms=5_000) as cluster:
        await prepared(cluster, plan)
        for name, attack, topic in attacks(plan):
            address = cluster.addresses[await cluster.leader(topic)]
            gc.collect()
            async with Polite(cluster.addresses[await cluster.leader(TOPIC)]) as polite:
                await asyncio.sleep(0.05)
                watch.forget()
                await asyncio.to_thread(attack, address)
                await asyncio.sleep(0.2)  # what it has left behind
            longest, other = watch.longest, f"p99 of another client {polite.p99_ms:.0f} ms"
            note = "; of that ".join(each for each in (other, longest.note) if each)
            found.append(Outcome(name, 1000 * longest.whole, "ms", TARGET_MS, note=note))
    return found


def run(plan: Plan) -> Report:
    """The longest turn of each attack."""
    watch = Watch()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(watch)) as runner:
        return Report("turns", runner.run(longest_turns(plan, watch)))
