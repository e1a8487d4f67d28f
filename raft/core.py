"""One member of one Raft group, without I/O: inputs in, `Ready` out.

How a driver uses it::

    core = RaftCore(config, hard_state=..., log=..., jitter=..., now=...)
    loop:
        hand over inputs: step, propose, barrier, persisted, advance when `deadline` has come, ...
        if core.has_ready(): carry out core.ready() in the order that `ready.py` gives

Rules for the driver:

1. **Time** comes with the inputs, in whole microseconds of a clock that never goes back. `deadline`
   says when `advance` is wanted; calling it early or late does no harm.
2. **Heartbeats** are not sent from here, but for barriers. Whoever knows that a *node* is alive
   vouches for its leaders when it matters: it steps `Heartbeat(context=0)`, at the time the node
   was heard, before it acts on a follower's deadline and before it steps any RequestVote; and
   `HeartbeatReply(context=0)` before it acts on a leader's deadline, or has it hand over.
   `commit_known_to` says what commit index such a heartbeat may carry.
3. **Writes** finish in the order in which their `Ready` was taken, and `persisted` is called for
   each that had `append` or `snapshot`, or for the last of several that finished together.
4. **Bytes** are the driver's: it fills `entries` and `chunk` before a message leaves, and drops the
   message if it cannot read them; the core sends again what stays unanswered.
5. **To itself** a member of a group of one sends its vote, in `Ready.messages_after`: a message
   whose `to` is the member itself is stepped when it would leave.

Input from peers may be lost, repeated, overtaken or nonsense; none of that raises. What reaches a
role first passes two doors here: is it addressed to this member by a voter of its group, and what
does its term say (figure 2, *rules for all servers*). Everything else is in the modules by subject:
`election`, `replication`, `following`, `leadership`, `snapshot`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from ottla.raft import election, following, leadership, replication, snapshot, term_gate
from ottla.raft.config import JitterSource, RaftConfig
from ottla.raft.errors import CorruptStateError
from ottla.raft.messages import (
    AppendEntries,
    AppendReply,
    Heartbeat,
    HeartbeatReply,
    InstallSnapshot,
    Message,
    RequestVote,
    SnapshotReply,
    TimeoutNow,
    VoteReply,
)
from ottla.raft.progress import ProgressView
from ottla.raft.raft_log import RaftLog
from ottla.raft.ready import Ready
from ottla.raft.roles import Role
from ottla.raft.state import Leader, RaftState
from ottla.raft.types import (
    NO_NODE,
    HardState,
    LogIndex,
    Matched,
    Micros,
    NodeId,
    Proposal,
    SnapshotMeta,
    Term,
)

__all__ = ["JitterSource", "RaftConfig", "RaftCore", "RaftLog"]

_HANDLERS: dict[type, Callable[[RaftState, Matched, Micros], None]] = {
    RequestVote: election.on_request_vote,
    VoteReply: election.on_vote_reply,
    TimeoutNow: election.on_timeout_now,
    AppendEntries: following.on_append_entries,
    Heartbeat: following.on_heartbeat,
    InstallSnapshot: snapshot.on_install_snapshot,
    AppendReply: replication.on_append_reply,
    SnapshotReply: replication.on_snapshot_reply,
    HeartbeatReply: leadership.on_heartbeat_reply,
}


class RaftCore:
    """The facade: every input, the deadline, `ready`, and what may be read."""

    __slots__ = ("_state",)

    state_type: ClassVar[type[RaftState]] = RaftState

    def __init__(
        self,
        config: RaftConfig,
        *,
        hard_state: HardState,
        log: RaftLog,
        jitter: JitterSource,
        now: Micros,
    ) -> None:
        """A member as its disk remembers it; it starts as a follower that knows no leader.

        `log` comes from `bootstrap` (fresh group) or `RaftLog.restore` (restart) and belongs to the
        core from here on. Raises `CorruptStateError` if the log is of a later term than
        `hard_state`, for they are written together.
        """
        if log.last_term > hard_state.term:
            raise CorruptStateError(
                f"group {config.group}: entry {log.last_index} has term {log.last_term}, "
                f"but the term on disk is {hard_state.term}"
            )
        self._state = self.state_type(config, hard_state, log, jitter, now)

    # -- inputs

    def step(self, message: Message, at: Micros) -> None:
        """Take a message. `at` is when it was heard: now, or earlier for one that vouches late."""
        state = self._state
        state.clock = at
        config = state.config
        sender, me = message.sender, config.node
        if message.to != me or message.group != config.group:
            return
        if sender == me and not election.is_own_vote(state, message):
            return
        if sender not in state.log.voters and state.log.voters:
            return  # without a configuration it listens to anyone: it may be told one
        if message.term == state.term or term_gate.passes(state, message, at):
            handler = _HANDLERS.get(type(message))
            if handler is not None:
                handler(state, message, at)

    def follow(self, message: AppendEntries, at: Micros) -> AppendReply | None:
        """`step` and `ready` in one for nearly every message to a follower: entries that continue
        its log, in the term it follows, with nothing else to do.

        The caller writes `message.entries`, calls `persisted` for the last of them, and then sends
        what is returned. None: nothing was changed, `step` has to take the message.
        """
        return following.follow(self._state, message, at)

    def advance(self, now: Micros) -> None:
        """Tell the time; whatever is due by it happens."""
        state = self._state
        state.clock = now
        role = state.role
        if isinstance(role, Leader):
            leadership.advance(state, role, now)
        else:
            election.advance(state, role, now)

    def campaign(self, now: Micros) -> None:
        """Start an election without waiting: a fresh group's first. Asks first (pre-vote) unless
        the term is still 0. Nothing happens on a leader, on a member that is no voter, and while
        one that is alone waits for its vote to be durable."""
        self._state.clock = now
        election.campaign(self._state, now)

    def propose(self, proposals: Sequence[Proposal], expected_term: Term) -> LogIndex | None:
        """Append proposals (at least one) as this leader's next entries; the first one's index.

        None if this member does not lead in exactly `expected_term`, or hands leadership over:
        nothing was or will be appended (conditional replication, mission R3). The entries are in
        the next `Ready.append`; their fate is known when `commit` passes them or the term ends.
        """
        state = self._state
        leader = state.role
        if not isinstance(leader, Leader) or leader.transfer:
            return None
        if state.term != expected_term:
            return None
        return replication.propose(state, proposals)

    def barrier(self, now: Micros) -> int:
        """Ask for proof that this member leads now (read index, thesis 6.4). Returns a ticket,
        whose outcome comes in `Ready.barriers`: at the latest after an election timeout."""
        self._state.clock = now
        return leadership.begin_barrier(self._state, now)

    def transfer(self, to: NodeId, now: Micros) -> bool:
        """Hand leadership to another voter (thesis 3.10). False if that cannot begin: not leader,
        `to` is no other voter or was not heard of for an election timeout, or another transfer is
        under way. Proposals are refused until it succeeds or, after an election timeout, is given
        up."""
        self._state.clock = now
        return leadership.begin_transfer(self._state, to, now)

    def step_down(self, now: Micros) -> None:
        """Resign, because an outcome is uncertain (mission R5): follower in the same term, without
        a leader. It may win a later term, never again this one. Nothing happens on others."""
        self._state.clock = now
        leadership.resign(self._state, now)

    def persisted(self, index: LogIndex, term: Term, now: Micros) -> None:
        """The write of one `Ready` is durable; it ended in entry (or snapshot) `index` of `term`.

        Counts only for what is still in the log: entries that were truncated since do not, even
        if equal ones took their place (see `RaftLog.finish_write`).
        """
        state = self._state
        state.clock = now
        grown = state.log.finish_write(index, term)
        if grown and isinstance(state.role, Leader):
            replication.advance_commit(state, state.role)

    def compact(self, meta: SnapshotMeta) -> None:
        """The caller stores a snapshot and drops the log up to `meta.index`, which is committed
        here; both are written after everything handed out so far. Ignored if a newer snapshot took
        its place meanwhile."""
        state = self._state
        if meta.index >= state.log.first_index:
            assert meta.index <= state.commit, (
                f"compact to {meta.index}, but only {state.commit} is committed"
            )
            state.log.compact(meta)

    # -- outputs

    def has_ready(self) -> bool:
        """Whether `ready` may ask for something; False means that it would not."""
        state = self._state
        return state.outbox.dirty or state.commit != state.told

    def take_commit(self) -> LogIndex:
        """The commit index; from here on it alone is no reason for a `Ready`.

        For callers that apply what is committed anyway: most of what makes a leader ready is that
        a commit moved, which asks for nothing else.
        """
        state = self._state
        state.told = state.commit
        return state.commit

    def has_effects(self) -> bool:
        """Whether `ready` may ask for more than to apply what is committed."""
        return self._state.outbox.dirty

    def ready(self) -> Ready:
        """Everything to be done since the last call; see `ready.py` for the order."""
        state = self._state
        leader = state.role
        if isinstance(leader, Leader):
            leadership.collect(state, leader)
            replication.collect(state, leader)
        return state.outbox.take(state)

    @property
    def deadline(self) -> Micros | None:
        """When `advance` is wanted next; None if there is nothing to wait for but the own disk."""
        state = self._state
        role = state.role
        if isinstance(role, Leader):
            return leadership.deadline(role)
        return election.deadline(state, role)

    @property
    def work_deadline(self) -> Micros | None:
        """`deadline` without what hearing of the leader, or of a quorum, keeps putting off: a
        follower's election and a leader's check-quorum. For drivers that know they are heard."""
        role = self._state.role
        if isinstance(role, Leader):
            return leadership.work_deadline(role)
        return None if role.role is Role.FOLLOWER else self.deadline

    # -- state to read

    @property
    def config(self) -> RaftConfig:
        """What the core was built with."""
        return self._state.config

    @property
    def role(self) -> Role:
        """Its role now."""
        return self._state.role.role

    @property
    def term(self) -> Term:
        """The current term: as far as this member knows, the latest."""
        return self._state.term

    @property
    def leader(self) -> NodeId:
        """Who leads the current term, as far as known; `NO_NODE` otherwise."""
        return self._state.leader

    @property
    def vote(self) -> NodeId:
        """Who got this member's vote in the current term; `NO_NODE` if nobody did."""
        return self._state.vote

    @property
    def commit(self) -> LogIndex:
        """Everything up to here is committed."""
        return self._state.commit

    @property
    def first_index(self) -> LogIndex:
        """First entry that is not compacted."""
        return self._state.log.first_index

    @property
    def last_index(self) -> LogIndex:
        """Last entry, durable or not."""
        return self._state.log.last_index

    @property
    def term_start(self) -> LogIndex | None:
        """Index of this leader's own first entry; None if it does not lead."""
        role = self._state.role
        return role.term_start if isinstance(role, Leader) else None

    @property
    def transferring_to(self) -> NodeId:
        """Who is to lead next; `NO_NODE` if no transfer is under way."""
        role = self._state.role
        if isinstance(role, Leader) and role.transfer is not None:
            return role.transfer.to
        return NO_NODE

    @property
    def log(self) -> RaftLog:
        """The index of the log. Read it; only the core changes it."""
        return self._state.log

    @property
    def voters(self) -> tuple[NodeId, ...]:
        """The members of the group, in ascending order."""
        return self._state.log.voters

    def progress(self) -> Mapping[NodeId, ProgressView]:
        """Every other voter as this leader sees it; empty if it does not lead."""
        role = self._state.role
        if not isinstance(role, Leader):
            return {}
        return {node: progress.view() for node, progress in role.progress.items()}

    def commit_known_to(self, follower: NodeId) -> LogIndex:
        """The commit index a heartbeat to `follower` may carry: never beyond what it confirmed.
        0 if this member does not lead, or not this follower."""
        role = self._state.role
        if not isinstance(role, Leader) or follower not in role.progress:
            return 0
        return min(role.progress[follower].match, self._state.commit)
