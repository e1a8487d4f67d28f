"""A small world for Raft cores: disks that finish late, a network that waits to be told.

Nothing happens here by itself. A `raft_member.Member` is a core with a disk and an inbox. The
`World` holds the members, the time and the messages in flight; tests deliver, drop, repeat and
reorder them. After each input a member gives its `Ready` at once, so its `messages` leave before
the write is done. A paused member does nothing until it wakes.

`raft_invariants.Watch` sees everything through the `on_*` hooks and judges it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from ottla.raft.config import JitterSource, RaftConfig
from ottla.raft.core import RaftCore
from ottla.raft.messages import Heartbeat, HeartbeatReply, Message
from ottla.raft.raft_log import bootstrap
from ottla.raft.ready import Ready
from ottla.raft.types import EntryKind, LogIndex, Micros, NodeId, Proposal, Term
from raft_member import Disk, Member, NoObserver, Observer

GROUP = 7
ELECTION = 1000
RETRANSMIT = 300


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
        self.short = False
        """Whether members take the short way where they can (`RaftCore.follow`)."""
        config = RaftConfig(group=GROUP, node=1, election_timeout=ELECTION, retransmit=RETRANSMIT)
        config = replace(config, **cast(dict[str, Any], limits))
        self.members: dict[NodeId, Member] = {}
        for node in range(1, nodes + 1):
            log, entries = bootstrap(range(1, nodes + 1))
            disk = Disk(entries={entry.index: entry for entry in entries})
            self.members[node] = Member(self, replace(config, node=node), disk, log)

    def __getitem__(self, node: NodeId) -> RaftCore:
        return self.members[node].core

    @property
    def alive(self) -> list[Member]:
        """Members that run, paused ones included."""
        return [member for member in self.members.values() if member.alive]

    @property
    def awake(self) -> list[Member]:
        """Members that run and are not paused."""
        return [member for member in self.alive if not member.paused]

    def leader(self) -> Member | None:
        """The leader of the highest term, if any is awake."""
        leaders = [member for member in self.awake if member.core.term_start is not None]
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
        if member.paused:
            member.inbox.append(copy.copy(message))
            return []
        return member.receive(copy.copy(message))

    def deliver_together(self, messages: Sequence[Message]) -> list[Ready]:
        """Messages for one member arrive within one turn."""
        member = self.members[messages[0].to]
        if not member.alive or member.paused:
            return [ready for message in messages for ready in self.deliver(message)]
        return member.turn([copy.copy(message) for message in messages])

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
        for member in self.awake:
            member.core.advance(self.now)
            member.take()

    def beat(self, ago: Micros = 0) -> None:
        """What nodes do for each other: vouch for leaders, and for followers that answered.
        `ago`: they are told late, of what was heard that long ago."""
        for member in self.awake:
            for follower in member.core.progress():
                self.vouch(member, self.members[follower], ago)

    def vouch(self, leader: Member, follower: Member, ago: Micros = 0) -> None:
        """Their nodes heard each other, as far as the links go."""
        node, term, at = leader.node, leader.core.term, self.now - ago
        if not follower.alive or follower.paused or (node, follower.node) in self.cut:
            return
        commit = leader.core.commit_known_to(follower.node)
        follower.core.step(Heartbeat(GROUP, node, follower.node, term, commit), at)
        follower.take()
        if (follower.node, node) not in self.cut and follower.core.term == term:
            leader.core.step(HeartbeatReply(GROUP, follower.node, node, term), at)
            leader.take()

    def finish_writes(self) -> bool:
        """Finish all writes under way; whether there were any."""
        moved = False
        for member in self.awake:
            while member.writes:
                moved = True
                member.finish_write()
                member.take()
        return moved

    def settle(self, on_delivery: Callable[[Message], None] = lambda _: None) -> None:
        """Finish writes and deliver messages until nothing moves."""
        for member in self.awake:
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
            bytes(entry.payload)
            for entry in entries
            if entry.kind is EntryKind.BATCH and entry.index <= last
        ]
