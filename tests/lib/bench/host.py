"""A measured process: the null server, or clusters of Ottla, on the loop that Ottla uses.

It measures itself: CPU time of the whole process, turns, messages and syncs, its own profile. The
bench reads these over the pipe before and after each round.
"""

from __future__ import annotations

import asyncio
import cProfile
import gc
import json
import os
import pstats
import sys
import time
from collections.abc import Awaitable, Callable
from io import StringIO
from pathlib import Path
from typing import Any

import ottla
from bench.null_server import NullServer
from bench.pipe import say
from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.config import FlushPolicy
from ottla.broker.event_loop.loops import new_event_loop

TOPIC = "bench"
MANY = "many"
"""A topic with many partitions."""
PATIENCE_S = 60.0
SOURCES = f"{Path(ottla.__file__).parent}{os.sep}"
CLUSTER_MESSAGES = ("Beat", "BeatAck")
"""Sent by the clock, not by requests; left out of the counts."""


def resident_mib_of(pid: int) -> float:
    """Memory of a process that is in RAM."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def resident_mib() -> float:
    """Memory of this process that is in RAM."""
    return resident_mib_of(os.getpid())


class Host:
    """What the process can be asked to do; each public method is a command of its pipe."""

    def __init__(self) -> None:
        self._cluster: AsyncCluster | None = None
        self._profile = cProfile.Profile()

    async def null(self) -> dict[str, Any]:
        """Start the null server."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: NullServer(TOPIC), "127.0.0.1", 0)
        return {"address": server.sockets[0].getsockname()[:2]}

    async def fresh(self, nodes: int = 3, **settings: Any) -> dict[str, Any]:
        """Drop the cluster there is and start one with one topic of one partition."""
        await self.drop()
        cluster = await self._start(nodes, settings)
        start = time.perf_counter()
        await cluster.create_topic(TOPIC)
        topic = time.perf_counter() - start
        return {"address": cluster.addresses[await cluster.leader(TOPIC)], "topic": topic}

    async def _start(self, nodes: int, settings: dict[str, Any]) -> AsyncCluster:
        if "flush" in settings:
            settings["flush"] = FlushPolicy(settings["flush"])
        self._cluster = AsyncCluster(nodes, **settings)
        await self._cluster.start()
        return self._cluster

    async def drop(self) -> dict[str, Any]:
        """Stop the cluster and give its memory back."""
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            await cluster.stop()
            await asyncio.sleep(0)
            del cluster
            gc.collect()
        return {}

    async def counts(self) -> dict[str, Any]:
        """CPU time of the process so far; turns, messages and syncs of the cluster so far."""
        found: dict[str, Any] = {"cpu": time.process_time()}
        cluster = self._cluster
        if cluster is not None:
            runners = [cluster.node(each).runner for each in cluster.addresses]
            found["turns"] = sum(each.turns for each in runners)
            found["syncs"] = sum(each.syncs for each in runners)
            sent = cluster.network.delivered
            found["messages"] = sum(
                count for kind, count in sent.items() if kind not in CLUSTER_MESSAGES
            )
        return found

    async def memory(self) -> dict[str, Any]:
        """Resident memory, MiB."""
        return {"mib": resident_mib()}

    async def starts(self, rounds: int) -> dict[str, Any]:
        """Start clusters one after the other; seconds each took, and a topic on it."""
        clusters, topics = [], []
        for _ in range(rounds):
            await self.drop()
            start = time.perf_counter()
            await self._start(3, {})
            clusters.append(time.perf_counter() - start)
            await self.drop()
            topics.append((await self.fresh())["topic"])
        return {"clusters": clusters, "topics": topics}

    async def partitions(self, count: int) -> dict[str, Any]:
        """Seconds until a new topic with that many partitions serves, on a fresh cluster."""
        await self.drop()
        cluster = await self._start(3, {})
        start = time.perf_counter()
        await cluster.create_topic(MANY, partitions=count, timeout=PATIENCE_S)
        return {"seconds": time.perf_counter() - start}

    async def deleted(self) -> dict[str, Any]:
        """CPU seconds until no node has anything of that topic any more."""
        cluster = self._cluster
        assert cluster is not None
        runners = [cluster.node(each).runner for each in cluster.addresses]
        start = time.process_time()
        await cluster.delete_topic(MANY)
        while True:
            if all(len(each.hosted_replicas) == 1 for each in runners):  # the controller's stays
                return {"cpu": time.process_time() - start}
            await asyncio.sleep(0.01)

    async def restarted(self, count: int, folder: str) -> dict[str, Any]:
        """CPU seconds of the second start of a cluster that has a topic with so many partitions on
        disk."""
        await self.drop()
        cluster = await self._start(3, {"data_dir": folder})
        await cluster.create_topic(MANY, partitions=count, timeout=PATIENCE_S)
        await self.drop()
        start = time.process_time()
        await self._start(3, {"data_dir": folder})
        return {"cpu": time.process_time() - start}

    async def idle(self, seconds: float) -> dict[str, Any]:
        """Share of one core that the process uses while nobody asks for anything."""
        await asyncio.sleep(1.0)
        cpu, start = time.process_time(), time.perf_counter()
        await asyncio.sleep(seconds)
        used, spent = time.process_time() - cpu, time.perf_counter() - start
        return {"share": used / spent}

    async def profile(self, *, on: bool, top: int = 15) -> dict[str, Any]:
        """Start the profiler, or stop it and say where the time went."""
        if on:
            self._profile = cProfile.Profile()
            self._profile.enable()
            return {}
        self._profile.disable()
        text = StringIO()
        pstats.Stats(self._profile, stream=text).sort_stats("tottime").print_stats(top)
        lines = text.getvalue().replace(SOURCES, "").splitlines()
        return {"text": "\n".join(line for line in lines if line)}


async def serve(host: Host) -> None:
    """Answer commands until the pipe ends."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    say(ready=True)
    while line := await reader.readline():
        asked = json.loads(line)
        command: Callable[..., Awaitable[dict[str, Any]]] = getattr(host, asked.pop("do"))
        try:
            say(**await command(**asked))
        except Exception as error:  # noqa: BLE001 - whatever it is, the bench is to hear of it
            say(error=f"host: {error!r}")
    await host.drop()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(serve(Host()))
