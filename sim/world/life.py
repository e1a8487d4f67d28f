"""One life of a node: the broker's own `Node`, with the simulator at its seams.

Everything a node does begins in `Life.enter`: a message, an alarm, a sync that ended, a request.
There a frozen process keeps things waiting and a dead one drops them. Everything a node asks of the
world goes through a seam handed to it: clockwork and store are here, network and listener in
`making.py`. Each seam has *points*, at which a test can make something happen in the middle of a
turn:

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
from typing import Any, NamedTuple, Protocol, cast

from ottla.broker.event_loop.clockwork import Cancel, Work
from ottla.broker.node.inspection import ReplicaView
from ottla.broker.node.node import Node
from ottla.log.memory_store import MemoryStore, MemorySyncJob
from ottla.log.store import SyncJob, Write
from ottla.log.types import Millis
from ottla.raft.types import NO_NODE, HardState, Micros, NodeId
from ottla.sim.mutants.mutant import Mutant, Mutants
from ottla.sim.world.clocks import MILLION, NodeClock
from ottla.sim.world.disks import SimDisk
from ottla.sim.world.frames import TOPIC
from ottla.sim.world.kernel import Kernel
from ottla.sim.world.points import Points


class Crashed(BaseException):
    """This life ended in the middle of what it was doing. Only `Life.enter` handles it."""


class Computer(NamedTuple):
    """What a node runs on."""

    kernel: Kernel
    points: Points
    clock: NodeClock
    disk: SimDisk
    turn_us: Micros
    """How long everything takes that a node does in one go."""


class StoreWatch(Protocol):
    """Hears what happens to the store of a life."""

    def started(self) -> None:
        """The life begins with what its disk holds."""

    def appended(self, writes: Sequence[Write]) -> None:
        """The store has taken these writes."""

    def synced(self, job: SyncJob) -> None:
        """Everything that the job covers survives from now on."""


class Makers(NamedTuple):
    """What makes the parts of a life that know more than a life does, and who hears of its end."""

    watch: Callable[[Life], StoreWatch]
    node: Callable[[Life], Node]
    failed: Callable[[Life, Exception], None]
    """Called if the node stopped itself."""


class Life:
    """See the module's docstring. `inc` counts the lives of the node from 1. A life does not know
    the world that it is in. Raises `CorruptLogError` if the disk is damaged."""

    def __init__(
        self, node: NodeId, inc: int, computer: Computer, makers: Makers, *, mutants: Mutants
    ):
        self.node_id = node
        self.inc = inc
        self.alive = True
        self.frozen = False
        self.thawed: Micros = 0
        """When it last went on after a freeze."""
        self.kernel, self.points, self.disk = computer.kernel, computer.points, computer.disk
        self._on_failed = makers.failed
        self._held: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self.clockwork = SimClockwork(self, computer)
        self.store = SimStore(self, makers.watch(self), mutants)
        self.node = makers.node(self)
        self.view = self.node.inspect()

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
        self.thawed = self.kernel.now
        held, self._held = self._held, []
        for place, (call, arguments) in enumerate(held):
            if self.frozen:
                self._held[:0] = held[place:]
                return
            self.enter(call, *arguments)

    def _failed(self, error: Exception) -> None:
        """The node stopped itself: its disk failed, or one of its invariants does not hold."""
        self.alive = False
        self._on_failed(self, error)

    def point(self, name: str, detail: Any = None) -> None:
        """Something can be made to happen here. Raises `Crashed` if that ended this life."""
        points = self.points
        if points.armed:
            points.reached(self.node_id, name, detail)
            if not self.alive:
                raise Crashed


def awake(life: Life | None) -> Life | None:
    """The leader that can be waited for. None if it is frozen: the other nodes do not hear it, and
    elect another one."""
    return None if life is None or life.frozen else life


def when_awake(life: Life | None, call: Callable[..., object], *arguments: Any) -> None:
    """Call it now; if the node is frozen, when it goes on."""
    if life is not None and life.frozen:
        life.enter(call, *arguments)
    else:
        call(*arguments)


class SimClockwork:
    """`ottla.broker.event_loop.clockwork.Clockwork` of one life, in virtual time."""

    def __init__(self, life: Life, computer: Computer):
        self.life = life
        self.kernel, self.clock = computer.kernel, computer.clock
        self._turn_us = computer.turn_us
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

        life.disk.sync(lambda: life.enter(done))
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

    def __init__(self, life: Life, watch: StoreWatch, mutants: Mutants):
        self._life = life
        self._mutants = mutants
        self.watch = watch
        super().__init__(life.disk.medium)
        life.disk.opened()

    def append(self, writes: Sequence[Write]) -> None:
        """As `MemoryStore.append`."""
        life = self._life
        life.point("append", writes)
        if Mutant.VOTE_NOT_WRITTEN in self._mutants:
            _forget_votes(writes)
        super().append(writes)
        self.watch.appended(writes)
        if life.points.armed:
            states = [each.hard_state for each in writes]
            if any(each is not None and each.vote != NO_NODE for each in states):
                life.point("voted", writes)
            life.point("appended", writes)

    def finish_sync(self, job: SyncJob) -> None:
        """As `MemoryStore.finish_sync`; a disk that lies keeps nothing."""
        disk = self._life.disk
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
