"""One member of one Raft group, without I/O: inputs in, `Ready` out.

How a driver uses it::

    core = RaftCore(config, hard_state=..., log=..., jitter=..., now=...)
    loop:
        hand over inputs: step, propose, barrier, persisted, advance when `deadline` has come, ...
        if core.has_ready(): carry out core.ready() in the order that `ready.py` gives

Rules for the driver:

1. **Time** comes with the inputs, in whole microseconds of a clock that never goes back. `deadline`
   says when `advance` is wanted; calling it early or late does no harm.
2. **Heartbeats** are sent by the core only for barriers. The driver knows which *nodes* are alive,
   and vouches for the leader on a live node: it steps `Heartbeat(context=0)`, with the time at
   which the node was heard, before it acts on a follower's deadline and before it steps any
   RequestVote. It steps `HeartbeatReply(context=0)` before it acts on a leader's deadline and
   before a transfer. `commit_known_to` says which commit index such a heartbeat may carry.
3. **Writes** finish in the order in which their `Ready` was taken. The driver calls `persisted` for
   each `Ready` that had `append` or `snapshot`, or for the last of several that finished together.
4. **Bytes** are read by the driver: it fills `entries` and `chunk` before a message leaves. If it
   cannot read them it drops the message; the core sends again what stays unanswered.
5. **A message to the member itself** is stepped instead of sent. Only a group of one has it: its
   vote, in `Ready.messages_after`.

Messages of peers may be lost, repeated, out of order or malformed; none of them raises. Before a
message reaches a role, `step` checks two things: a voter of this group sent it to this member, and
its term (figure 2, *rules for all servers*). Everything else is in one module per subject:
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
    """One member of one group: its inputs, its deadline, `ready`, and its state to read."""

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
        """A member in the state that its disk holds. It starts as a follower that knows no leader.

        `log` comes from `bootstrap` (fresh group) or `RaftLog.restore` (restart); from here on the
        core owns it. Raises `CorruptStateError` if the log has a later term than `hard_state`: both
        are written in one transaction, so this cannot be.
        """
        if log.last_term > hard_state.term:
            raise CorruptStateError(
                f"group {config.group}: entry {log.last_index} has term {log.last_term}, "
                f"but the term on disk is {hard_state.term}"
            )
        self._state = self.state_type(config, hard_state, log, jitter, now)

    # -- inputs

    def step(self, message: Message, at: Micros) -> None:
        """Take a message. `at`: when it arrived. That is now, or earlier for a heartbeat by which
        the driver vouches for a node."""
        state = self._state
        state.clock = at
        config = state.config
        sender, me = message.sender, config.node
        if message.to != me or message.group != config.group:
            return
        if sender == me and not election.is_own_vote(state, message):
            return
        if sender not in state.log.voters and state.log.voters:
            return  # a member without a configuration accepts any sender: it may send the voters
        if message.term == state.term or term_gate.passes(state, message, at):
            handler = _HANDLERS.get(type(message))
            if handler is not None:
                handler(state, message, at)

    def follow(self, message: AppendEntries, at: Micros) -> AppendReply | None:
        """`step` and `ready` in one, for the usual message to a follower: entries of the current
        term that continue its log, while nothing else is to be done.

        The caller writes `message.entries`, calls `persisted` for the last of them, and then sends
        the reply that is returned. None: nothing was changed, and the caller must use `step`.
        """
        return following.follow(self._state, message, at)

    def advance(self, now: Micros) -> None:
        """Do everything that is due at `now`."""
        state = self._state
        state.clock = now
        role = state.role
        if isinstance(role, Leader):
            leadership.advance(state, role, now)
        else:
            election.advance(state, role, now)

    def campaign(self, now: Micros) -> None:
        """Start an election at once, as a fresh group does. It begins with a pre-vote unless the
        term is still 0. Nothing happens on a leader, on a member that is no voter, and on the
        member of a group of one while it waits for its vote to be durable."""
        self._state.clock = now
        election.campaign(self._state, now)

    def propose(self, proposals: Sequence[Proposal], expected_term: Term) -> LogIndex | None:
        """Append proposals (at least one) as this leader's next entries. Returns the index of the
        first one.

        Returns None if this member does not lead in exactly `expected_term` or is transferring its
        leadership: nothing was or will be appended (conditional replication, promise-R3). The
        entries are in the next `Ready.append`. They are committed when `commit` reaches them; if
        the term ends before, the next leader decides.
        """
        state = self._state
        leader = state.role
        if not isinstance(leader, Leader) or leader.transfer:
            return None
        if state.term != expected_term:
            return None
        return replication.propose(state, proposals)

    def barrier(self, now: Micros) -> int:
        """Ask for proof that this member leads now (read index, thesis 6.4). Returns a ticket; its
        outcome comes in a later `Ready.barriers`, at the latest after an election timeout."""
        self._state.clock = now
        return leadership.begin_barrier(self._state, now)

    def transfer(self, to: NodeId, now: Micros) -> bool:
        """Start to transfer leadership to another voter (thesis 3.10). From then on proposals are
        refused until the transfer succeeds or, after an election timeout, is given up.

        Returns False if it cannot begin: this member does not lead, `to` is not another voter or
        was silent for an election timeout, or a transfer to another member is in progress.
        """
        self._state.clock = now
        return leadership.begin_transfer(self._state, to, now)

    def step_down(self, now: Micros) -> None:
        """Resign, because an outcome is uncertain (promise-R5). The leader becomes a follower in
        the same term that knows no leader. It may win a later term, never this one again. Nothing
        happens on a member that does not lead."""
        self._state.clock = now
        leadership.resign(self._state, now)

    def persisted(self, index: LogIndex, term: Term, now: Micros) -> None:
        """The write of one `Ready` is durable; its last entry (or snapshot) is `index` of `term`.

        It counts only for entries that are still in the log. Entries that were truncated since do
        not count, even if equal ones replaced them (see `RaftLog.finish_write`).
        """
        state = self._state
        state.clock = now
        grown = state.log.finish_write(index, term)
        if grown and isinstance(state.role, Leader):
            replication.advance_commit(state, state.role)

    def compact(self, meta: SnapshotMeta) -> None:
        """Drop the log up to `meta.index`, which must be committed here. The caller stores the
        snapshot and drops the entries on disk after everything handed out so far. Ignored if the
        log already begins behind `meta.index`."""
        state = self._state
        if meta.index >= state.log.first_index:
            assert meta.index <= state.commit, (
                f"compact to {meta.index}, but only {state.commit} is committed"
            )
            state.log.compact(meta)

    # -- outputs

    def has_ready(self) -> bool:
        """Whether `ready` may ask for something. False is certain, True is not."""
        state = self._state
        return state.outbox.dirty or state.commit != state.told

    def take_commit(self) -> LogIndex:
        """The commit index. After this call `has_ready` does not report this commit index again.

        For a caller that applies committed entries without a `Ready`: on a leader, mostly nothing
        but the commit index has changed.
        """
        state = self._state
        state.told = state.commit
        return state.commit

    def has_effects(self) -> bool:
        """Whether `ready` may ask for more than to apply committed entries."""
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
        """When to call `advance` next; None if this member waits for nothing, or only for its own
        disk."""
        state = self._state
        role = state.role
        if isinstance(role, Leader):
            return leadership.deadline(role)
        return election.deadline(state, role)

    @property
    def work_deadline(self) -> Micros | None:
        """`deadline` without a follower's election timeout and a leader's check-quorum. For a
        driver that knows that the leader, or a quorum, is alive."""
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
        """The current term: the highest that this member knows."""
        return self._state.term

    @property
    def leader(self) -> NodeId:
        """The leader of the current term; `NO_NODE` if this member does not know it."""
        return self._state.leader

    @property
    def vote(self) -> NodeId:
        """The node that got this member's vote in the current term; `NO_NODE` if none did."""
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
        """The target of the transfer in progress; `NO_NODE` if there is none."""
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
        """The commit index that a heartbeat to `follower` may carry: at most what that follower has
        confirmed. 0 if this member does not lead, or `follower` is not one of its voters."""
        role = self._state.role
        if not isinstance(role, Leader) or follower not in role.progress:
            return 0
        return min(role.progress[follower].match, self._state.commit)
