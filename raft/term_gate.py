"""Handles a message's term before its content (figure 2, *rules for all servers*).

| the message's term is | and it is | then |
|---|---|---|
| older | RequestVote | refuse it, with this member's term |
| older | AppendEntries, Heartbeat, InstallSnapshot | answer with this member's term (below) |
| older | an answer, TimeoutNow | ignore it: its term is over |
| newer | RequestVote (pre), a granted pre-vote | handle it; nobody has started that term yet |
| newer | RequestVote, while a lease holds | ignore it and its term (thesis 4.2.3) |
| newer | anything else | adopt the term, follow nobody, then handle it |

A leader of an older term gets an answer even if it is the only working leader: a member with a
higher term (it started an election and lost) can only follow again once the others adopt that term
(thesis 9.6). The answer leaves when this member's term is durable: the leader that gets it steps
down, and if this member's disk hangs, nobody could be elected in that term.
"""

from __future__ import annotations

from ottla.raft import election
from ottla.raft.messages import (
    AppendEntries,
    AppendReply,
    Heartbeat,
    HeartbeatReply,
    InstallSnapshot,
    Message,
    RequestVote,
    SnapshotReply,
    VoteReply,
)
from ottla.raft.roles import Trigger
from ottla.raft.state import RaftState, become_follower
from ottla.raft.types import Micros


def passes(state: RaftState, message: Message, at: Micros) -> bool:
    """Whether to handle a message whose term is not this member's. Adopts its term or answers it,
    as the table says."""
    if message.term < state.term:
        _answer_stale(state, message)
        return False
    if isinstance(message, RequestVote):
        if message.pre:
            return True
        if state.holds_lease(at) and not message.transfer:
            return False
    elif isinstance(message, VoteReply) and message.pre and message.granted:
        return True
    become_follower(state, Trigger.HIGHER_TERM, at, message.term)
    return True


def _answer_stale(state: RaftState, message: Message) -> None:
    group, me, sender, term = message.group, message.to, message.sender, state.term
    if isinstance(message, RequestVote):
        election.refuse(state, message)
    elif isinstance(message, AppendEntries):
        state.outbox.send_after(AppendReply(group, me, sender, term, False, message.prev_index))
    elif isinstance(message, Heartbeat):
        state.outbox.send_after(HeartbeatReply(group, me, sender, term))
    elif isinstance(message, InstallSnapshot):
        state.outbox.send_after(SnapshotReply(group, me, sender, term, message.index, 0))
