"""The state of one member: what every role has, what each role adds, and how a role changes.

`RaftState` holds what exists in every role: term, vote, log, commit index. Its `role` is a
`Follower`, `Candidate` or `Leader` object with only the fields of that role. So the progress of a
deposed leader cannot be used by mistake: it is gone. (Kafka's `EpochState` and `QuorumState` have
this shape.)

The role and the term change only in `become_follower`, `become_candidate` and `become_leader`. They
look up the row of `roles.TRANSITIONS` for the trigger. Other modules decide *that* something
happened; the table decides what follows.

`Outbox` collects effects in the `Ready` that will be handed out next. Only when the `Ready` is
taken are hard state and soft state compared with what the caller knows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from ottla.raft.config import JitterSource, RaftConfig
from ottla.raft.messages import AppendEntries, AppendReply, Message, RequestVote
from ottla.raft.progress import Progress
from ottla.raft.quorum import reached
from ottla.raft.raft_log import RaftLog
from ottla.raft.ready import BarrierOutcome, Ready, SoftState
from ottla.raft.roles import Role, TermRule, Trigger, find_transition
from ottla.raft.types import (
    NO_NODE,
    AppendRange,
    Entry,
    HardState,
    LogIndex,
    Micros,
    NodeId,
    Snapshot,
    SnapshotMeta,
    Term,
)


@dataclass(slots=True)
class Receiving:
    """A snapshot that arrives chunk by chunk: bytes `0 .. len(data)` are here."""

    meta: SnapshotMeta
    data: bytearray


@dataclass(slots=True)
class Follower:
    """Follows a leader; starts an election when it has not heard of one for its timeout."""

    role: ClassVar[Role] = Role.FOLLOWER
    leader: NodeId
    """The leader of this term; `NO_NODE` if it is not known."""
    contact: Micros
    """When a leader was last heard of; if none is known in this term, that of an earlier term."""
    waits_from: Micros
    """When the member took this role or gave its vote. The timeout counts from the later of this
    and `contact`."""
    timeout: Micros
    """The election timeout, drawn from [1x, 2x) when the member last became a follower."""
    receiving: Receiving | None = None


@dataclass(slots=True)
class Candidate:
    """Counts votes or, with the role PRE_CANDIDATE, answers to its pre-vote."""

    role: Role
    transfer: bool
    """The old leader asked for this election."""
    votes: dict[NodeId, bool]
    ends_at: Micros
    """When this election ends without a result and a new one begins."""
    retransmit_at: Micros


@dataclass(slots=True)
class Barrier:
    """A leadership barrier without an outcome yet: see `leadership`."""

    ticket: int
    index: LogIndex
    expires_at: Micros


@dataclass(slots=True)
class Transfer:
    """A leadership transfer in progress: see `leadership`."""

    to: NodeId
    expires_at: Micros
    ordered: bool = False
    """TimeoutNow is sent."""


@dataclass(slots=True)
class Leader:
    """Replicates its log to the followers, and proves by barriers that it still leads."""

    role: ClassVar[Role] = Role.LEADER
    term_start: LogIndex
    """Index of the first entry of its term: the empty one that it appended itself."""
    progress: dict[NodeId, Progress]
    """One per other voter."""
    check_at: Micros | None
    """When to check whether a majority was heard of lately; None in a group of one."""
    retransmit_at: Micros | None = None
    """When to scan for unanswered messages; None while nothing is unanswered."""
    barriers: deque[Barrier] = field(default_factory=deque)
    round_due: bool = False
    """A barrier was asked for since the last `Ready`."""
    transfer: Transfer | None = None


class Outbox:
    """Collects the effects since the last `Ready`."""

    __slots__ = ("_ack", "_hard_state", "_ready", "_soft", "_tail", "_tail_end", "dirty", "moved")

    def __init__(self, hard_state: HardState) -> None:
        self._ready = Ready()
        self._tail: list[Entry] = []
        self._tail_end: LogIndex = 0
        self._ack: AppendReply | None = None
        self._hard_state = hard_state
        self._soft = SoftState(Role.FOLLOWER, hard_state.term, NO_NODE)
        self.dirty = False
        """Whether there may be something to hand out."""
        self.moved = False
        """Whether role, term, vote or leader may have changed."""

    def send(self, message: Message) -> None:
        """Send at once. For messages that promise nothing that is not on disk."""
        self._ready.messages.append(message)
        self.dirty = True

    def send_after(self, message: Message) -> None:
        """Send when everything that this `Ready` writes is durable."""
        self._ready.messages_after.append(message)
        self.dirty = True

    def acknowledge(self, reply: AppendReply) -> None:
        """Send a success when this `Ready` is durable; only the one with the highest match is
        sent."""
        if self._ack is None or reply.match > self._ack.match:
            self._ack = reply
        self.dirty = True

    def append(self, entries: Sequence[Entry]) -> None:
        """Write entries; those that continue the last range are written together with it."""
        first = entries[0].index
        if first == self._tail_end:
            self._tail.extend(entries)
        else:
            self._tail = list(entries)
            self._ready.append.append(AppendRange(first, self._tail))
        self._tail_end = first + len(entries)
        self.dirty = True

    def install(self, snapshot: Snapshot) -> None:
        """Write a snapshot. It replaces what this `Ready` was to append before it."""
        self._ready.snapshot = snapshot
        self._ready.append.clear()
        self._tail_end = 0
        self.dirty = True

    def finish_barrier(self, ticket: int, index: LogIndex | None) -> None:
        """Report the outcome of a barrier."""
        self._ready.barriers.append(BarrierOutcome(ticket, index))
        self.dirty = True

    def drop_acknowledgement(self) -> None:
        """Drop the success that waits: its leader is no longer followed, or its log is replaced."""
        self._ack = None

    def take(self, state: RaftState) -> Ready:
        """Hand out the `Ready`, with the hard and soft state if they have changed."""
        ready = self._ready
        self._ready = Ready(None, None, [], [], [], 0, None, [])
        self.dirty = False
        if self._ack is not None:
            ready.messages_after.append(self._ack)
            self._ack = None
        if self.moved:
            self._compare(state, ready)
        ready.commit = state.told = state.commit
        if ready.append:
            last = self._tail[-1]
            state.log.begin_write(last.index, last.term)
            self._tail_end = 0
        elif ready.snapshot is not None:
            state.log.begin_write(ready.snapshot.meta.index, ready.snapshot.meta.term)
        return ready

    def _compare(self, state: RaftState, ready: Ready) -> None:
        """Set hard and soft state if they differ from those of the last `Ready`."""
        self.moved = False
        hard, soft = HardState(state.term, state.vote), SoftState(*state.standing)
        if hard != self._hard_state:
            self._hard_state = ready.hard_state = hard
        if soft != self._soft:
            self._soft = ready.soft = soft


class RaftState:
    """One member of one group. Only the modules of this package change it."""

    __slots__ = (
        "clock",
        "commit",
        "config",
        "jitter",
        "log",
        "outbox",
        "role",
        "term",
        "tickets",
        "told",
        "vote",
    )

    def __init__(
        self,
        config: RaftConfig,
        hard_state: HardState,
        log: RaftLog,
        jitter: JitterSource,
        now: Micros,
    ) -> None:
        self.config = config
        self.log = log
        self.jitter = jitter
        self.term: Term = hard_state.term
        self.vote: NodeId = hard_state.vote
        self.commit: LogIndex = log.first_index - 1
        """At first the snapshot's index, which is committed; the leader says what else is."""
        self.told: LogIndex = self.commit
        """The commit index that the caller knows, from a `Ready` or `take_commit`."""
        self.clock: Micros = now
        """The time of the last input. Only the retransmission timer is armed by it."""
        self.tickets = 0
        """The number of barriers so far. It is never reset, so that a late answer cannot count for
        a newer barrier."""
        self.outbox = Outbox(hard_state)
        self.role: Follower | Candidate | Leader = Follower(NO_NODE, now, now, self.draw_timeout())

    @property
    def leader(self) -> NodeId:
        """The leader of the current term; `NO_NODE` if it is not known."""
        role = self.role
        if isinstance(role, Follower):
            return role.leader
        return self.config.node if isinstance(role, Leader) else NO_NODE

    @property
    def standing(self) -> tuple[Role, Term, NodeId]:
        """Role, term and leader, as a `SoftState` holds them."""
        return self.role.role, self.term, self.leader

    def draw_timeout(self) -> Micros:
        """A random election timeout from [1x, 2x) (paper 5.2; thesis 9.3)."""
        shortest = self.config.election_timeout
        return shortest + self.jitter.randrange(shortest)

    # -- conditions that safety depends on: each is computed here and nowhere else

    def asks_first(self) -> bool:
        """Whether an election begins with a pre-vote (thesis 9.6). In term 0 it does not: there is
        no leader to disturb."""
        return self.term != 0

    def holds_lease(self, at: Micros) -> bool:
        """Whether this member refuses to vote because it leads, or heard of its leader within the
        shortest election timeout (thesis 4.2.3)."""
        role = self.role
        if isinstance(role, Follower):
            heard_lately = at - role.contact < self.config.election_timeout
            return role.leader != NO_NODE and heard_lately
        return isinstance(role, Leader)

    def has_vote_for(self, candidate: NodeId) -> bool:
        """Whether this member gave its vote of this term to `candidate`, or to nobody while it
        knows no leader (paper 5.2)."""
        if self.vote == NO_NODE:
            return self.leader == NO_NODE
        return self.vote == candidate

    def is_up_to_date(self, message: RequestVote) -> bool:
        """Whether the candidate's log is at least as up to date as this one: the later last term
        wins, then the longer log (paper 5.4.1). False on a member that is no voter."""
        log = self.log
        ours = (log.last_term, log.last_index)
        return self.config.node in log.voters and (message.last_term, message.last_index) >= ours

    def matches(self, message: AppendEntries) -> bool:
        """Whether this log has the leader's entry at `prev_index` (figure 2, AppendEntries,
        receiver rule 2)."""
        return self.log.term_at(message.prev_index) == message.prev_term

    def held_by_majority(self, leader: Leader) -> LogIndex:
        """The highest index that a majority holds durably; the leader itself counts."""
        matches = [progress.match for progress in leader.progress.values()]
        matches.append(self.log.persisted)
        return reached(matches)

    def commits_by_counting(self, leader: Leader, index: LogIndex) -> bool:
        """Whether an entry may be committed because a majority holds it: only if it is of this
        leader's own term (paper 5.4.2, figure 8)."""
        return index >= leader.term_start

    # -- what changes

    def commit_to(self, index: LogIndex) -> None:
        """Raise the commit index to `index`; a lower one changes nothing. Asserts that the log has
        that entry."""
        if index > self.commit:
            assert index <= self.log.last_index, (
                f"commit {index}, but the log ends at {self.log.last_index}"
            )
            self.commit = index


def _enter(state: RaftState, trigger: Trigger, target: Role, term: Term | None) -> None:
    """Leave the current role as the row for `trigger` says, and set the term. All barriers of a
    leader fail."""
    role = state.role
    row = find_transition(role.role, trigger)
    assert row is not None, f"{trigger} cannot occur to a {role.role}"
    assert row.target is target, f"{trigger} leads from {role.role} to {row.target}, not {target}"
    if row.term is TermRule.ADOPT:
        assert term is not None, f"{trigger} needs the term to adopt"
        assert term > state.term, f"adopt term {term}, but the term is {state.term}"
        state.term, state.vote = term, NO_NODE
    elif row.term is TermRule.NEXT:
        state.term, state.vote = state.term + 1, state.config.node
    if isinstance(role, Leader):
        for barrier in role.barriers:
            state.outbox.finish_barrier(barrier.ticket, None)
    state.outbox.drop_acknowledgement()
    state.outbox.dirty = state.outbox.moved = True


def become_follower(
    state: RaftState, trigger: Trigger, at: Micros, term: Term | None = None
) -> Follower:
    """Become a follower that knows no leader. A follower that only adopts a term keeps its election
    timeout: otherwise a candidate that cannot win could delay others (paper 5.2)."""
    before = state.role
    _enter(state, trigger, Role.FOLLOWER, term)
    if isinstance(before, Follower):
        follower = Follower(NO_NODE, before.contact, before.waits_from, before.timeout)
    else:
        follower = Follower(NO_NODE, at, at, state.draw_timeout())
    state.role = follower
    return follower


def become_candidate(
    state: RaftState, trigger: Trigger, at: Micros, transfer: bool = False
) -> Candidate:
    """Become a pre-candidate if `trigger` is ELECTION_TIMEOUT, else a candidate."""
    pre = trigger is Trigger.ELECTION_TIMEOUT
    role = Role.PRE_CANDIDATE if pre else Role.CANDIDATE
    _enter(state, trigger, role, None)
    candidate = Candidate(
        role=role,
        transfer=transfer,
        votes={state.config.node: True},
        ends_at=at + state.draw_timeout(),
        retransmit_at=at + state.config.retransmit,
    )
    state.role = candidate
    return candidate


def become_leader(state: RaftState, at: Micros) -> Leader:
    """Become leader. Every follower is in PROBE, and counts as heard of at `at`: a grace period."""
    _enter(state, Trigger.ELECTION_WON, Role.LEADER, None)
    next_index = state.log.last_index + 1
    me = state.config.node
    progress = {n: Progress(n, next_index, at) for n in state.log.voters if n != me}
    leader = Leader(
        term_start=next_index,
        progress=progress,
        check_at=at + state.config.election_timeout if progress else None,
    )
    state.role = leader
    return leader
