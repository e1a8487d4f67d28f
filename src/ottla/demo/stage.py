"""`Stage`: the cluster of the demo, in a thread of its own, with its samples and faults.

The main thread shows progress, and the producers have threads of their own. Everything that uses
the cluster (faults, samples, reading logs) runs as coroutines on the cluster's loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, NamedTuple, Self, TypeVar

from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.event_loop.loop_thread import LoopThread
from ottla.broker.event_loop.native import monotonic_micros
from ottla.broker.topics.topic import Topic
from ottla.demo.settings import NODES, PARTITIONS, TOPIC, DemoSettings
from ottla.raft.types import Micros

Result = TypeVar("Result")


class Sample(NamedTuple):
    """The state of the cluster at one time, partition by partition."""

    at: Micros
    leaders: tuple[int, ...]
    """The leader of each partition; 0 if none serves it."""
    high_watermarks: tuple[int, ...]
    acked: tuple[int, ...]
    """Records acknowledged so far, of all producers together."""


class Deed(NamedTuple):
    """A fault that was done. `node` is the first node that it hit; 0 if it hit no single one."""

    at: Micros
    until: Micros
    fault: str
    partition: int
    node: int
    text: str


class Stage:
    """Use as a context manager: the cluster lives as long as its block."""

    def __init__(self, settings: DemoSettings):
        self.settings = settings
        order = list(range(1, NODES + 1))
        assignment = [order[p:] + order[:p] for p in range(PARTITIONS)]
        topic = Topic(TOPIC, assignment=assignment)
        self.cluster = AsyncCluster(
            NODES, topics=[topic], seed=settings.seed, profile=settings.profile
        )
        self.samples: list[Sample] = []
        self.deeds: list[Deed] = []
        self.now_doing = ""
        """The present fault, for the progress."""
        self.started: Micros = 0
        self._thread = LoopThread(self._start, self._stop)
        self._loop: asyncio.AbstractEventLoop

    def __enter__(self) -> Self:
        try:
            self._thread.run()
        except BaseException:
            self._thread.end()
            raise
        self.started = monotonic_micros()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.end()

    async def _start(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self.cluster.start()

    async def _stop(self) -> None:
        """Cancel everything that was started here, then stop the cluster: an interrupt may come in
        the middle of faults and samples."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.cluster.stop()

    def spawn(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Start `work` on the cluster's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do `work` on the cluster's loop and wait for it."""
        return self.spawn(work).result()

    @property
    def bootstrap(self) -> str:
        """Bootstrap servers for clients."""
        return self.cluster.bootstrap_servers
