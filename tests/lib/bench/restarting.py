"""What a long log costs at a start, and what traffic leaves in memory.

There are two curves. *Restart*: clusters of three nodes, whose logs hold more and more batches, are
started again; the microseconds per batch and node should not grow. Then one node of the running
cluster is restarted, while a task of the loop measures the longest time in which nothing else ran.
*Memory*: one cluster takes several times the traffic that its entry caches hold. The process's
memory is read after each part of it; it should not grow once the caches are full.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.measure import Outcome, Report
from ottla import Cluster
from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.config import ClusterConfig
from ottla.log.build import NewRecord, build_batch

TOPIC = "t"
SHARED_MEMORY = Path("/dev/shm")
STRETCHES = 8
PATIENT = ClusterConfig(election_timeout_ms=1000, heartbeat_ms=100)
"""Fewer elections, where the machine has other things to do."""
TICK_SECONDS = 0.001


@dataclass(slots=True)
class Plan:
    """How much is measured."""

    batches: tuple[int, ...]
    """In the log at a restart."""
    batch_bytes: int
    stretch: int
    """Batches of 1 KB between two looks at the memory."""
    cache_bytes: int


FULL = Plan((12_500, 25_000, 50_000, 100_000), 100, 25_000, 8 << 20)
QUICK = Plan((200, 400), 100, 200, 64 << 10)


def run(plan: Plan) -> Report:
    """Both curves."""
    outcomes = []
    for batches in plan.batches:
        whole, one, stall = asyncio.run(_restarted(batches, plan.batch_bytes))
        outcomes += [
            Outcome(
                f"start of 3 nodes, {batches} batches each",
                whole / batches / 3 * 1e6,
                "us a batch",
                note=f"{whole:.2f} s of CPU",
            ),
            Outcome(
                f"restart of one beside two, {batches} batches",
                stall * 1e3,
                "ms stalled",
                note=f"{one:.2f} s until it runs",
            ),
        ]
    seen = asyncio.run(_traffic(plan))
    curve = " ".join(f"{each:.0f}" for each in seen)
    half = seen[len(seen) // 2]
    outcomes.append(
        Outcome(
            f"memory over {STRETCHES * plan.stretch} batches of 1 KB, second half",
            seen[-1] - half,
            "MiB more",
            note=f"MiB after each {plan.stretch}: {curve}",
        )
    )
    return Report("restarting", outcomes)


def shared_memory() -> Path | None:
    """A folder in memory, where there is one."""
    return SHARED_MEMORY if SHARED_MEMORY.is_dir() else None


@contextmanager
def _folder() -> Iterator[Path]:
    """Where a sync costs next to nothing: what is measured is not the disk."""
    with tempfile.TemporaryDirectory(dir=shared_memory()) as folder:
        yield Path(folder)


async def _restarted(batches: int, size: int) -> tuple[float, float, float]:
    """Seconds of CPU of a whole start, seconds of one node's restart, longest stall during it."""
    with _folder() as folder:
        async with Cluster(3, data_dir=folder, config=PATIENT) as cluster:
            await cluster.create_topic(TOPIC)
            await _write(cluster, batches, size)
        gc.collect()
        begun = time.process_time()
        async with Cluster(3, data_dir=folder, config=PATIENT) as cluster:
            whole = time.process_time() - begun
            node = await cluster.leader(TOPIC) % 3 + 1
            await cluster.kill(node)
            stall = asyncio.create_task(_longest_stall())
            await asyncio.sleep(0.01)
            at = time.perf_counter()
            await cluster.restart(node)
            await _caught_up(cluster, node)
            one = time.perf_counter() - at
            stall.cancel()
            return whole, one, await stall


async def _caught_up(cluster: AsyncCluster, node: int) -> None:
    while True:
        (partition,) = cluster.describe().topics[TOPIC]
        member = partition.members.get(node)
        if member is not None and member.high_watermark == partition.high_watermark > 0:
            return
        await asyncio.sleep(0.005)


async def _longest_stall() -> float:
    """The longest time between two turns of this task, until it is cancelled."""
    longest, last = 0.0, time.perf_counter()
    try:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            now = time.perf_counter()
            longest, last = max(longest, now - last - TICK_SECONDS), now
    except asyncio.CancelledError:
        return longest


async def _write(cluster: AsyncCluster, batches: int, size: int) -> None:
    batch = build_batch([NewRecord(value=b"x" * size)])
    left = batches
    while left:
        burst = min(left, 64)
        stages = [cluster.replicate_in_stages(TOPIC, 0, batch) for _ in range(burst)]
        for each in stages:
            await each.replicated
        left -= burst


async def _traffic(plan: Plan) -> Sequence[float]:
    """MiB of this process after each stretch."""
    seen = []
    with _folder() as folder:
        config = replace(PATIENT, entry_cache_bytes=plan.cache_bytes)
        async with Cluster(3, data_dir=folder, config=config) as cluster:
            await cluster.create_topic(TOPIC)
            for _ in range(STRETCHES):
                await _write(cluster, plan.stretch, 1000)
                gc.collect()
                seen.append(_resident_mib())
    return seen


def _resident_mib() -> float:
    """Memory of its own that this process holds; what LMDB maps of its files is the kernel's."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    return 0.0
