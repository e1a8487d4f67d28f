"""The topics of a cluster and their partitions: create, delete, find a leader, transfer, write.

`AsyncCluster` owns one `ClusterPartitions`. The controller decides about topics. To find the leader
of a partition, it looks at the nodes, and waits if no node leads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

from ottla.broker.arguments.arguments import is_a, seconds, text, whole
from ottla.broker.arguments.spelling import printable, shown
from ottla.broker.cluster.nodes import ClusterNodes
from ottla.broker.cluster.stages import Stages, replicate_in_stages
from ottla.broker.config import ClusterConfig
from ottla.broker.errors import (
    ConfigError,
    ErrorCode,
    NodeStateError,
    RequestFailedError,
    UnknownTopicError,
)
from ottla.broker.images import PartitionImage
from ottla.broker.node.handover import Handover
from ottla.broker.topics.topic import Topic
from ottla.broker.turn.commands import Command, CreateTopic, DeleteTopic
from ottla.log.types import Unpacked
from ottla.raft.types import Micros


class Until(Protocol):
    """Waits until a condition holds; see `AsyncCluster._until`."""

    async def __call__(
        self, condition: Callable[[], bool], timeout: float, what: str, about: str = "", /
    ) -> None:
        """Raises `ClusterTimeoutError`."""


class ClusterPartitions:
    """See the module's docstring."""

    def __init__(
        self,
        nodes: ClusterNodes,
        config: ClusterConfig,
        now: Callable[[], Micros],
        *,
        until: Until,
        check_successor: Callable[[int], int],
    ):
        self._nodes = nodes
        self._config = config
        self._now = now
        self._until = until
        self._check_successor = check_successor

    async def create(self, topic: Topic, timeout: float) -> None:
        """Have the controller create a topic. Raises `RequestFailedError`."""
        default = self._config.default_replication_factor
        await self._control(CreateTopic.of(topic, len(self._nodes.ids), default), timeout)

    async def delete(self, name: str, timeout: float) -> None:
        """Have the controller delete a topic. Raises `RequestFailedError`."""
        await self._control(DeleteTopic(text("name", name)), seconds("timeout", timeout))

    async def _control(self, command: Command, timeout: float) -> None:
        done = asyncio.Future[tuple[ErrorCode, dict[str, Unpacked]]]()

        def finish(error: ErrorCode, result: dict[str, Unpacked]) -> None:
            if not done.done():
                done.set_result((error, result))

        self._nodes.check_begun()
        self._nodes.learning()[0].control(command, finish, self._now() + round(timeout * 1e6))
        error, result = await done
        if error is not ErrorCode.NONE:
            raise RequestFailedError(error, printable(str(result.get("message", ""))))

    def _image(self, topic: str, partition: int) -> PartitionImage | None:
        for life in self._nodes.running():
            found = life.topics().get(topic)
            if found is not None and 0 <= partition < len(found.partitions):
                return found.partitions[partition]
        return None

    def unserved(self, name: str) -> list[PartitionImage] | None:
        """Partitions of a topic that no node serves; None if a node that can learn of the topic
        does not know it yet."""
        found = [life.topics().get(name) for life in self._nodes.learning()]
        topic = found[0]
        if topic is None or None in found:
            return None
        return [each for each in topic.partitions if not self._nodes.serving(each)]

    async def leader(self, topic: str, partition: int, timeout: float) -> int:
        """The node that leads a partition and serves it."""
        partition, timeout = self._check_place(topic, partition, timeout)
        if self._image(topic, partition) is None:
            # Nodes that have just come back know their topics once a controller leads.
            await self._until(self._nodes.informed, timeout, "a controller")
        image = self._image(topic, partition)
        if image is None:
            raise UnknownTopicError(f"there is no partition {partition} of topic {shown(topic)}")
        place = f"{topic}-{partition}"
        led = partial(self._nodes.serving, image)
        await self._until(lambda: led() is not None, timeout, f"a leader of {place}", place)
        found = self._nodes.serving(image)
        assert found is not None, "waited for"
        return found[0]

    def _check_place(self, topic: str, partition: int, timeout: float) -> tuple[int, float]:
        """Partition and timeout, checked. Raises `ConfigError`, `NodeStateError` before a start."""
        text("topic", topic)
        checked = whole("partition", partition), seconds("timeout", timeout)
        self._nodes.check_begun()
        return checked

    def replicate_in_stages(
        self, topic: str, partition: int, batch: bytes, acks: int, timeout: float
    ) -> Stages:
        """Append one record batch on the partition's leader, without a client in between.

        Raises `UnknownTopicError`, or `NodeStateError` while nobody serves the partition.
        """
        partition, timeout = self._check_place(topic, partition, timeout)
        acks = whole("acks", acks, -1, 1)
        if not is_a(batch, bytes):
            raise ConfigError(f"batch is {shown(batch)}; the bytes of a record batch are wanted")
        image = self._image(topic, partition)
        if image is None:
            raise UnknownTopicError(f"there is no partition {partition} of topic {shown(topic)}")
        found = self._nodes.serving(image)
        if found is None:
            raise NodeStateError(f"no node serves {topic}-{partition} now; wait for leader()")
        life = self._nodes.lives[found[0]]
        inbox = life.replica(topic, partition)
        assert inbox is not None, "it serves the partition"
        return replicate_in_stages(life, inbox, batch, acks=acks, timeout=round(timeout * 1e6))

    async def transfer(self, topic: str, partition: int, to: int, timeout: float) -> None:
        """See `AsyncCluster.transfer_leadership`."""
        partition, timeout = self._check_place(topic, partition, timeout)
        to = self._check_successor(to)
        await self.leader(topic, partition, timeout)
        image = self._image(topic, partition)
        assert image is not None, "its leader was found"
        if to not in image.replicas:
            raise NodeStateError(
                f"node {to} has no replica of {topic}-{partition}; {list(image.replicas)} have"
            )

        place = f"{topic}-{partition}"
        handover = Handover(to, lambda: self._nodes.serving(image), self._nodes.lives)
        await self._until(handover.ended, timeout, f"node {to} to lead {place}", place)
        handover.check(place)
