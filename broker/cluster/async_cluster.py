"""`AsyncCluster`: the cluster on the caller's event loop. See `cluster.py` for the two faces.

It owns what outlives a node: addresses, disks, the network between the nodes, counters and the list
of events. A node object is one *life* of a node; `kill` ends it and `restart` makes the next one on
the same disk and port.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Unpack

from ottla.broker.arguments.addresses import Advertised
from ottla.broker.arguments.arguments import as_whole, is_a, seconds, text, whole
from ottla.broker.arguments.places import Folder, folder_of, host_of, port_of
from ottla.broker.arguments.spelling import printable, shown
from ottla.broker.cluster.all_served import AllServed
from ottla.broker.cluster.events import EventLog
from ottla.broker.cluster.faults import ClusterFaults
from ottla.broker.cluster.reach import OpenPort, Reach
from ottla.broker.cluster.stages import Stages, replicate_in_stages
from ottla.broker.cluster.views import ClusterViews
from ottla.broker.config import ClusterConfig, Settings, with_settings
from ottla.broker.counters import Counters
from ottla.broker.errors import (
    ClusterTimeoutError,
    ConfigError,
    ErrorCode,
    NodeStateError,
    RequestFailedError,
    UnknownTopicError,
)
from ottla.broker.event_loop.clockwork import MakeClockwork, RunningClock
from ottla.broker.event_loop.lifecycle import Lifecycle
from ottla.broker.event_loop.native import monotonic_micros
from ottla.broker.event_loop.scheduler import Scheduler
from ottla.broker.images import PartitionImage
from ottla.broker.node.disks import Disks
from ottla.broker.node.folders import DataFolderError, check_left_out, left_out
from ottla.broker.node.handover import Handover
from ottla.broker.node.node import Node
from ottla.broker.node.node_factory import NodeFactory
from ottla.broker.topics.topic import Topic, topics_of
from ottla.broker.transport.in_process import Network
from ottla.broker.turn.commands import Command, CreateTopic, DeleteTopic
from ottla.broker.wire.ports import ReservedPort
from ottla.broker.wire.remarks import Remarks
from ottla.log import inflate

MAX_NODES = 7
POLL_SECONDS = 0.001
START_SECONDS = 30.0


class AsyncCluster(ClusterFaults, ClusterViews):
    """See `ottla.Cluster` for what each method does; here what takes time is awaited."""

    def __init__(
        self,
        nodes: int = 3,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        advertised: Advertised | None = None,
        data_dir: Folder | None = None,
        topics: Sequence[Topic | str] = (),
        without_nodes: Sequence[int] = (),
        config: ClusterConfig | None = None,
        clockwork: MakeClockwork | None = None,
        open_port: OpenPort = ReservedPort,
        **settings: Unpack[Settings],
    ):
        count = as_whole(nodes)
        if count is None or not 1 <= count <= MAX_NODES:
            raise ConfigError(f"{shown(nodes)} nodes asked for; 1 to {MAX_NODES} are possible")
        self.config = with_settings(config, settings)
        inflate.load()
        self.counters = Counters()
        self._remarks = Remarks()
        self._simulated = clockwork
        self._now = monotonic_micros
        self.events = EventLog()
        self._ids = tuple(range(1, count + 1))
        self._topics = topics_of(topics)
        host, port = host_of(host), port_of(port, count)
        self._reach = Reach(open_port, host, port, nodes=self._ids, advertised=advertised)
        folder = folder_of(data_dir)
        self._without = check_left_out(without_nodes, self._ids, folder)
        self._disks = Disks(self._ids, folder, self.config, self._without)
        self._lives: dict[int, Node] = {}
        self._why_dead = {node: left_out(node) for node in self._without}
        self._factory: NodeFactory
        self._lifecycle = Lifecycle(self._start, self._stop)
        self._clock: RunningClock | None = None
        self.network = Network(round(self.config.link_delay_ms * 1000), self._ids)
        self.on_failed: Callable[[int], None] = lambda _: None
        """Called with the number of a node that has just stopped by itself."""

    # --- life ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the disks, listen, elect a controller. Raises `OSError` when a port is in use."""
        await self._lifecycle.start()

    async def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        clockwork = self._simulated
        if clockwork is None:
            clockwork = self._clock = RunningClock.fit_for(loop, self.config.election_timeout_ms)
        shared = clockwork(None)
        self._now = shared.now
        if self._simulated is not None:
            self.events.now = shared.now
        self.cluster_id = await self._disks.cluster_id(lambda: uuid.uuid4().hex[:22], clockwork)
        self._factory = NodeFactory(
            config=self.config,
            nodes=self._ids,
            cluster_id=self.cluster_id,
            addresses=self._reach.told,
            disks=self._disks,
            network=self.network,
            counters=self.counters,
            scheduler=Scheduler(shared),
            clockwork=clockwork,
        )
        present = [node for node in self._ids if node not in self._without]
        for node in present:
            await self._listen(node)
        for node in present:
            self._lives[node].join()
        for node in self._without:
            self.events.note("left out", node)
            logging.getLogger("ottla").warning("%s", left_out(node))
        await self._until(self._controller_known, START_SECONDS, "a controller")
        for topic in self._topics:
            await self._ensure(topic)
        served = AllServed(self._without_leader, self._leading_hosted)
        await self._until(served, START_SECONDS, "leaders of all topics")

    async def _ensure(self, topic: Topic) -> None:
        """Create a topic of the start; one that the disks remember stays as it is."""
        command = CreateTopic.of(topic, len(self._ids), self.config.default_replication_factor)
        try:
            await self._control(command, START_SECONDS)
        except RequestFailedError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    def _controller_known(self) -> bool:
        """A controller decides, and every node has applied what earlier ones decided."""
        machines = [each.controller_machine for each in self._running()]
        leading = next((each for each in machines if each.synced), None)
        return leading is not None and all(each.applied >= leading.applied for each in machines)

    def _without_leader(self) -> list[PartitionImage]:
        """Partitions that nobody serves, but for those that have no majority without who was left
        out."""
        return [
            image
            for topic in self._running()[0].topics().values()
            for image in topic.partitions
            if 2 * len([each for each in image.replicas if each in self._lives])
            > len(image.replicas)
            and not self._leading_hosted(image)
        ]

    async def _listen(self, node: int) -> None:
        life = self._lives[node] = await self._factory.make(node)
        life.remarks = self._remarks
        life.on_event = self.events.role_changed
        life.on_dropped = self.events.truncated
        life.on_failed = self._failed
        await self._reach.listen(node, life.server)

    def _failed(self, life: Node, error: Exception) -> None:
        self.events.failed(life, error)
        self.on_failed(life.node)

    async def stop(self) -> None:
        """Stop every node: what is appended is synced, disks are closed. Harmless when done twice,
        at once or one after the other, while the cluster starts, and in a forked child."""
        await self._lifecycle.stop()

    async def _stop(self) -> None:
        # Each step is done, whatever happens in those before it.
        with ExitStack() as steps:
            steps.callback(self._lives.clear)
            if self._clock is not None:
                steps.callback(self._clock.stop)
            for node in self._ids:
                steps.callback(self._disks.close, node)
            for life in self._lives.values():
                steps.callback(self._disks.close, life.node, life.runner.syncer.finish)
            steps.callback(self._reach.close)
            self._halt_all()
            for life in self._lives.values():
                await life.runner.syncer.drained()

    def _halt_all(self) -> None:
        with ExitStack() as steps:
            for life in self._lives.values():
                steps.callback(self._halt, life)

    def _halt(self, life: Node) -> None:
        """End a life; a disk that was broken lets what it holds up go on."""
        life.stop()
        self._disks.mend(life.node)

    # --- topics -------------------------------------------------------------------------------

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replication_factor: int | None = None,
        configs: Mapping[str, str | float] | None = None,
        assignment: Sequence[Sequence[int]] | None = None,
        timeout: float = 10.0,
    ) -> None:
        """Create a topic and wait until every partition serves."""
        given = {} if configs is None else configs
        topic = Topic(name, partitions, replication_factor, given, assignment)
        command = CreateTopic.of(topic, len(self._ids), self.config.default_replication_factor)
        timeout = seconds("timeout", timeout)
        await self._control(command, timeout)
        served = AllServed(lambda: self._unserved(topic.name), self._leading_hosted)
        await self._until(served, timeout, f"leaders of topic {topic.name}")

    async def delete_topic(self, name: str, *, timeout: float = 10.0) -> None:
        """Delete a topic."""
        await self._control(DeleteTopic(text("name", name)), seconds("timeout", timeout))

    async def _control(self, command: Command, timeout: float) -> None:
        done = asyncio.Future[tuple[ErrorCode, dict[str, Any]]]()

        def finish(error: ErrorCode, result: dict[str, Any]) -> None:
            if not done.done():
                done.set_result((error, result))

        self._check_running()
        self._running()[0].control(command, finish, self._now() + round(timeout * 1e6))
        error, result = await done
        if error is not ErrorCode.NONE:
            raise RequestFailedError(error, printable(str(result.get("message", ""))))

    def _image(self, topic: str, partition: int) -> PartitionImage | None:
        for life in self._running():
            found = life.topics().get(topic)
            if found is not None and 0 <= partition < len(found.partitions):
                return found.partitions[partition]
        return None

    def _unserved(self, name: str) -> list[PartitionImage] | None:
        """Partitions of a topic that nobody serves; None where a node does not know it yet."""
        found = [life.topics().get(name) for life in self._running()]
        topic = found[0]
        if topic is None or None in found:
            return None
        return [each for each in topic.partitions if not self._leading_hosted(each)]

    async def leader(self, topic: str, partition: int = 0, *, timeout: float = 10.0) -> int:
        """The node that leads a partition and serves it."""
        partition, timeout = self._check_place(topic, partition, timeout)
        if self._image(topic, partition) is None:
            # Nodes that have just come back know their topics once a controller leads.
            await self._until(self._controller_known, timeout, "a controller")
        image = self._image(topic, partition)
        if image is None:
            raise UnknownTopicError(f"there is no partition {partition} of topic {shown(topic)}")
        place = f"{topic}-{partition}"
        led = partial(self._leading_hosted, image)
        await self._until(lambda: led() is not None, timeout, f"a leader of {place}", place)
        found = self._leading_hosted(image)
        assert found is not None, "waited for"
        return found[0]

    def _check_place(self, topic: str, partition: int, timeout: float) -> tuple[int, float]:
        """Partition and timeout, checked. Raises `ConfigError`, `NodeStateError` before a start."""
        text("topic", topic)
        checked = whole("partition", partition), seconds("timeout", timeout)
        self._check_running()
        return checked

    def replicate_in_stages(
        self, topic: str, partition: int, batch: bytes, *, acks: int = -1, timeout: float = 30.0
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
        found = self._leading_hosted(image)
        if found is None:
            raise NodeStateError(f"nobody serves {topic}-{partition} now; wait for leader()")
        node, hosted = found
        return replicate_in_stages(
            self._lives[node], hosted, batch, acks=acks, timeout=round(timeout * 1e6)
        )

    # --- faults -------------------------------------------------------------------------------

    async def restart(self, node: int) -> None:
        """Start a node again on its disk and port; a running one is stopped first."""
        node = self._check(node)
        self._check_running()
        if node in self._lives:
            life = self._lives.pop(node)
            self._halt(life)
            try:
                await life.runner.syncer.drained()
            finally:
                if life.failed is None:
                    self._disks.close(node, life.runner.syncer.finish)
                else:
                    await self._disks.crash(node)
        self.network.heal(node)
        try:
            await self._listen(node)
        except DataFolderError as error:
            self._why_dead[node] = str(error)
            raise
        self._why_dead.pop(node, None)
        self._lives[node].join()
        self.events.note("restart", node)

    async def transfer_leadership(
        self, topic: str, partition: int, to: int, *, timeout: float = 10.0
    ) -> None:
        """Hand a partition to another replica and wait until it leads.

        Each leader is asked once: it takes no writes meanwhile, for an election timeout at most.
        """
        partition, timeout = self._check_place(topic, partition, timeout)
        to = self._check_successor(to)
        await self.leader(topic, partition, timeout=timeout)
        image = self._image(topic, partition)
        assert image is not None, "its leader was found"
        if to not in image.replicas:
            raise NodeStateError(
                f"node {to} has no replica of {topic}-{partition}; {list(image.replicas)} have"
            )

        place = f"{topic}-{partition}"
        handover = Handover(to, lambda: self._leading_hosted(image), self._lives)
        await self._until(handover.ended, timeout, f"node {to} to lead {place}", place)
        handover.check(place)

    async def _until(
        self, condition: Callable[[], bool], timeout: float, what: str, about: str = ""
    ) -> None:
        """Wait until `condition` holds; it is looked at about once a millisecond. What an error
        shows of the cluster is `about` a partition."""
        deadline = self._now() + round(timeout * 1e6)
        while not condition():
            if self._now() > deadline:
                why = self.config.slow_elections()
                seen = self.describe().in_short(about)
                raise ClusterTimeoutError(f"waited {timeout} s for {what}{why}\n{seen}")
            await asyncio.sleep(POLL_SECONDS)
