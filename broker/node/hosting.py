"""`Hosting`: the replicas that a node hosts, as the controller's log says.

After each commit of the controller's log the node opens the replicas that it was given and drops
those of deleted topics. Opening one takes some hundred microseconds, plus its first turn and its
first election. A topic may have a thousand partitions, and a restarted node may have many topics.
So only `AT_ONCE` replicas are opened or dropped at once. The others wait in a queue, in the order
of the log, which is worked off over many iterations of the loop (`ottla.broker.event_loop.slices`).
A long log is also read in steps; the replicas behind it in the queue wait. A client that asks for a
replica meanwhile is answered that it is not led here.

Messages for a group that is not open, or that this node does not know yet, are kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from ottla.broker.controller.controller import Controller
from ottla.broker.driver.runner import Runner
from ottla.broker.event_loop.collecting import nothing_collected
from ottla.broker.event_loop.slices import Slices
from ottla.broker.images import PartitionImage, TopicImage
from ottla.broker.node.replica_factory import Opening, ReplicaFactory
from ottla.log.store import Write
from ottla.raft.types import GroupId, Matched, Micros, NodeId

EARLY_MESSAGES = 10_000
"""How many messages are kept for each group that is not open yet."""
AT_ONCE = 8
"""How many replicas are opened or dropped at once."""
OPENING_UNITS = 40
"""The cost of opening a replica, including its first turn (`ottla.broker.event_loop.slices`)."""
LEARNING = 4
"""One step of reading a log costs as much as opening this many replicas."""
DROPPING_UNITS = 10
"""The cost of dropping a replica."""

Task: TypeAlias = tuple[TopicImage, PartitionImage] | list[GroupId]
"""A partition whose replica is to be opened, or groups to be dropped together."""


class Hosting:
    """See the module's docstring. It is itself the `Job` of its queue. One per node."""

    def __init__(
        self,
        node: NodeId,
        machine: Controller,
        *,
        owner: object,
        runner: Runner,
        factory: ReplicaFactory,
        slices: Slices,
        now: Callable[[], Micros],
    ):
        self.owner = owner
        self.steps: Iterator[int] = iter(())
        self._node = node
        self._machine = machine
        self._runner = runner
        self._factory = factory
        self._slices = slices
        self._now = now
        self._version = -1
        self._hosted: dict[str, list[GroupId]] = {}
        """The groups that are open here, by topic."""
        self._early: dict[GroupId, deque[Matched]] = {}
        self._tasks: deque[Task] = deque()
        self._opening: tuple[str, Opening] | None = None
        """A replica whose log is not completely read, and its topic."""
        self._running = False

    # --- what the controller decided ----------------------------------------------------------

    def applied(self) -> None:
        """The controller's machine on this node has applied entries."""
        if self._machine.version != self._version:
            self._version = self._machine.version
            self._reconcile()

    def _reconcile(self) -> None:
        """Plan to open and drop replicas, so that this node hosts exactly those that the controller
        placed here."""
        machine = self._machine
        touched = machine.take_touched()
        if touched is None:
            touched = tuple(dict.fromkeys([*self._hosted, *machine.topics]))
        for name in touched:
            self._plan_dropping(name)
            topic = machine.topics.get(name)
            if topic is not None:
                self._plan_opening(topic)
        if not self._running:
            room = AT_ONCE
            while room > 0 and self._busy:
                done, _ = self._do()
                room -= done
            if self._busy:
                self._running = True
                self.steps = self._work()
                self._slices.run(self)
        if leftovers := self._factory.leftovers(machine.deleted):
            self._runner.write(leftovers)

    def _plan_dropping(self, name: str) -> None:
        """Plan to drop this node's replicas of a topic of that name, if it is deleted."""
        hosted = self._hosted.get(name, [])
        if hosted and self._machine.deleted(hosted[0]):
            del self._hosted[name]  # a topic is deleted with all its partitions
            self._tasks.extend(hosted[at : at + AT_ONCE] for at in range(0, len(hosted), AT_ONCE))

    def _plan_opening(self, topic: TopicImage) -> None:
        """Plan to open the replicas of a topic that belong here and are not open yet."""
        hosted_replicas = self._runner.hosted_replicas
        for image in topic.partitions:
            if self._node in image.replicas and image.group not in hosted_replicas:
                self._tasks.append((topic, image))

    # --- in steps -----------------------------------------------------------------------------

    @property
    def _busy(self) -> bool:
        return len(self._tasks) > 0 or self._opening is not None

    def _work(self) -> Iterator[int]:
        while self._busy:
            replicas, units = self._do()
            yield replicas * units

    def _do(self) -> tuple[int, int]:
        """Do the next step of the queue. Returns for how many replicas it counts, and the cost of
        each."""
        if self._opening is None:
            task = self._tasks.popleft()
            if isinstance(task, list):
                self._drop(task)
                return len(task), DROPPING_UNITS
            self._begin(*task)
        if self._opening is not None and not self._go_on(*self._opening):
            return LEARNING, OPENING_UNITS
        self._opening = None
        return 1, OPENING_UNITS

    def wanted(self) -> bool:
        """Always: other nodes and clients need the replicas."""
        return True

    def ended(self, error: Exception | None) -> None:
        """The queue is worked off; with `error` this node stops."""
        self._running = False
        if error is not None:
            self._runner.broken(error)

    def _begin(self, topic: TopicImage, image: PartitionImage) -> None:
        group = image.group
        if group in self._runner.hosted_replicas:
            return  # it was planned twice
        if self._machine.deleted(group):
            self._early.pop(group, None)
            return  # it was deleted while it waited
        with nothing_collected(aged=True):
            opening = self._factory.begin(topic, group, image.replicas, self._now())
            if opening.writes:
                self._runner.write(opening.writes)
        self._opening = topic.name, opening

    def _go_on(self, topic: str, opening: Opening) -> bool:
        """Read the next part of its log. True: the replica is open, or was deleted meanwhile."""
        group = opening.group
        if self._machine.deleted(group):
            self._early.pop(group, None)
            self._runner.write([Write(group, delete=True)])
            return True
        with nothing_collected(aged=True):
            if not opening.learn():
                return False
            hosted = self._runner.add(self._factory.finish(opening, self._now()))
        self._hosted.setdefault(topic, []).append(group)
        for message in self._early.pop(group, ()):
            self._runner.submit(hosted, message)
        return True

    def _drop(self, groups: Sequence[GroupId]) -> None:
        for group in groups:
            self._runner.remove(group)
        self._runner.write([Write(group, delete=True) for group in groups])

    # --- early messages -----------------------------------------------------------------------

    def keep_early(self, message: Matched) -> None:
        """Keep a message of a group that is not open yet, unless the group is deleted."""
        if not self._machine.deleted(message.group):
            self._early.setdefault(message.group, deque(maxlen=EARLY_MESSAGES)).append(message)
