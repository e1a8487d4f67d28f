"""The world of a run: nodes on their disks, links and clocks, and what can be done to them.

All that a nemesis, a script or a scenario does goes through a method of `World`, leaves a `fault`
row, and can be replayed. Faults that no Raft survives leave a `beyond` row, and only scripts ask
for them: a disk that forgets what it synced, an old copy of a disk, a producer id given out twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Any

from ottla.broker.counters import Counters
from ottla.broker.errors import ErrorCode
from ottla.broker.node.inspection import ReplicaView
from ottla.broker.node.node import Node
from ottla.broker.node.replica_factory import ReplicaFactory
from ottla.broker.topics.topic import Topic
from ottla.broker.turn.commands import CreateTopic
from ottla.log.errors import CorruptLogError, StoreError
from ottla.raft.quorum import majority
from ottla.raft.types import GroupId, LogIndex, Micros, NodeId, Term
from ottla.sim.chance.choices import Choices
from ottla.sim.history.history import History
from ottla.sim.invariants.beyond import LOST_SYNC, OLD_COPY
from ottla.sim.mutants.catalogue import mutants_of
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.clocks import NodeClock
from ottla.sim.world.decoder import Decoder
from ottla.sim.world.disks import SimDisk
from ottla.sim.world.frames import TOPIC
from ottla.sim.world.kernel import Kernel
from ottla.sim.world.life import Computer, Life, Makers
from ottla.sim.world.listener import ServedConnection, listener_of
from ottla.sim.world.log_watch import LogWatch
from ottla.sim.world.making import Shared, make_node
from ottla.sim.world.network import SimNetwork
from ottla.sim.world.observer import Observer
from ottla.sim.world.points import Points
from ottla.sim.world.producer_ids import ProducerIds
from ottla.sim.world.request_watch import LostRequests
from ottla.sim.world.tcp import ClientNetwork, Connection

SECOND: Micros = 1_000_000
BOOT: Micros = 60 * SECOND
"""Within this span an undisturbed cluster has a controller and its topic, if elections are not
slow."""
STEP: Micros = 1_000
ENDLESS = float("inf")
"""A high watermark that is never reached."""


class BrokerBug(Exception):  # noqa: N818 - it names what it is
    """An invariant of the broker itself does not hold: the run ends here."""


class World:
    """See the module's docstring. Nodes are numbered from 1."""

    def __init__(self, config: RunConfig, choices: Choices):
        self.config = config
        self.factory = ReplicaFactory
        """What makes the nodes' replicas."""
        self.cluster_config = config.cluster_config()
        self.choices = choices
        self.mutants = mutants_of(config.mutants)
        self.kernel = Kernel()
        self.history = History(lambda: self.kernel.now)
        self.decoder = Decoder()
        self.observer = Observer(self.history, config)
        self.watch_log: Callable[[Observer, Life], LogWatch] = LogWatch
        """Watches the store of a life. A caller that wants to see more sets its own class."""
        self.producer_ids = ProducerIds(self.history)
        self.points = Points()
        self.counters = Counters()
        self.nodes: tuple[NodeId, ...] = tuple(range(1, config.nodes + 1))
        self.addresses = {node: ("node", node) for node in self.nodes}
        self.clocks = {node: NodeClock(node * 1_000 * SECOND) for node in self.nodes}
        self.disks = {node: SimDisk(node, self.kernel, choices, config) for node in self.nodes}
        self.network = SimNetwork(self.kernel, choices, config)
        self.clients = ClientNetwork(
            self.kernel, choices, config, self._serve, lambda node: node in self.lives
        )
        self.lives: dict[NodeId, Life] = {}
        """The nodes that are not dead, frozen ones included."""
        self.other_group: Callable[[], GroupId | None] = _none
        """The group of the topic that the sequential client works with, if it has one."""
        self.client_dies: Callable[[int], None] = _nobody
        """Kills the client of that number; `workload.py` sets it if clients can die."""
        self._last: dict[NodeId, Life] = {}
        """The latest life of each node that has died."""
        self.placement: dict[int, tuple[NodeId, ...]] = {}
        """Replicas by partition, as decided while booting; a node that has just come back may not
        know them."""
        self._lost_requests = LostRequests(self.history)
        self._incs = dict.fromkeys(self.nodes, 0)
        self._shared = Shared(
            config,
            self.cluster_config,
            self.mutants,
            choices,
            self.counters,
            self.addresses,
            self.producer_ids,
            self._lost_requests.add,
        )

    # ---- beginning

    def boot(self) -> None:
        """Start all nodes, create the topic, wait until every partition has a leader."""
        self.quiet(now=True)
        self.network.draw_delays(self.choices)
        within = max(BOOT, self.config.bound_ms * 1_000)
        for node in self.nodes:
            self.start(node)
        self.until(lambda: self.controller() is not None, within, "a controller")
        self._create_topic(within)
        self.until(self.all_lead, within, "leaders")
        images = self.lives[1].node.topics()[TOPIC].partitions
        self.placement = {each.partition: each.replicas for each in images}
        self.quiet(now=False)
        config = self.config
        self.history.add(
            "phase",
            code="load",
            quorum=config.in_sync_needed,
            aux=config.replica_lag_ms * 1_000,
            value=config.idle_us,
        )

    def _create_topic(self, within: Micros) -> None:
        """Create the topic; if the controller moves meanwhile, the node handles that. Raises
        `BrokerBug`."""
        topic = Topic(TOPIC, self.config.partitions, self.config.replicas)
        answers: list[ErrorCode] = []
        node = self.lives[1].node
        command = CreateTopic.of(topic, len(self.nodes), self.config.replicas)
        node.control(command, lambda error, _: answers.append(error), node.now() + within)
        self.until(lambda: bool(answers), within, "the topic")
        if answers != [ErrorCode.NONE]:
            raise BrokerBug(f"the topic was refused: {answers[0].name}")

    def quiet(self, *, now: bool) -> None:
        """`now`: whether nothing goes wrong by itself any more."""
        self.network.quiet = self.clients.quiet = now
        for disk in self.disks.values():
            disk.quiet = now

    def controller(self) -> Life | None:
        """The node that leads the controller's group in the latest term and serves; frozen nodes
        count."""
        serving = [each for each in self.lives.values() if each.view.controls]
        return max(serving, key=_controller_term, default=None)

    def all_lead(self) -> bool:
        """Whether every partition has a leader that serves."""
        return all(self.leader(each) is not None for each in range(self.config.partitions))

    # ---- looking

    def replicas(self, partition: int) -> dict[NodeId, ReplicaView]:
        """The replicas of a partition on the nodes that are not dead."""
        found = ((node, life.replica(partition)) for node, life in self.lives.items())
        return {node: replica for node, replica in found if replica is not None}

    def everybody(self) -> Iterator[Life]:
        """The nodes that live, and the last life of each other node: what it knew when it died."""
        yield from self.lives.values()
        yield from (life for node, life in self._last.items() if node not in self.lives)

    def leader(self, partition: int = 0) -> Life | None:
        """The node that leads a partition in the latest term and serves; frozen nodes count."""
        return self._latest(self.replicas(partition).items())

    def other_leader(self) -> tuple[Life, ReplicaView] | None:
        """Who leads the partition of the sequential client's topic, and its replica."""
        group = self.other_group()
        if group is None:
            return None
        found = ((node, life.view.replica(group)) for node, life in self.lives.items())
        replicas = {node: replica for node, replica in found if replica is not None}
        life = self._latest(replicas.items())
        return None if life is None else (life, replicas[life.node_id])

    def _latest(self, replicas: Iterable[tuple[NodeId, ReplicaView]]) -> Life | None:
        best: tuple[int, NodeId] | None = None
        for node, replica in replicas:
            made = replica.of_partition()
            if made.serves and (best is None or made.term > best[0]):
                best = (made.term, node)
        return None if best is None else self.lives[best[1]]

    def high_watermark(self, partition: int, unled: float) -> float:
        """High watermark of a partition's leader (exclusive); `unled` if no node leads."""
        life = self.leader(partition)
        if life is None:
            return unled
        return self.replicas(partition)[life.node_id].of_partition().high_watermark

    def until(self, condition: Callable[[], bool], within: Micros, what: str) -> None:
        """Run until `condition` holds. Raises `BrokerBug` if it does not within `within`."""
        end = self.kernel.now + within
        while not condition():
            if self.kernel.now >= end:
                raise BrokerBug(f"{what}: not within {within // 1000} ms")
            self.kernel.run(self.kernel.now + STEP)

    # ---- lives

    def start(self, node: NodeId) -> bool:
        """Start a new life on the node's disk. False: the disk is damaged or wiped, so the node
        does not start."""
        assert node not in self.lives, f"node {node} lives"
        if self.disks[node].fresh:
            self.history.add("fault", node=node, code="refuses to start: its disk was lost")
            return False
        self._incs[node] += 1
        try:
            life = self._make_life(node, self._incs[node])
        except CorruptLogError as error:
            self.history.add("fault", node=node, code=f"refuses to start: {error}")
            return False
        self.lives[node] = life
        self.observer.started(life)
        self.observer.watch(life)
        life.node.server.pause()
        life.enter(life.node.join)
        return True

    def _make_life(self, node: NodeId, inc: int) -> Life:
        clock, disk = self.clocks[node], self.disks[node]
        computer = Computer(self.kernel, self.points, clock, disk, self.config.turn_us)
        watch = partial(self.watch_log, self.observer)
        makers = Makers(watch, self._make_node, self._node_failed)
        return Life(node, inc, computer, makers, mutants=self.mutants)

    def _make_node(self, life: Life) -> Node:
        network, factory = self.network, self.factory
        return make_node(life, self._shared, self.observer, network=network, factory=factory)

    def _serve(self, connection: Connection) -> ServedConnection | None:
        life = self.lives.get(connection.node)
        if life is None:
            return None
        return listener_of(life).accept(connection)

    def crash(
        self, node: NodeId, where: str = "", *, power: bool = False, torn: bool = False
    ) -> None:
        """The process dies at once, with `power` its machine does. Unsynced appends may be lost;
        `torn`: the newest one that survives is incomplete.

        Without power its operating system resets the connections of its clients; with it no client
        is told.
        """
        life = self.lives.pop(node, None)
        if life is None:
            if power:
                self._cache_lost(node)
            return
        self._last[node] = life
        life.alive = False
        self.network.detach(node)
        lost = self.disks[node].crash(power=power, torn=torn)
        what = "power lost" if power else "killed"
        self.history.add("fault", node=node, code=f"{what}{' at ' + where if where else ''}")
        self.observer.crashed(life, where or what, lost)
        self.clients.node_died(node, resets=not power)

    def _cache_lost(self, node: NodeId) -> None:
        """The machine of a dead process loses its power: what was left in the page cache may be
        lost."""
        lost = self.disks[node].crash(power=True)
        if lost:
            self.history.add("fault", node=node, code="power lost")
            self.observer.crashed(self._last[node], "power lost", lost)

    def _node_failed(self, life: Life, error: Exception) -> None:
        """A node stopped itself. Raises `BrokerBug` unless its disk is to blame."""
        if not isinstance(error, StoreError):
            raise BrokerBug(f"node {life.node_id}: {type(error).__name__}: {error}") from error
        self.lives.pop(life.node_id, None)
        self._last[life.node_id] = life
        self.network.detach(life.node_id)
        lost = self.disks[life.node_id].crash(power=True)
        self.history.add("fault", node=life.node_id, code=f"stopped: {error}")
        self.observer.crashed(life, "disk", lost)
        self.clients.node_died(life.node_id, resets=True)

    def stop(self, node: NodeId) -> None:
        """Shut the node down in order: it tells its clients, and all that it wrote is on its
        disk."""
        life = self.lives.get(node)
        if life is None or life.frozen:
            return
        life.enter(life.node.stop)
        medium = self.disks[node].medium
        medium.sync(medium.synced_appends + medium.unsynced_appends)
        self.crash(node, "stopping")

    def freeze(self, node: NodeId) -> None:
        """Stop the process, as by SIGSTOP."""
        life = self.lives.get(node)
        if life is not None and not life.frozen:
            self.history.add("pause", node=node, inc=life.inc)
            life.freeze()

    def thaw(self, node: NodeId) -> None:
        """Let it go on."""
        life = self.lives.get(node)
        if life is not None and life.frozen:
            self.history.add("resume", node=node, inc=life.inc)
            life.thaw()

    # ---- beyond the fault budget

    def lie(self, node: NodeId) -> None:
        """From now on its disk reports syncs as done and keeps nothing."""
        self.disks[node].lies = True
        self.history.add("beyond", node=node, code=LOST_SYNC)

    def bring_back(self, node: NodeId) -> None:
        """The disk of a dead node returns to its state when `SimDisk.keep_copy` was called."""
        assert node not in self.lives, f"node {node} lives"
        self.disks[node].restore()
        self.history.add("beyond", node=node, code=OLD_COPY)

    def wipe(self, node: NodeId) -> None:
        """Erase the disk of a dead node."""
        assert node not in self.lives, f"node {node} lives"
        self.disks[node].wipe()
        self.fault("its disk was lost", node)

    def rot(self, node: NodeId, group: GroupId, index: LogIndex) -> None:
        """Damage an entry that a dead node had synced: the node must refuse to start."""
        assert node not in self.lives, f"node {node} lives"
        self.disks[node].rot(group, index)
        self.fault(f"entry {index} of group {group} rots on its disk", node)

    @property
    def able(self) -> tuple[NodeId, ...]:
        """The nodes that have a disk to start on."""
        return tuple(node for node, disk in self.disks.items() if not (disk.rotten or disk.fresh))

    def near(self, nodes: Collection[NodeId]) -> bool:
        """Whether enough of these nodes are near each other to agree. Some settings of links allow
        that only for some majorities."""
        for group in (self.nodes, *self.placement.values()):
            inside, needed = [each for each in group if each in nodes], majority(len(group))
            if len(inside) >= needed and not self.config.near(inside, needed):
                return False
        return True

    # ---- time

    def jump(self, node: NodeId, span: Micros) -> None:
        """The node's monotonic clock jumps forward by `span` (sim-C1): what was due in between is
        due now."""
        self.clocks[node].jump(self.kernel.now, span)
        life = self.lives.get(node)
        if life is not None:
            life.clockwork.jumped()

    def fault(self, code: str, node: NodeId | None = None, **columns: Any) -> None:
        """Add a row for what was done on purpose."""
        self.history.add("fault", node=node, code=code, **columns)

    # ---- the end of all faults

    def heal(self, core: Collection[NodeId]) -> None:
        """Make these nodes and the links between them work again, and let clients reach all nodes.

        Nothing new goes wrong anywhere, and no filter drops messages (`ending.py` says why).
        Everything else that is broken stays as it is until it is healed too: a dead node stays
        dead, a link that is cut stays cut.
        """
        self.points.clear()
        self.quiet(now=True)
        self.network.filters.clear()
        self.network.mend(core)
        self.clients.mend()
        for node in self.nodes:
            if node in core:
                self.disks[node].heal()
                self.clocks[node].slew_wall(self.kernel.now, 0)
                if node not in self.lives and not self.start(node):
                    continue
                self.lives[node].clockwork.slowness = 1
                self.thaw(node)

    def note_final(self) -> None:
        """Rows for all logs as they are now, and for what nodes say of them."""
        self.observer.final(self.lives, self.placement, self.decoder)

    def note_unanswered(self) -> None:
        """Rows for requests that are still open, and one for how many lost their connection."""
        for life in self.lives.values():
            listener_of(life).watches.requests.final()
        self._lost_requests.note()


def _nobody(_: int) -> None:
    """No client can die."""


def _controller_term(life: Life) -> Term:
    replica = life.view.controller()
    return 0 if replica is None else replica.soft.term


def _none() -> GroupId | None:
    """There is no such client."""
    return None
