"""The nodes of the cluster that a case is played to: where they are, who leads, what befalls them.

A case numbers its nodes from 1; a broker's own ids may be others. Who leads and which replicas are
in sync is asked in Metadata, of the nodes in question themselves, so the same steps can be played
to any cluster. Faults are done by whoever runs the nodes; a cluster at an address has nobody who
does them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol

from ottla.broker.client import Client
from ottla.broker.errors import FrameError, OttlaError
from ottla.compare.case import Act
from ottla.compare.errors import CompareError

WAIT_SECONDS = 30.0
"""How long a partition may be without a leader, or a replica on its way in or out of sync."""
POLL_SECONDS = 0.01
"""The pause before a broker is asked again."""
_METADATA = 7
"""The version of Metadata in which nodes are asked: the first with leader epochs."""
_LIST_OFFSETS = 4


class Faults(Protocol):
    """Who does something to nodes; `AsyncCluster` does."""

    async def kill(self, node: int) -> None:
        """Signal 9."""

    async def restart(self, node: int) -> None:
        """Start it on its disk; stop it before if it runs."""

    def pause(self, node: int) -> None:
        """SIGSTOP."""

    def resume(self, node: int) -> None:
        """SIGCONT."""

    def isolate(self, node: int) -> None:
        """Cut it off from the others."""

    def heal(self, node: int | None = None) -> None:
        """End that."""

    async def transfer_leadership(
        self, topic: str, partition: int, to: int, *, timeout: float = 10.0
    ) -> None:
        """Make a replica lead a partition."""


class Place(NamedTuple):
    """The nodes of a cluster, by their numbers in a case."""

    addresses: Mapping[int, tuple[str, int]]
    brokers: Mapping[int, int] | None = None
    """The id of each. None: there is only one node, and a topic need not say where it lies."""
    faults: Faults | None = None
    """None: nobody does anything to the nodes."""


class Nodes:
    """See the module's docstring. `topic` is the first one of the case, as the broker calls it."""

    def __init__(self, place: Place, topic: str, leader: int):
        self.place = place
        self.leader = leader
        """The node that was last seen to lead."""
        self._topic = topic
        self._clients: dict[int, Client] = {}

    def close(self) -> None:
        """Hang up."""
        for each in self._clients.values():
            each.close()

    def number(self, node: int | str) -> int:
        """The number of the node that a step goes to; a text stands for the leader."""
        return self.leader if isinstance(node, str) else node

    async def perform(self, act: Act) -> None:
        """Do what a step does, or wait for what it awaits. Raises `CompareError`."""
        try:
            if act.word == "elected":
                await self.until_led(act.nodes)
            elif act.word == "in_sync":
                await self.until_in_sync(act.nodes)
            else:
                await self._do(act.word, act.nodes[0])
        except OttlaError as error:
            raise CompareError(f"{act.told()}: {error}") from None

    async def _do(self, word: str, node: int) -> None:
        faults = self.place.faults
        assert faults is not None, "a case with faults is left out where nobody does them"
        if word == "lead":
            timeout = WAIT_SECONDS
            await faults.transfer_leadership(self._topic, 0, to=node, timeout=timeout)
            await self.until_led((node,))
            return
        done: Awaitable[None] | None = getattr(faults, word)(node)
        if done is not None:
            await done

    async def until_led(self, nodes: tuple[int, ...], partition: int = 0) -> None:
        """Wait until one of these nodes leads the partition, and reads from it. Raises
        `CompareError`."""

        async def led() -> bool:
            for node in nodes:
                if await self._leads(node, partition):
                    self.leader = node
                    return True
            return False

        await self._until(led, f"a leader among {_told(nodes)}")

    async def until_in_sync(self, nodes: tuple[int, ...], partition: int = 0) -> None:
        """Wait until the leader says that just these replicas are in sync. Raises
        `CompareError`."""
        wanted = {self._id(each) for each in nodes}

        async def in_sync() -> bool:
            found = await self._described(self.leader, partition)
            return found is not None and set(found.isr_nodes) == wanted

        await self._until(in_sync, f"{_told(nodes)} to be the replicas in sync")

    async def _until(self, holds: Callable[[], Awaitable[bool]], what: str) -> None:
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while True:
                    if await holds():
                        return
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            raise CompareError(f"waited {WAIT_SECONDS:g} s for {what}") from None

    def _id(self, node: int) -> int:
        ids = self.place.brokers
        return node if ids is None else ids[node]

    async def _leads(self, node: int, partition: int) -> bool:
        """Whether a node says of itself that it leads, and answers as a leader."""
        described = await self._described(node, partition)
        if described is None or described.leader_id != self._id(node):
            return False
        wanted = {"partition_index": partition, "current_leader_epoch": -1, "timestamp": -1}
        topics = [{"name": self._topic, "partitions": [wanted]}]
        answer = await self._call(
            node, "list_offsets", _LIST_OFFSETS, replica_id=-1, isolation_level=0, topics=topics
        )
        return answer is not None and answer.topics[0].partitions[0].error_code == 0

    async def _described(self, node: int, partition: int) -> Any:
        """The partition in a node's Metadata; None: the node does not answer, or knows none."""
        topics = [{"name": self._topic}]
        answer = await self._call(
            node, "metadata", _METADATA, topics=topics, allow_auto_topic_creation=False
        )
        found = answer.topics[0].partitions if answer is not None else ()
        return next((each for each in found if each.partition_index == partition), None)

    async def _call(self, node: int, api: str, version: int, **fields: object) -> Any:
        """An answer of a node; None: it does not answer now."""
        try:
            async with asyncio.timeout(1.0):
                if node not in self._clients:
                    self._clients[node] = await Client.connect(*self.place.addresses[node])
                return await self._clients[node].call(api, version, **fields)
        except (OSError, TimeoutError, FrameError):
            client = self._clients.pop(node, None)
            if client is not None:
                client.close()
            return None


def _told(nodes: tuple[int, ...]) -> str:
    return f"node {nodes[0]}" if len(nodes) == 1 else f"nodes {', '.join(map(str, nodes))}"
