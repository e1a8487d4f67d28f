"""Faults without clients. After each of them: which node leads, and how soon?

A cluster on the test's own loop gets faults drawn from a seed. A node is *well* if it runs and its
peers reach it. Whenever a majority of a partition's replicas is well, one of them must become its
leader within `PATIENCE` election timeouts. The same holds for the controller.

Timeouts are measured in progress of the loop (`Progress`): a loop that gets no processor for a
second has not waited for a second. Time outside of the loop still counts, such as that of a slow
disk, so the bound is generous. With logs in memory, elections take 1 to 3 timeouts; in LMDB, with
timeouts of 50 ms and a busy disk, up to 20.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from random import Random

from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.cluster.description import PartitionDescription
from ottla.broker.cluster.faults import DiskFault
from ottla.broker.errors import ClusterTimeoutError, NodeStateError, UnknownTopicError

PATIENCE = 50
LOOK_SECONDS = 0.002
TOPIC = "t"


class Progress:
    """Seconds in which the loop could do what was due; a look that comes late counts as one."""

    def __init__(self) -> None:
        self.seconds = 0.0

    async def look(self) -> None:
        """Let the loop go on for a moment."""
        began = time.monotonic()
        await asyncio.sleep(LOOK_SECONDS)
        self.seconds += min(time.monotonic() - began, 2 * LOOK_SECONDS)

    async def pass_(self, seconds: float) -> None:
        """Let so much progress be made."""
        end = self.seconds + seconds
        while self.seconds < end:
            await self.look()


class Ordeal:
    """Does faults to `cluster`; `done` is the history, `worst` the longest wait in timeouts."""

    def __init__(self, cluster: AsyncCluster, seed: int, *, disks: bool):
        """`disks`: break them too."""
        self.cluster = cluster
        self.disks = disks
        self.random = Random(seed)
        self.progress = Progress()
        self.timeout = cluster.config.election_timeout_ms / 1000
        self.ill: dict[int, str] = {}
        """Nodes that are not well, and what ails them."""
        self.done: list[str] = []
        self.worst = 0.0

    # --- what is asked ------------------------------------------------------------------------

    def unled(self) -> list[str]:
        """What nobody leads who should. A disk may be broken and nobody have noticed."""
        nodes = self.cluster.describe().nodes
        well = [each for each in nodes if each not in self.ill]
        may_lead = [each for each in nodes if self.ill.get(each, "") in {"", "stalled", "failing"}]
        if 2 * len(well) <= len(nodes):
            return []
        if not any(
            self.cluster.node(each).controller_machine.leadership.synced for each in may_lead
        ):
            return ["the controller"]
        if not self.partitions():
            return ["what the controller has not said yet"]
        return [
            f"{TOPIC}-{each.partition}"
            for each in self.partitions()
            if 2 * len([node for node in each.replicas if node in well]) > len(each.replicas)
            and each.leader not in may_lead
        ]

    def partitions(self) -> list[PartitionDescription]:
        """Of the topic; none as long as nobody knows what was decided before all nodes died."""
        return self.cluster.describe().topics.get(TOPIC, [])

    async def led(self) -> None:
        """Wait until everything is led that should be. Asserts that it is so in time."""
        began = self.progress.seconds
        while unled := self.unled():
            waited = (self.progress.seconds - began) / self.timeout
            assert waited < PATIENCE, (
                f"nobody leads {unled} after {waited:.0f} election timeouts; {self.ill}\n"
                f"{self.done[-12:]}\n{self.cluster.describe()}"
            )
            await self.progress.look()
        self.worst = max(self.worst, (self.progress.seconds - began) / self.timeout)

    # --- what is done -------------------------------------------------------------------------

    async def one(self) -> None:
        """One fault, or the end of one, that leaves a majority well; then everything is led."""
        nodes = len(self.cluster.describe().nodes)
        if self.ill and (2 * len(self.ill) + 2 >= nodes or self.random.random() < 0.5):
            await self.mend(self.random.choice([*self.ill]))
        else:
            await self.fault()
        await self.led()
        await self.progress.pass_(self.random.random() * self.timeout)

    async def burst(self) -> None:
        """Faults in quick succession, whoever is left; they all end; then everything is led."""
        for _ in range(self.random.randrange(2, 7)):
            ways: list[Callable[[], object]] = [self.fault, self.fault, self.cut]
            if self.ill:
                ways.append(lambda: self.mend(self.random.choice([*self.ill])))
            outcome = self.random.choice(ways)()
            if asyncio.iscoroutine(outcome):
                await outcome
            await self.progress.pass_(self.random.random() ** 3 * 2 * self.timeout)
        for node in [*self.ill]:
            await self.mend(node)
        self.cluster.heal()
        await self.led()

    async def fault(self) -> None:
        """One fault against one node that is well, rather a leader."""
        well = [node for node in self.cluster.describe().nodes if node not in self.ill]
        if not well:
            return
        led = [each.leader for each in self.partitions()]
        leaders = [node for node in led if node in well]
        node = self.random.choice(leaders if leaders and self.random.random() < 0.7 else well)
        kinds = ["kill", "pause", "isolate", "restart", "transfer"]
        if self.disks:
            kinds += ["stall", "fail"]
        kind = self.random.choice(kinds)
        self.done.append(f"{kind} {node}")
        await getattr(self, kind)(node)

    def cut(self) -> None:
        """One direction of one link."""
        a, b = self.random.sample([*self.cluster.describe().nodes], 2)
        self.done.append(f"cut {a} {b}")
        self.cluster.network.cut(a, b)

    async def kill(self, node: int) -> None:
        """Signal 9."""
        await self.cluster.kill(node)
        self.ill[node] = "dead"

    async def pause(self, node: int) -> None:
        """SIGSTOP."""
        self.cluster.pause(node)
        self.ill[node] = "paused"

    async def isolate(self, node: int) -> None:
        """Cut off from its peers, and sometimes stopped as well."""
        self.cluster.isolate(node)
        self.ill[node] = "isolated"
        if self.random.random() < 0.3:
            self.cluster.pause(node)
            self.ill[node] = "paused"

    async def restart(self, node: int) -> None:
        """A clean end and a new life."""
        await self.cluster.restart(node)

    async def transfer(self, node: int) -> None:
        """One partition to that node, if it can be had at once."""
        partition = self.random.randrange(len(self.partitions()) or 1)
        with suppress(ClusterTimeoutError, NodeStateError, UnknownTopicError):
            await self.cluster.transfer_leadership(TOPIC, partition, node, timeout=self.timeout)

    async def stall(self, node: int) -> None:
        """Its syncs hang."""
        self.cluster.break_disk(node, DiskFault.STALLED)
        self.ill[node] = "stalled"

    async def fail(self, node: int) -> None:
        """Its next sync fails."""
        self.cluster.break_disk(node, DiskFault.FAILED)
        self.ill[node] = "failing"

    async def mend(self, node: int) -> None:
        """What ails a node ends."""
        ailment = self.ill.pop(node)
        self.done.append(f"mend {node}, {ailment}")
        if ailment in {"dead", "failing"}:
            await self.cluster.restart(node)
        if ailment == "paused":
            self.cluster.resume(node)
        if ailment == "stalled":
            self.cluster.mend_disk(node)
        self.cluster.heal(node)
