"""`Hosting`: the replicas that a node hosts, as the controller's log has them.

After each commit of the controller the node opens the replicas it was given and drops those of
deleted topics. Opening one costs some hundred microseconds, in which its first turn and its first
election are not counted; a topic may have a thousand, and a node that comes back many of them. So
only `AT_ONCE` of them are opened where the decision is heard of. The rest waits in a queue, in the
order of the log, and is worked off in slices of many turns of the loop (`slices.py`), and so is
what is dropped. So is a log that takes long to learn: the replicas behind it in the queue wait.
Whoever asks for a replica meanwhile hears that it is not led here, as from any node that is behind.

What arrives for a group that the controller's log has not told this node of yet, or that is not
open, is kept for it.
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
"""Messages kept for each group that is not open yet."""
AT_ONCE = 8
"""Replicas opened or dropped where the controller's decision is heard of."""
OPENING_UNITS = 40
"""What it costs to open one, with its first turn (`slices.py`)."""
LEARNING = 4
"""To learn so many entries of a log as make a step costs as much as to open so many replicas."""
DROPPING_UNITS = 10
"""What it costs to drop one."""

Task: TypeAlias = tuple[TopicImage, PartitionImage] | list[GroupId]
"""A partition whose replica is to be opened, or groups that are to be dropped together."""


class Hosting:
    """See the module's text. It is the job of its own queue. One per node."""

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
        """Groups that are open here, by the topic they are of."""
        self._early: dict[GroupId, deque[Matched]] = {}
        self._tasks: deque[Task] = deque()
        self._opening: tuple[str, Opening] | None = None
        """A replica whose log is not all learned, and its topic."""
        self._running = False

    # --- what the controller decided ----------------------------------------------------------

    def applied(self) -> None:
        """The controller's machine has applied something here."""
        if self._machine.version != self._version:
            self._version = self._machine.version
            self._reconcile()

    def _reconcile(self) -> None:
        """Host exactly the replicas that the controller placed here."""
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
        """Let go of what this node hosts of a topic of that name, if it is deleted."""
        hosted = self._hosted.get(name, [])
        if hosted and self._machine.deleted(hosted[0]):
            del self._hosted[name]  # all of them: a topic goes with all its partitions
            self._tasks.extend(hosted[at : at + AT_ONCE] for at in range(0, len(hosted), AT_ONCE))

    def _plan_opening(self, topic: TopicImage) -> None:
        """Open the replicas of a topic that belong here and are not open yet."""
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
        """Open or drop, or go on with it; returns how many replicas that was worth, and what each
        of them costs."""
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
        """Whatever the node hosts, it hosts for others."""
        return True

    def ended(self, error: Exception | None) -> None:
        """All is as the controller has it; or this node cannot do as it says."""
        self._running = False
        if error is not None:
            self._runner.broken(error)

    def _begin(self, topic: TopicImage, image: PartitionImage) -> None:
        group = image.group
        if group in self._runner.hosted_replicas:
            return  # Planned twice.
        if self._machine.deleted(group):
            self._early.pop(group, None)
            return  # Deleted while it waited.
        with nothing_collected(aged=True):
            opening = self._factory.begin(topic, group, image.replicas, self._now())
            if opening.writes:
                self._runner.write(opening.writes)
        self._opening = topic.name, opening

    def _go_on(self, topic: str, opening: Opening) -> bool:
        """Learn some of its log. True: the replica is open, or deleted meanwhile."""
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

    # --- what comes too early -----------------------------------------------------------------

    def keep_early(self, message: Matched) -> None:
        """A message of a group that is not open here, and not deleted: for when it is."""
        if not self._machine.deleted(message.group):
            self._early.setdefault(message.group, deque(maxlen=EARLY_MESSAGES)).append(message)
