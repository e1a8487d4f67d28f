"""A lone `Runner` on a clockwork that a test turns by hand; what it sends is kept, and lost.

`Ground.now_is` is the time, `run` does what was asked for *soon*, `ring` what was asked for *at* a
time that has come, `works` holds the syncs that a test ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from broker_core_replicas import NOW, FirstJitter
from ottla.broker.config import ClusterConfig
from ottla.broker.counters import Counters
from ottla.broker.driver.hosted import HostedReplica
from ottla.broker.driver.runner import Runner
from ottla.broker.event_loop.clockwork import Cancel, Work
from ottla.broker.event_loop.scheduler import Scheduler
from ottla.broker.heartbeats.heartbeats import Heartbeats
from ottla.broker.images import TopicImage
from ottla.broker.node.replica_factory import ReplicaFactory
from ottla.log.memory_store import MemoryDisk, MemoryStore
from ottla.raft.types import GroupId, Micros, NodeId


class _Never:
    """Nobody waits for work here."""

    async def wait(self) -> None:
        """It has ended."""


class Ground:
    """Clockwork and network of one node."""

    def __init__(self) -> None:
        self.now_is: Micros = NOW
        self.sent: list[Any] = []
        self.works: list[tuple[Callable[[], None], Callable[[str | None], None]]] = []
        self._soon: list[Callable[[], None]] = []
        self._alarms: dict[int, tuple[Micros, Callable[[], None]]] = {}
        self._numbers = 0

    def now(self) -> Micros:
        """See the module's text."""
        return self.now_is

    def wall_ms(self) -> int:
        """Nobody asks."""
        return 0

    def call_soon(self, call: Callable[[], None], /) -> None:
        """For `run`."""
        self._soon.append(call)

    def call_at(self, when: Micros, call: Callable[[], None]) -> Cancel:
        """For `ring`."""
        self._numbers += 1
        number = self._numbers
        self._alarms[number] = (when, call)
        return lambda: self._alarms.pop(number, None) and None

    def work(self, work: Callable[[], None], ended: Callable[[str | None], None]) -> Work:
        """For the test to end."""
        self.works.append((work, ended))
        return _Never()

    def send(self, sender: NodeId, to: NodeId, message: object) -> None:
        """Kept."""
        del sender, to
        self.sent.append(message)

    def step(self) -> bool:
        """One turn of an event loop: what was asked for soon, but not what that asks for. False:
        nothing was."""
        calls, self._soon = self._soon, []
        for call in calls:
            call()
        return len(calls) > 0

    def run(self) -> None:
        """What was asked for soon, and what that asks for."""
        while self._soon:
            self._soon.pop(0)()

    def ring(self) -> None:
        """Every alarm whose time has come, then `run`."""
        due = [number for number, (when, _) in self._alarms.items() if when <= self.now_is]
        for number in due:
            self._alarms.pop(number)[1]()
        self.run()


class Lone:
    """Node 1 with one partition replica per group, on a disk of its own."""

    def __init__(self, groups: Sequence[GroupId], voters: tuple[NodeId, ...] = (1,)) -> None:
        self.ground = Ground()
        self.disk = MemoryDisk()
        self.store = MemoryStore(self.disk)
        self.failures: list[Exception] = []
        config = ClusterConfig()
        peers = [each for each in voters if each != 1]
        self.beats = Heartbeats(1, peers, 50_000, incarnation=1, now=NOW)
        factory = ReplicaFactory(
            1, config, store=self.store, counters=Counters(), jitter=FirstJitter()
        )
        self.runner = Runner(
            1,
            config,
            store=self.store,
            sender=self.ground,
            beats=self.beats,
            scheduler=Scheduler(self.ground),
            clockwork=self.ground,
            looks=factory.looks,
        )
        self.runner.report_to(failed=self._failed)
        topic = TopicImage("t", b"", ())
        openings = [factory.begin(topic, group, voters, NOW) for group in groups]
        self.hosted_replicas: list[HostedReplica] = [
            self.runner.add(factory.open(each, NOW, self.runner.write)) for each in openings
        ]
        self.ground.run()

    def look(self) -> None:
        """What the alarm would look at is looked at now."""
        for hosted in self.runner.deadlines.due(self.ground.now_is):
            self.runner.wake(hosted)

    def _failed(self, error: Exception) -> None:
        self.failures.append(error)
        self.runner.close()
