"""A small world for Raft cores: disks that finish late, a network that waits to be told.

Nothing happens here by itself. A `Member` is a core with a disk; the disk takes writes in order and
finishes one when told to, a crash loses what is unfinished. The `World` holds the members, the time
and the messages under way; tests deliver, drop, repeat and reorder them. After each input a member
hands its `Ready` over at once, so `messages` fly while the write they overtake still waits.

`raft_invariants.Watch` sees everything through the `on_*` hooks and judges it.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from ottla.raft.config import JitterSource, RaftConfig
from ottla.raft.core import RaftCore
from ottla.raft.messages import (
    AppendEntries,
    Heartbeat,
    HeartbeatReply,
    InstallSnapshot,
    Message,
)
from ottla.raft.raft_log import RaftLog, bootstrap
from ottla.raft.ready import Ready
from ottla.raft.types import (
    Entry,
    EntryKind,
    HardState,
    LogIndex,
    NodeId,
    Proposal,
    Snapshot,
    SnapshotMeta,
    Term,
)

GROUP = 7
ELECTION = 1000
RETRANSMIT = 300


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
        self.view = Disk(self.disk.hard_state, self.disk.snapshot, dict(self.disk.entries))
        self.writes: deque[_Write] = deque()
        self.core = RaftCore(
            self.config,
            hard_state=self.disk.hard_state,
            log=log,
            jitter=self.world.jitter(self.node),
            now=self.world.now,
        )

    def take(self) -> list[Ready]:
        """Take what is ready: messages fly, writes queue up."""
        taken = []
        while self.core.has_ready():
            ready = self.core.ready()
            taken.append(ready)
            self.view.write(ready)
            self.world.observer.on_ready(self, ready)
            for message in ready.messages:
                self.send(message)
            if ready.hard_state or ready.snapshot or ready.append or ready.messages_after:
                self.writes.append(_Write(ready))
        return taken

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
        self.world.fly(message)

    def finish_write(self, *, tell: bool = True) -> Ready:
        """The oldest write is durable. Without `tell` the member crashes before it can say so."""
        write = self.writes.popleft()
        self.disk.write(write.ready)
        if write.compaction is not None:
            self.disk.compact(write.compaction)
        self.world.observer.on_durable(self, write.ready)
        if tell:
            for message in write.ready.messages_after:
                self.send(message)
            last = _end_of(write.ready)
            if last is not None:
                self.core.persisted(*last, self.world.now)
        return write.ready

    def crash(self) -> None:
        """Stop; unfinished writes are lost."""
        self.alive = False
        self.writes.clear()

    def restart(self) -> None:
        """Come back with what the disk holds."""
        entries = (self.disk.entries[index] for index in sorted(self.disk.entries))
        self.start(RaftLog.restore(self.disk.meta, entries))
        self.world.observer.on_restart(self)

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


def _end_of(ready: Ready) -> tuple[LogIndex, Term] | None:
    if ready.append:
        last = ready.append[-1].entries[-1]
        return last.index, last.term
    if ready.snapshot is not None:
        return ready.snapshot.meta.index, ready.snapshot.meta.term
    return None


class World:
    """Members, time, and messages under way (`flying`, oldest first)."""

    def __init__(
        self,
        nodes: int,
        jitter: Callable[[NodeId], JitterSource],
        observer: Observer | None = None,
        **limits: int,
    ) -> None:
        self.now = 0
        self.jitter = jitter
        self.observer = observer or NoObserver()
        self.flying: list[Message] = []
        self.cut: set[tuple[NodeId, NodeId]] = set()
        self.dropped: list[Message] = []
        config = RaftConfig(group=GROUP, node=1, election_timeout=ELECTION, retransmit=RETRANSMIT)
        config = replace(config, **limits)
        self.members: dict[NodeId, Member] = {}
        for node in range(1, nodes + 1):
            log, entries = bootstrap(range(1, nodes + 1))
            disk = Disk(entries={entry.index: entry for entry in entries})
            self.members[node] = Member(self, replace(config, node=node), disk, log)

    def __getitem__(self, node: NodeId) -> RaftCore:
        return self.members[node].core

    @property
    def alive(self) -> list[Member]:
        """Members that run."""
        return [member for member in self.members.values() if member.alive]

    def leader(self) -> Member | None:
        """The leader of the highest term, if any runs."""
        leaders = [member for member in self.alive if member.core.term_start is not None]
        return max(leaders, key=lambda member: member.core.term, default=None)

    def fly(self, message: Message) -> None:
        """A message leaves, unless its link is cut."""
        if (message.sender, message.to) in self.cut:
            self.dropped.append(message)
        else:
            self.flying.append(message)

    def deliver(self, message: Message) -> list[Ready]:
        """A message arrives; what follows from it is taken."""
        member = self.members.get(message.to)
        if member is None or not member.alive:
            return []
        member.core.step(copy.copy(message), self.now)
        return member.take()

    def propose(self, node: NodeId, *payloads: bytes, term: Term | None = None) -> LogIndex | None:
        """Propose batches to a member, in its own term unless another is named."""
        member = self.members[node]
        proposals = [Proposal(EntryKind.BATCH, payload) for payload in payloads]
        first = member.core.propose(proposals, member.core.term if term is None else term)
        member.take()
        return first

    def barrier(self, node: NodeId) -> int:
        """Ask a member to prove that it leads; the ticket."""
        ticket = self[node].barrier(self.now)
        self.observer.on_barrier(node, ticket)
        self.members[node].take()
        return ticket

    def campaign(self, node: NodeId) -> None:
        """Start an election."""
        self[node].campaign(self.now)
        self.members[node].take()

    def advance(self, span: int) -> None:
        """Let time pass for everyone who runs."""
        self.now += span
        for member in self.alive:
            member.core.advance(self.now)
            member.take()

    def beat(self) -> None:
        """What nodes do for each other: vouch for leaders, and for followers that answered."""
        for member in self.alive:
            for follower in member.core.progress():
                self.vouch(member, self.members[follower])

    def vouch(self, leader: Member, follower: Member) -> None:
        """Their nodes heard each other, as far as the links go."""
        node, term = leader.node, leader.core.term
        if not follower.alive or (node, follower.node) in self.cut:
            return
        commit = leader.core.commit_known_to(follower.node)
        self.deliver(Heartbeat(GROUP, node, follower.node, term, commit))
        if (follower.node, node) not in self.cut and follower.core.term == term:
            self.deliver(HeartbeatReply(GROUP, follower.node, node, term))

    def finish_writes(self) -> bool:
        """Finish all writes under way; whether there were any."""
        moved = False
        for member in self.alive:
            while member.writes:
                moved = True
                member.finish_write()
                member.take()
        return moved

    def settle(self, on_delivery: Callable[[Message], None] = lambda _: None) -> None:
        """Finish writes and deliver messages until nothing moves."""
        for member in self.alive:
            member.take()
        while self.finish_writes() or self.flying:
            flying, self.flying = self.flying, []
            for message in flying:
                on_delivery(message)
                self.deliver(message)

    def elect(self, node: NodeId) -> None:
        """Make a member leader in a quiet world."""
        self.campaign(node)
        self.settle()
        assert self.leader() is self.members[node]

    def isolate(self, *nodes: NodeId) -> None:
        """Cut every link between these members and the others."""
        for node in nodes:
            for other in self.members:
                if other not in nodes:
                    self.cut |= {(node, other), (other, node)}

    def heal(self) -> None:
        """Mend every link."""
        self.cut.clear()

    def payloads(self, node: NodeId, committed: bool = True) -> Sequence[bytes]:
        """The batches in a member's log, up to its commit index or to the end."""
        member = self.members[node]
        last = member.core.commit if committed else member.core.last_index
        entries = [member.view.entries[index] for index in sorted(member.view.entries)]
        return [
            bytes(entry.payload)  # type: ignore[call-overload]
            for entry in entries
            if entry.kind is EntryKind.BATCH and entry.index <= last
        ]
