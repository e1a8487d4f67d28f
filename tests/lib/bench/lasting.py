"""What long traffic leaves in memory: entry caches, events, producers, the process.

One cluster on disk takes batches for ten minutes, at a rate that a busy machine can sustain, from
producers that come and go. Leadership is transferred every second. Every half a minute all records
but the newest are deleted, as retention would do. At each `look`, the caches, the list of events
and the process's own memory are read. All of them are bounded, so nothing grows in the second half.

Without deletions, memory does grow, because each replica remembers a position for each batch in its
log: `restarting` shows that curve.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.measure import Outcome, Report
from ottla import Cluster
from ottla.broker.client import Client
from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.config import ClusterConfig
from ottla.log.build import build_batch
from ottla.log.disk_store import DiskStore

TOPIC = "t"
BURST = 16
"""Batches under way together."""
BATCHES_OF_ONE = 50
"""After so many batches the next producer comes."""
MORE_MIB = 16.0
"""Between the middle and the end: what an allocator does not give back at once."""


@dataclass(slots=True)
class Plan:
    """How long, and how often things happen, in seconds."""

    seconds: float
    look: float
    bursts: float
    """Bursts of `BURST` batches of 1 KB in a second."""
    handover: float
    deletion: float
    cache_bytes: int
    producers: int
    """That a partition remembers at most."""


FULL = Plan(600, 30, 30, 1, 30, 8 << 20, 500)
QUICK = Plan(2, 0.2, 60, 0.3, 0.4, 64 << 10, 5)


class Look(NamedTuple):
    """What was seen at one time."""

    batches: int
    wrote: int
    """Producers that wrote them."""
    mib: float
    """Of memory that this process has for itself."""
    cached: int
    """Bytes of entries in the memory of one node, the most of the three."""
    events: int
    producers: int
    """That the partition remembers."""


def run(plan: Plan) -> Report:
    """The curve of each, and where it ends."""
    looks = asyncio.run(_traffic(plan))
    half, last = looks[len(looks) // 2], looks[-1]
    entry_bytes = 2 * BURST * 2000  # of bursts that were not durable yet, or not evicted
    return Report(
        "lasting",
        [
            Outcome(
                f"memory over {plan.seconds:g} s, {last.batches} batches of 1 KB, second half",
                last.mib - half.mib,
                "MiB more",
                MORE_MIB,
                note="MiB at each look: " + " ".join(f"{each.mib:.0f}" for each in looks),
            ),
            Outcome(
                "entry cache of a node",
                max(each.cached for each in looks) / 1024,
                "KiB at most",
                (plan.cache_bytes + entry_bytes) / 1024,
                note=" ".join(f"{each.cached >> 10}" for each in looks),
            ),
            Outcome(
                "producers of a partition",
                max(each.producers for each in looks),
                "at most",
                plan.producers,
                note=f"of {last.wrote} that wrote",
            ),
            Outcome(
                "events",
                last.events,
                "in all, since none was forgotten",
                note=" ".join(str(each.events) for each in looks),
            ),
        ],
    )


async def _traffic(plan: Plan) -> list[Look]:
    config = ClusterConfig(
        entry_cache_bytes=plan.cache_bytes,
        max_producers=plan.producers,
        election_timeout_ms=2000,
        heartbeat_ms=100,
    )
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        async with Cluster(3, data_dir=folder, config=config) as cluster:
            await cluster.create_topic(TOPIC)
            others = [
                asyncio.create_task(_hand_over(cluster, plan.handover)),
                asyncio.create_task(_delete(cluster, plan.deletion)),
            ]
            looks = await _write_and_look(cluster, plan)
            for each in others:
                assert not each.done(), each.exception()
                each.cancel()
            return looks


def _memory() -> Path | None:
    """Where a sync costs next to nothing: what is measured is not the disk."""
    place = Path("/dev/shm")
    return place if place.is_dir() else None


class Writer:
    """Writes batches, each of the producer whose turn it is."""

    def __init__(self, cluster: AsyncCluster):
        self.written = 0
        """Batches that were acknowledged."""
        self.producers = 0
        """That wrote any."""
        self._cluster = cluster
        self._sequence = 0

    async def burst(self) -> None:
        """Some at once. A producer whose leader moved meanwhile writes no more."""
        await self._cluster.leader(TOPIC)
        stages = []
        for _ in range(BURST):
            batch = build_batch(
                [bytes(1000)],
                producer_id=self.producers,
                producer_epoch=0,
                base_sequence=self._sequence,
            )
            stages.append(self._cluster.replicate_in_stages(TOPIC, 0, batch))
            self._sequence += 1
        done = await asyncio.gather(*(each.replicated for each in stages), return_exceptions=True)
        failed = sum(isinstance(each, BaseException) for each in done)
        self.written += BURST - failed
        if failed or self._sequence >= BATCHES_OF_ONE:
            self.producers += 1
            self._sequence = 0


async def _write_and_look(cluster: AsyncCluster, plan: Plan) -> list[Look]:
    looks: list[Look] = []
    writer = Writer(cluster)
    began = time.monotonic()
    look_at = began + plan.look
    while (now := time.monotonic()) < began + plan.seconds:
        if now >= look_at:
            looks.append(_look(cluster, writer))
            look_at += plan.look
        await writer.burst()
        await asyncio.sleep(1 / plan.bursts)
    looks.append(_look(cluster, writer))
    return looks


async def _hand_over(cluster: AsyncCluster, every: float) -> None:
    while True:
        await asyncio.sleep(every)
        to = await cluster.leader(TOPIC) % 3 + 1
        await cluster.transfer_leadership(TOPIC, 0, to)


async def _delete(cluster: AsyncCluster, every: float) -> None:
    """Have everything deleted that is committed, wherever the leader is."""
    partition = {"partition_index": 0, "offset": -1}
    while True:
        await asyncio.sleep(every)
        for address in cluster.addresses.values():
            client = await Client.connect(*address)
            topics = [{"name": TOPIC, "partitions": [partition]}]
            await client.call("delete_records", 2, topics=topics, timeout=5000)
            client.close()


def _look(cluster: AsyncCluster, writer: Writer) -> Look:
    gc.collect()
    stores = [cluster.node(each).store for each in cluster.addresses]
    members = cluster.describe().topics[TOPIC][0].members
    return Look(
        writer.written,
        writer.producers,
        own_mib(),
        max(each.cached_bytes for each in stores if isinstance(each, DiskStore)),
        len(cluster.events),
        max(each.producers for each in members.values()),
    )


def own_mib() -> float:
    """Memory of its own that this process holds; what LMDB maps of its files is the kernel's."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    return 0.0
