"""One member of a `raft_world.World`: a core with a disk that finishes late, and an inbox.

The disk takes writes in order, and finishes one or several together when a test says so. A crash
loses unfinished writes. There are two ways to take what a core has ready; drivers use both:

* `take`: each `Ready` is a write of its own; its `messages` leave while that write still waits,
* `turn`: many inputs, then everything that is ready as a single write, which is reported by its
  last entry. A paused member collects messages in its inbox; `wake` is such a turn.

`receive` takes the short way (`RaftCore.follow`) if the world wants it and the core can.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ottla.raft.config import RaftConfig
from ottla.raft.core import RaftCore
from ottla.raft.messages import AppendEntries, InstallSnapshot, Message
from ottla.raft.raft_log import RaftLog
from ottla.raft.ready import Ready
from ottla.raft.roles import Role
from ottla.raft.types import (
    AppendRange,
    Entry,
    HardState,
    LogIndex,
    NodeId,
    Snapshot,
    SnapshotMeta,
    Term,
)

if TYPE_CHECKING:
    from raft_world import World


class Observer(Protocol):
    """What may watch a world."""

    def on_ready(self, member: Member, ready: Ready) -> None:
        """A member handed out a `Ready`."""

    def on_durable(self, member: Member, ready: Ready) -> None:
        """A write finished."""

    def on_restart(self, member: Member) -> None:
        """A member came back from its disk."""

    def on_barrier(self, node: NodeId, ticket: int) -> None:
        """A member was asked to prove that it leads."""


class NoObserver:
    """Watches nothing."""

    def on_ready(self, member: Member, ready: Ready) -> None:
        """Ignore it."""

    def on_durable(self, member: Member, ready: Ready) -> None:
        """Ignore it."""

    def on_restart(self, member: Member) -> None:
        """Ignore it."""

    def on_barrier(self, node: NodeId, ticket: int) -> None:
        """Ignore it."""


@dataclass
class Disk:
    """What a member finds after a crash."""

    hard_state: HardState = field(default_factory=HardState)
    snapshot: Snapshot | None = None
    entries: dict[LogIndex, Entry] = field(default_factory=dict)

    def write(self, ready: Ready) -> None:
        """Apply one `Ready`, whole."""
        if ready.hard_state is not None:
            self.hard_state = ready.hard_state
        if ready.snapshot is not None:
            self.snapshot = ready.snapshot
            self.entries.clear()
        for appended in ready.append:
            for index in [index for index in self.entries if index >= appended.first]:
                del self.entries[index]
            self.entries.update((entry.index, entry) for entry in appended.entries)

    def compact(self, snapshot: Snapshot) -> None:
        """Keep a snapshot and drop what it stands for."""
        self.snapshot = snapshot
        for index in [index for index in self.entries if index <= snapshot.meta.index]:
            del self.entries[index]

    @property
    def meta(self) -> SnapshotMeta | None:
        """What the snapshot stands for."""
        return self.snapshot.meta if self.snapshot else None

    def reaches(self, index: LogIndex) -> bool:
        """Whether the disk has an entry at that index, or a snapshot beyond it."""
        return index in self.entries or (self.meta is not None and index <= self.meta.index)

    def holds(self, index: LogIndex, term: Term) -> bool:
        """Whether the disk has that entry, or a snapshot beyond it."""
        if self.snapshot is not None and index <= self.snapshot.meta.index:
            return True
        return index in self.entries and self.entries[index].term == term


@dataclass
class _Write:
    """One `Ready` on its way to the disk, or (`compaction`) a snapshot of one's own."""

    ready: Ready
    compaction: Snapshot | None = None


class Member:
    """One core with its disk. `view` is the disk as it will be when every write has finished."""

    def __init__(self, world: World, config: RaftConfig, disk: Disk, log: RaftLog) -> None:
        self.world = world
        self.config = config
        self.node = config.node
        self.disk = disk
        self.start(log)

    def start(self, log: RaftLog) -> None:
        """Begin from what the disk holds."""
        self.alive = True
        self.paused = False
        self.inbox: list[Message] = []
        self.view = Disk(self.disk.hard_state, self.disk.snapshot, dict(self.disk.entries))
        self.writes: deque[_Write] = deque()
        self.core = RaftCore(
            self.config,
            hard_state=self.disk.hard_state,
            log=log,
            jitter=self.world.jitter(self.node),
            now=self.world.now,
        )

    # -- what the core has ready

    def take(self) -> list[Ready]:
        """Take what is ready: messages fly, writes queue up."""
        taken = []
        while self.core.has_ready():
            ready = self._next_ready()
            taken.append(ready)
            for message in ready.messages:
                self.send(message)
            self._begin_write(ready)
        return taken

    def receive(self, message: Message) -> list[Ready]:
        """Step a message, and take what is ready; or follow the short way."""
        if self.world.short and isinstance(message, AppendEntries) and self._follow(message):
            return []
        self.core.step(message, self.world.now)
        return self.take()

    def _follow(self, message: AppendEntries) -> bool:
        reply = self.core.follow(message, self.world.now)
        if reply is None:
            return False
        appended = AppendRange(message.prev_index + 1, message.entries)
        ready = Ready(append=[appended], messages_after=[reply], commit=self.core.take_commit())
        self._hand_out(ready)
        self._begin_write(ready)
        return True

    def turn(self, messages: Iterable[Message]) -> list[Ready]:
        """Step all messages, tell the time, and take what is ready as one: see the module. Who does
        not lead names no bytes, so it may take something between two messages."""
        taken: list[Ready] = []
        for place, message in enumerate(messages):
            self.core.step(message, self.world.now)
            if place % 2 and self.core.role is not Role.LEADER and self.core.has_ready():
                taken.append(self._next_ready())
        self.core.advance(self.world.now)
        while self.core.has_ready():
            taken.append(self._next_ready())
        whole = Ready()
        for ready in taken:
            _merge(whole, ready)
        for message in whole.messages:
            self.send(message)
        self._begin_write(whole)
        return taken

    def _next_ready(self) -> Ready:
        ready = self.core.ready()
        self._hand_out(ready)
        return ready

    def _hand_out(self, ready: Ready) -> None:
        self.view.write(ready)
        self.world.observer.on_ready(self, ready)

    def _begin_write(self, ready: Ready) -> None:
        if ready.hard_state or ready.snapshot or ready.append or ready.messages_after:
            self.writes.append(_Write(ready))

    def send(self, message: Message) -> None:
        """Fill in the bytes a message names; drop it if they are not there (any more)."""
        if isinstance(message, AppendEntries):
            indexes = range(message.prev_index + 1, message.last_index + 1)
            if any(index not in self.view.entries for index in indexes):
                return
            message.entries = [self.view.entries[index] for index in indexes]
        elif isinstance(message, InstallSnapshot):
            snapshot = self.view.snapshot
            if snapshot is None or snapshot.meta.index != message.index:
                return
            message.chunk = snapshot.data[message.offset : message.offset + message.length]
        if message.to == self.node:
            self.core.step(message, self.world.now)
        else:
            self.world.fly(message)

    # -- what the disk does

    def finish_write(self, *, tell: bool = True) -> Ready:
        """The oldest write is durable. Without `tell` the member crashes before it can say so."""
        return self.finish_together(1, tell=tell)[0]

    def finish_together(self, count: int, *, tell: bool = True) -> list[Ready]:
        """The oldest writes are durable at once; only the end of the last one is reported."""
        finished = [self.writes.popleft() for _ in range(min(count, len(self.writes)))]
        for write in finished:
            self.disk.write(write.ready)
            if write.compaction is not None:
                self.disk.compact(write.compaction)
            self.world.observer.on_durable(self, write.ready)
        readies = [write.ready for write in finished]
        if tell:
            for message in [each for ready in readies for each in ready.messages_after]:
                self.send(message)
            ends = [end for ready in readies if (end := _end_of(ready)) is not None]
            if ends:
                self.core.persisted(*ends[-1], self.world.now)
        return readies

    def compact(self, index: LogIndex, size: int = 10) -> None:
        """Take a snapshot at a committed index and drop the log up to it."""
        core = self.core
        term = core.log.term_at(index)
        assert term is not None
        data = f"state at {index} ".encode().ljust(size, b".")
        snapshot = Snapshot(SnapshotMeta(index, term, core.voters, len(data)), data)
        core.compact(snapshot.meta)
        self.view.compact(snapshot)
        self.writes.append(_Write(Ready(), snapshot))

    # -- its lives

    def crash(self) -> None:
        """Stop; unfinished writes are lost."""
        self.alive = self.paused = False
        self.writes.clear()
        self.inbox.clear()

    def restart(self) -> None:
        """Come back with what the disk holds."""
        entries = (self.disk.entries[index] for index in sorted(self.disk.entries))
        self.start(RaftLog.restore(self.disk.meta, entries))
        self.world.observer.on_restart(self)

    def wake(self) -> list[Ready]:
        """Go on after a pause, with all that came meanwhile."""
        inbox, self.inbox, self.paused = self.inbox, [], False
        return self.turn(inbox)


def _merge(whole: Ready, ready: Ready) -> None:
    """Put what is to be done after `whole` into it."""
    whole.hard_state = ready.hard_state or whole.hard_state
    if ready.snapshot is not None:
        whole.snapshot = ready.snapshot
        whole.append.clear()
    whole.append += ready.append
    whole.messages += ready.messages
    whole.messages_after += ready.messages_after


def _end_of(ready: Ready) -> tuple[LogIndex, Term] | None:
    if ready.append:
        last = ready.append[-1].entries[-1]
        return last.index, last.term
    if ready.snapshot is not None:
        return ready.snapshot.meta.index, ready.snapshot.meta.term
    return None
