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
from typing import Unpack

from ottla.broker.arguments.addresses import Advertised
from ottla.broker.arguments.arguments import as_whole, seconds
from ottla.broker.arguments.places import Folder, folder_of, host_of, port_of
from ottla.broker.arguments.spelling import shown
from ottla.broker.cluster.all_served import AllServed
from ottla.broker.cluster.description import (
    ClusterDescription,
    describe_configs,
    describe_node,
    describe_topics,
)
from ottla.broker.cluster.events import EventLog
from ottla.broker.cluster.faults import ClusterFaults, DiskFault, FaultName
from ottla.broker.cluster.nodes import ClusterNodes
from ottla.broker.cluster.partitions import ClusterPartitions
from ottla.broker.cluster.reach import OpenPort, Reach
from ottla.broker.cluster.stages import Stages
from ottla.broker.config import ClusterConfig, Settings, with_settings
from ottla.broker.counters import Counters
from ottla.broker.errors import (
    ClusterTimeoutError,
    ConfigError,
    ErrorCode,
    RequestFailedError,
)
from ottla.broker.event_loop.clockwork import MakeClockwork, RunningClock
from ottla.broker.event_loop.lifecycle import Lifecycle
from ottla.broker.event_loop.native import monotonic_micros
from ottla.broker.event_loop.scheduler import Scheduler
from ottla.broker.images import PartitionImage
from ottla.broker.node.disks import Disks
from ottla.broker.node.folders import DataFolderError, check_left_out, left_out
from ottla.broker.node.node import Node
from ottla.broker.node.node_factory import NodeFactory
from ottla.broker.topics.topic import Topic, topics_of
from ottla.broker.transport.in_process import Network
from ottla.broker.wire.ports import ReservedPort
from ottla.broker.wire.remarks import Remarks
from ottla.log import inflate
from ottla.raft.types import Micros

MAX_NODES = 7
POLL_SECONDS = 0.001
START_SECONDS = 30.0


class AsyncCluster:
    """See `ottla.Cluster` for what each method does. Here, methods that take time are awaited."""

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
        ids = tuple(range(1, count + 1))
        self._topics = topics_of(topics)
        host, port = host_of(host), port_of(port, count)
        self._reach = Reach(open_port, host, port, nodes=ids, advertised=advertised)
        folder = folder_of(data_dir)
        without = check_left_out(without_nodes, ids, folder)
        self._disks = Disks(ids, folder, self.config, without)
        self._factory: NodeFactory
        self._lifecycle = Lifecycle(self._start, self._stop)
        self._clock: RunningClock | None = None
        self.network = Network(round(self.config.link_delay_ms * 1000), ids)
        self._nodes = ClusterNodes(ids, without, self.network, self._lifecycle, self._disks.hangs)
        self._faults = ClusterFaults(self._nodes, self.network, self._disks, self.events)
        self._partitions = ClusterPartitions(
            self._nodes,
            self.config,
            self._time,
            until=self._until,
            check_successor=self._faults.check_successor,
        )
        self.on_failed: Callable[[int], None] = lambda _: None
        """Called with the number of a node that has just stopped by itself."""

    def _time(self) -> Micros:
        """Now, by the clock that `start` has chosen."""
        return self._now()

    # --- what it is ---------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of every node as it is advertised, comma-separated. Raises `NodeStateError`
        before the start."""
        return self._reach.bootstrap_servers()

    @property
    def addresses(self) -> Mapping[int, tuple[str, int]]:
        """Host and port at which each node listens, for clients on this machine. Raises
        `NodeStateError` before the start."""
        return self._reach.listening()

    @property
    def advertised(self) -> Mapping[int, tuple[str, int]]:
        """Host and port at which each node is advertised to clients."""
        return dict(self._reach.told)

    def node(self, node: int) -> Node:
        """One node's present life, for tools that must look inside. Raises `NodeStateError` when
        it is dead."""
        return self._nodes.life(node)

    def describe(self) -> ClusterDescription:
        """The state of the whole cluster, as plain values."""
        self._reach.check()
        self._lifecycle.check_ours()
        present, lives = self._nodes, self._nodes.lives
        nodes = {
            node: describe_node(
                node, lives.get(node), present.state(node), present.why_dead.get(node, "")
            )
            for node in present.ids
        }
        controller, topics = describe_topics(lives, present.serving, self._now())
        return ClusterDescription(
            self.cluster_id,
            controller,
            nodes,
            topics,
            self.counters.as_dict(),
            self.network.delivered,
            self.network.dropped,
            describe_configs(lives),
        )

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
            nodes=self._nodes.ids,
            cluster_id=self.cluster_id,
            addresses=self._reach.told,
            disks=self._disks,
            network=self.network,
            counters=self.counters,
            scheduler=Scheduler(shared),
            clockwork=clockwork,
        )
        present = [node for node in self._nodes.ids if node not in self._nodes.without]
        for node in present:
            await self._listen(node)
        for node in present:
            self._nodes.lives[node].join()
        for node in self._nodes.without:
            self.events.note("left out", node)
            logging.getLogger("ottla").warning("%s", left_out(node))
        await self._until_started(self._nodes.informed, "a controller")
        for topic in self._topics:
            await self._ensure(topic)
        served = AllServed(self._without_leader, self._nodes.serving)
        await self._until_started(served, "leaders of all topics")

    async def _until_started(self, condition: Callable[[], bool], what: str) -> None:
        """As `_until`. Raises `NodeStateError` as soon as no majority of the nodes can start: on a
        full disk, a start waited for 30 seconds in vain."""

        def started() -> bool:
            self._nodes.check_start()
            return condition()

        await self._until(started, START_SECONDS, what)

    async def _ensure(self, topic: Topic) -> None:
        """Create a topic that the cluster should start with. If it is on the disks, it stays."""
        try:
            await self._partitions.create(topic, START_SECONDS)
        except RequestFailedError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    def _without_leader(self) -> list[PartitionImage]:
        """Partitions that nobody serves, except those that have no majority because nodes were left
        out."""
        return [
            image
            for topic in self._nodes.running()[0].topics().values()
            for image in topic.partitions
            if 2 * len([each for each in image.replicas if each in self._nodes.lives])
            > len(image.replicas)
            and not self._nodes.serving(image)
        ]

    async def _listen(self, node: int) -> None:
        life = self._nodes.lives[node] = await self._factory.make(node)
        life.remarks = self._remarks
        self.events.watch(life)
        life.on_failed = self._failed
        await self._reach.listen(node, life.server)

    def _failed(self, life: Node, error: Exception) -> None:
        self.events.failed(life, error)
        self.on_failed(life.node)

    async def stop(self) -> None:
        """Stop every node: its log is synced, its disk is closed. It is harmless to stop twice (at
        the same time or later), while the cluster starts, or in a forked child."""
        await self._lifecycle.stop()

    async def _stop(self) -> None:
        # Each step is done, even if a step before it fails.
        with ExitStack() as steps:
            steps.callback(self._nodes.lives.clear)
            if self._clock is not None:
                steps.callback(self._clock.stop)
            for node in self._nodes.ids:
                steps.callback(self._disks.close, node)
            for life in self._nodes.lives.values():
                steps.callback(self._disks.close, life.node, life.runner.syncer.finish)
            steps.callback(self._reach.close)
            self._halt_all()
            for life in self._nodes.lives.values():
                await life.runner.syncer.drained()

    def _halt_all(self) -> None:
        with ExitStack() as steps:
            for life in self._nodes.lives.values():
                steps.callback(self._halt, life)

    def _halt(self, life: Node) -> None:
        """End a life of a node; a stalled disk lets its waiting syncs go on."""
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
        timeout = seconds("timeout", timeout)
        await self._partitions.create(topic, timeout)
        served = AllServed(lambda: self._partitions.unserved(topic.name), self._nodes.serving)
        await self._until(served, timeout, f"leaders of topic {topic.name}")

    async def delete_topic(self, name: str, *, timeout: float = 10.0) -> None:
        """Delete a topic."""
        await self._partitions.delete(name, timeout)

    async def leader(self, topic: str, partition: int = 0, *, timeout: float = 10.0) -> int:
        """The node that leads a partition and serves it."""
        return await self._partitions.leader(topic, partition, timeout)

    def replicate_in_stages(
        self, topic: str, partition: int, batch: bytes, *, acks: int = -1, timeout: float = 30.0
    ) -> Stages:
        """Append one record batch on the partition's leader, without a client in between.

        Raises `UnknownTopicError`, or `NodeStateError` while nobody serves the partition.
        """
        return self._partitions.replicate_in_stages(topic, partition, batch, acks, timeout)

    # --- faults -------------------------------------------------------------------------------

    async def kill(self, node: int) -> None:
        """Signal 9."""
        await self._faults.kill(node)

    def pause(self, node: int) -> None:
        """SIGSTOP."""
        self._faults.pause(node)

    def resume(self, node: int) -> None:
        """SIGCONT."""
        self._faults.resume(node)

    def isolate(self, node: int) -> None:
        """Cut a node off from its peers."""
        self._faults.isolate(node)

    def heal(self, node: int | None = None) -> None:
        """End the isolation of `node`, or of all."""
        self._faults.heal(node)

    def cut_connections(self, node: int) -> int:
        """Drop every client connection of a node."""
        return self._faults.cut_connections(node)

    def break_disk(self, node: int, fault: DiskFault | FaultName) -> None:
        """From its next sync on, a node's disk hangs or fails; only for logs in memory."""
        self._faults.break_disk(node, fault)

    def mend_disk(self, node: int) -> None:
        """Syncs that hang go on, and later syncs no longer fail."""
        self._faults.mend_disk(node)

    async def restart(self, node: int) -> None:
        """Start a node again on its disk and port; a running one is stopped first."""
        node = self._nodes.check(node)
        self._nodes.check_begun()
        if node in self._nodes.lives:
            life = self._nodes.lives.pop(node)
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
            self._nodes.why_dead[node] = str(error)
            raise
        self._nodes.why_dead.pop(node, None)
        self._nodes.lives[node].join()
        self.events.note("restart", node)

    async def transfer_leadership(
        self, topic: str, partition: int, to: int, *, timeout: float = 10.0
    ) -> None:
        """Transfer the leadership of a partition to another replica, and wait until it leads.

        Each leader is asked once. While it transfers, for at most an election timeout, it takes no
        writes.
        """
        await self._partitions.transfer(topic, partition, to, timeout)

    async def _until(
        self, condition: Callable[[], bool], timeout: float, what: str, about: str = ""
    ) -> None:
        """Wait until `condition` holds, checking it about once a millisecond. The error after a
        timeout shows the state of the cluster and of the partition `about`."""
        deadline = self._now() + round(timeout * 1e6)
        while not condition():
            if self._now() > deadline:
                why = self.config.slow_elections()
                seen = self.describe().in_short(about)
                raise ClusterTimeoutError(f"waited {timeout} s for {what}{why}\n{seen}")
            await asyncio.sleep(POLL_SECONDS)
