"""One life of a node: the broker's own `Node`, with the simulator at its seams.

Everything a node does begins in `Life.enter`: a message, an alarm, a sync that ended, a request.
There a frozen process keeps things waiting and a dead one drops them. Everything a node asks of the
world goes through a seam handed to it (clockwork, store, network, listener). Each seam has
*points*, at which a test can make something happen in the middle of a turn:

| point | when |
|---|---|
| append, appended | before and after the store takes a pump's writes |
| voted | after an append that wrote a vote, before any message about it |
| sync, synced | when a sync begins; when it has ended, before anything that waited for it is sent |
| send, sent | before and after a message leaves for another node |
| answer, answered | before and after an answer is written to a client's connection |

A crash at a point raises `Crashed` through the turn: nothing after the point happens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ottla.broker.event_loop.clockwork import Cancel, Work
from ottla.broker.event_loop.scheduler import Scheduler
from ottla.broker.node.inspection import ReplicaView
from ottla.broker.node.node import Node
from ottla.broker.node.replica_factory import ReplicaFactory
from ottla.log.memory_store import MemoryStore, MemorySyncJob
from ottla.log.store import SyncJob, Write
from ottla.log.types import Millis
from ottla.raft.types import NO_NODE, HardState, Micros, NodeId
from ottla.sim.mutants.mutant import Mutant
from ottla.sim.mutants.node import node_without
from ottla.sim.mutants.raft import core_without
from ottla.sim.world.clocks import MILLION
from ottla.sim.world.disks import CLUSTER_ID
from ottla.sim.world.frames import TOPIC
from ottla.sim.world.observer import VOTING
from ottla.sim.world.request_watch import RequestWatch
from ottla.sim.world.witness import witnessed

if TYPE_CHECKING:
    from ottla.sim.world.world import World


class Crashed(BaseException):
    """This life ended in the middle of what it was doing. Only `Life.enter` handles it."""


class Life:
    """See the module's docstring. `inc` counts the lives of the node from 1."""

    def __init__(self, world: World, node: NodeId, inc: int):
        self.world = world
        self.node_id = node
        self.inc = inc
        self.alive = True
        self.frozen = False
        self.thawed: Micros = 0
        """When it last went on after a freeze."""
        self._held: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self.clockwork = SimClockwork(self)
        self.requests = RequestWatch(self)
        self.store = SimStore(self)
        self.node = self._make()
        self.view = self.node.inspect()

    def _make(self) -> Node:
        world = self.world
        return node_without(world.mutants)(
            self.node_id,
            world.cluster_config,
            cluster_id=CLUSTER_ID,
            nodes=world.nodes,
            addresses=world.addresses,
            store=self.store,
            network=_Transport(self),
            listen=lambda host: world.listener(self, host),
            scheduler=Scheduler(self.clockwork),
            clockwork=self.clockwork,
            factory=self._factory(),
        )

    def _factory(self) -> ReplicaFactory:
        world, observer = self.world, self.world.observer
        seen = witnessed(
            world.mutants,
            partial(observer.decided, self),
            partial(observer.committed, self),
            partial(observer.restored, self),
        )
        return world.factory(
            self.node_id,
            world.cluster_config,
            store=self.store,
            counters=world.counters,
            jitter=world.choices.stream(f"election {self.node_id}"),
            make_core=core_without(world.mutants),
            make_partition=seen,
            limits=world.config.log_limits(),
        )

    def replica(self, partition: int) -> ReplicaView | None:
        """Its replica of a partition of the topic; None: it has none."""
        inbox = self.node.replica(TOPIC, partition)
        return None if inbox is None else self.view.replica(inbox.group)

    # ---- what happens to it

    def enter(self, call: Callable[..., object], *arguments: Any) -> None:
        """Let the node do something; later if it is frozen, never if it is dead."""
        if not self.alive:
            return
        if self.frozen:
            self._held.append((call, arguments))
            return
        try:
            call(*arguments)
        except Crashed:
            return
        if self.node.failed is not None:
            self._failed(self.node.failed)

    def freeze(self) -> None:
        """Stop, as by SIGSTOP (sim-P2)."""
        self.frozen = True

    def thaw(self) -> None:
        """Go on with what was held back, in order."""
        self.frozen = False
        self.thawed = self.world.kernel.now
        held, self._held = self._held, []
        for place, (call, arguments) in enumerate(held):
            if self.frozen:
                self._held[:0] = held[place:]
                return
            self.enter(call, *arguments)

    def _failed(self, error: Exception) -> None:
        """The node stopped itself: its disk failed, or one of its invariants does not hold."""
        self.alive = False
        self.world.node_failed(self, error)

    def point(self, name: str, detail: Any = None) -> None:
        """Something can be made to happen here. Raises `Crashed` if that ended this life."""
        points = self.world.points
        if points.armed:
            points.reached(self.node_id, name, detail)
            if not self.alive:
                raise Crashed


class SimClockwork:
    """`ottla.broker.event_loop.clockwork.Clockwork` of one life, in virtual time."""

    def __init__(self, life: Life):
        world = life.world
        self.life = life
        self.kernel = world.kernel
        self.clock = world.clocks[life.node_id]
        self._disk = world.disks[life.node_id]
        self._turn_us = world.config.turn_us
        self._busy_until: Micros = 0
        self._slowness = 1
        self.well_since: Micros = 0
        """The time since which nothing takes longer than usual."""
        self._alarms: dict[_Alarm, None] = {}
        """The alarms that are set."""

    @property
    def slowness(self) -> int:
        """How many times longer than usual everything takes (sim-P3)."""
        return self._slowness

    @slowness.setter
    def slowness(self, times: int) -> None:
        self._slowness = times
        self.well_since = max(self.kernel.now, self._busy_until)

    def now(self) -> Micros:
        """The node's monotonic clock. As `NodeClock.read`, but inline, because it is read so
        often."""
        clock = self.clock
        span = self.kernel.now - clock.since
        if clock.rate != MILLION:
            span = span * clock.rate // MILLION
        return clock.base + span

    def wall_ms(self) -> Millis:
        """The node's wall clock."""
        return self.clock.wall_ms(self.kernel.now)

    def call_soon(self, call: Callable[[], None], /) -> None:
        """Call it when the node has time: one thing after the other."""
        kernel, at = self.kernel, self._busy_until
        at = max(at, kernel.now) + self._turn_us * self._slowness
        self._busy_until = at
        kernel.at(at, self.life.enter, call)

    def backlog(self) -> Micros:
        """How long the next `call_soon` waits."""
        wait = self._turn_us * self.slowness
        return max(0, self._busy_until - self.kernel.now) + wait

    def call_at(self, when: Micros, call: Callable[[], None]) -> Cancel:
        """Call it when the node's clock shows `when`."""
        alarm = _Alarm(self._alarms, self, when, call)
        self._set(alarm)
        return alarm.cancel

    def _set(self, alarm: _Alarm) -> None:
        self.kernel.at(self.clock.when(alarm.when), self.life.enter, alarm.ring)

    def jumped(self) -> None:
        """The clock jumped forward: each alarm is due at an earlier time than it was scheduled
        for."""
        for alarm in tuple(self._alarms):
            self._set(alarm)

    def work(self, work: Callable[[], None], ended: Callable[[str | None], None]) -> Work:
        """A sync. It ends when the disk says so."""
        life = self.life
        life.point("sync")

        def done() -> None:
            work()
            ended(None)

        self._disk.sync(lambda: life.enter(done))
        return _NO_WORK


class _NoWork:
    """Work that has ended: nothing waits for work in virtual time."""

    async def wait(self) -> None:
        """It has ended."""


_NO_WORK = _NoWork()


class _Alarm:
    """A call at a time of a clock whose rate may change meanwhile. It is in `alarms` until it rings
    or is cancelled."""

    __slots__ = ("_call", "_clockwork", "_set", "when")

    def __init__(
        self,
        alarms: dict[_Alarm, None],
        clockwork: SimClockwork,
        when: Micros,
        call: Callable[[], None],
    ):
        self.when = when
        """What the clock shows when it is due."""
        self._set = alarms
        self._clockwork = clockwork
        self._call = call
        alarms[self] = None

    def cancel(self) -> None:
        """It will not ring."""
        self._set.pop(self, None)

    def ring(self) -> None:
        """The time for which it was scheduled has come; it rings, or is scheduled again."""
        if self not in self._set:
            return
        clockwork = self._clockwork
        if clockwork.now() < self.when:
            clockwork.kernel.at(clockwork.clock.when(self.when), clockwork.life.enter, self.ring)
            return
        self.cancel()
        self._call()


class SimStore(MemoryStore):
    """The broker's memory store, watched, with a point before and after each step."""

    def __init__(self, life: Life):
        self._life = life
        self.watch = life.world.observer.logs_of(life)
        disk = life.world.disks[life.node_id]
        super().__init__(disk.medium)
        disk.opened()

    def append(self, writes: Sequence[Write]) -> None:
        """As `MemoryStore.append`."""
        life = self._life
        life.point("append", writes)
        if Mutant.VOTE_NOT_WRITTEN in life.world.mutants:
            _forget_votes(writes)
        super().append(writes)
        self.watch.appended(writes)
        if life.world.points.armed:
            states = [each.hard_state for each in writes]
            if any(each is not None and each.vote != NO_NODE for each in states):
                life.point("voted", writes)
            life.point("appended", writes)

    def finish_sync(self, job: SyncJob) -> None:
        """As `MemoryStore.finish_sync`; a disk that lies keeps nothing."""
        disk = self._life.world.disks[self._life.node_id]
        if not disk.lies or self.failure is not None:
            super().finish_sync(job)
        else:
            disk.cached = cast(MemorySyncJob, job).appends
        self.watch.synced(job)
        self._life.point("synced")


def _forget_votes(writes: Sequence[Write]) -> None:
    for write in writes:
        if write.hard_state is not None:
            write.hard_state = HardState(write.hard_state.term)


class _Transport:
    """The node's network, with a point before and after each message."""

    def __init__(self, life: Life):
        self._life = life
        self._network = life.world.network
        self._points = life.world.points

    def attach(self, node: NodeId, receive: Callable[[NodeId, Any], None]) -> None:
        """Messages go to `receive` from now on, when the node has time for them."""
        life = self._life
        in_sync = life.world.observer.in_sync

        def hear(sender: NodeId, message: Any) -> None:
            if in_sync is not None:
                in_sync.heard(life, message)
            receive(sender, message)

        self._network.attach(node, partial(life.enter, receive if in_sync is None else hear))

    def detach(self, node: NodeId) -> None:
        """Nothing reaches the node any more."""
        self._network.detach(node)

    def send(self, sender: NodeId, to: NodeId, message: object) -> None:
        """Send one message."""
        life, points = self._life, self._points
        if points.armed:
            life.point("send", message)
        if message.__class__ in VOTING:
            life.world.observer.said(life, message)
        self._network.send(sender, to, message)
        if points.armed:
            life.point("sent", message)
