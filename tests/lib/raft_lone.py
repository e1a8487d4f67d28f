"""One core alone: member 1 with a given log and term, and messages made by hand.

`Lone` plays its peers. The core steps the messages that a test makes, and everything that it does
comes back as one `Ready` (several merged in order). Every write finishes at once unless `hold`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ottla.raft.config import RaftConfig
from ottla.raft.core import RaftCore
from ottla.raft.messages import (
    AppendEntries,
    AppendReply,
    Message,
    RequestVote,
    VoteReply,
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
    SnapshotMeta,
    Term,
)

M = TypeVar("M")

GROUP = 3
ELECTION = 1000
RETRANSMIT = 100
CONFIG = RaftConfig(group=GROUP, node=1, election_timeout=ELECTION, retransmit=RETRANSMIT)


class NoJitter:
    """Every wait is the shortest."""

    def randrange(self, stop: int, /) -> int:
        """Zero, whatever `stop` is."""
        return 0 * stop


def entries(first: LogIndex, terms: Iterable[Term], size: int = 1) -> list[Entry]:
    """Batches of the given terms from index `first` on."""
    return [
        Entry(first + place, term, EntryKind.BATCH, b"x" * size) for place, term in enumerate(terms)
    ]


def log_of(terms: Sequence[Term], voters: int = 3, snapshot: SnapshotMeta | None = None) -> RaftLog:
    """A persisted log: the configuration (or a snapshot), then batches of the given terms."""
    if snapshot is not None:
        return RaftLog.restore(snapshot, entries(snapshot.index + 1, terms))
    _, first = bootstrap(range(1, voters + 1))
    return RaftLog.restore(None, [*first, *entries(2, terms)])


class Lone:
    """Member 1 of a group; the others are the test."""

    def __init__(
        self,
        terms: Sequence[Term] = (),
        *,
        term: Term = 1,
        vote: NodeId = 0,
        voters: int = 3,
        snapshot: SnapshotMeta | None = None,
        limits: Mapping[str, Any] | None = None,
        make_core: Callable[..., RaftCore] = RaftCore,
    ) -> None:
        self.now = 0
        self.core = make_core(
            replace(CONFIG, **(limits or {})),
            hard_state=HardState(term, vote),
            log=log_of(terms, voters, snapshot),
            jitter=NoJitter(),
            now=0,
        )
        self.peers = [voter for voter in self.core.voters if voter != 1]

    def step(self, *messages: Message, hold: bool = False) -> Ready:
        """Messages arrive, all in one round."""
        for message in messages:
            self.core.step(message, self.now)
        return self.take(hold=hold)

    def take(self, *, hold: bool = False) -> Ready:
        """What the member wants done; done at once, unless the test holds the disk."""
        whole = Ready()
        while self.core.has_ready():
            ready = self.core.ready()
            if not hold:
                self.finish(ready)
            whole.hard_state = ready.hard_state or whole.hard_state
            whole.snapshot = ready.snapshot or whole.snapshot
            whole.soft = ready.soft or whole.soft
            whole.append += ready.append
            whole.messages += ready.messages
            whole.messages_after += ready.messages_after
            whole.barriers += ready.barriers
        whole.commit = self.core.commit
        return whole

    def finish(self, ready: Ready) -> None:
        """The write of a `Ready` is durable; what the member says to itself then is heard."""
        for message in ready.messages_after:
            if message.to == 1:
                self.core.step(message, self.now)
        if ready.append:
            last = ready.append[-1].entries[-1]
            self.core.persisted(last.index, last.term, self.now)
        elif ready.snapshot is not None:
            meta = ready.snapshot.meta
            self.core.persisted(meta.index, meta.term, self.now)

    def wait(self, span: int) -> Ready:
        """Time passes."""
        self.now += span
        self.core.advance(self.now)
        return self.take()

    def propose(self, *sizes: int, hold: bool = False) -> Ready:
        """Propose batches of the given sizes."""
        proposals = [Proposal(EntryKind.BATCH, b"x" * size) for size in sizes]
        assert self.core.propose(proposals, self.core.term) is not None
        return self.take(hold=hold)

    # -- what peers say

    def append(
        self, prev: tuple[LogIndex, Term], terms: Sequence[Term] = (), **fields: int
    ) -> AppendEntries:
        """AppendEntries from member 2 behind `prev` (index, term), in the current term."""
        sender, term = fields.get("sender", 2), fields.get("term", self.core.term)
        batch = entries(prev[0] + 1, terms)
        last, commit = prev[0] + len(terms), fields.get("commit", 0)
        return AppendEntries(GROUP, sender, 1, term, prev[0], prev[1], last, commit, batch)

    def matched(self, sender: NodeId, match: LogIndex) -> AppendReply:
        """A follower's success."""
        return AppendReply(GROUP, sender, 1, self.core.term, True, match)

    def refused(self, sender: NodeId, prev: LogIndex, hint: tuple[LogIndex, Term]) -> AppendReply:
        """A follower's refusal."""
        return AppendReply(GROUP, sender, 1, self.core.term, False, prev, *hint)

    def asks(self, sender: NodeId, last: tuple[LogIndex, Term], **fields: int) -> RequestVote:
        """A candidate's request, in the next term."""
        term = fields.get("term", self.core.term + 1)
        pre, transfer = bool(fields.get("pre")), bool(fields.get("transfer"))
        return RequestVote(GROUP, sender, 1, term, last[0], last[1], pre, transfer)

    def lead(self) -> Ready:
        """Win an election; what the new leader does in its first round."""
        self.now += ELECTION
        self.core.campaign(self.now)
        self.take()
        if self.core.term_start is None and self.core.role.value == "pre-candidate":
            self._answer(pre=True)
        ready = self._answer(pre=False) if self.core.term_start is None else Ready()
        assert self.core.term_start is not None
        return ready

    def _answer(self, *, pre: bool) -> Ready:
        term = self.core.term + 1 if pre else self.core.term
        needed = (len(self.peers) + 1) // 2
        return self.step(
            *(VoteReply(GROUP, peer, 1, term, True, pre) for peer in self.peers[:needed])
        )


def only(kind: type[M], messages: Iterable[object]) -> M:
    """The one message of a kind."""
    found = [message for message in messages if isinstance(message, kind)]
    assert len(found) == 1, f"{len(found)} of {kind.__name__}: {found}"
    return found[0]


def all_of(kind: type[M], messages: Iterable[object]) -> list[M]:
    """The messages of a kind."""
    return [message for message in messages if isinstance(message, kind)]
