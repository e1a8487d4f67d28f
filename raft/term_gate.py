"""What a message's term says, before its content is looked at (figure 2, *rules for all servers*).

| the message's term is | and it is | then |
|---|---|---|
| older | RequestVote | refuse, with the own term |
| older | AppendEntries, Heartbeat, InstallSnapshot | tell the stale leader the own term (below) |
| older | an answer, TimeoutNow | ignore it: it speaks of a term that is over |
| newer | RequestVote (pre), a granted pre-vote | look at it; nobody has started that term yet |
| newer | RequestVote, while a lease holds | ignore it, term included (thesis 4.2.3) |
| newer | anything else | adopt the term, follow nobody, then look at it |

The stale leader is told even if it would lead otherwise: a member whose term is ahead (it stood for
election and failed) can only come back if the term of the others catches up (thesis 9.6). It is
not told before that term is durable: who hears of it resigns, and behind a disk that hangs nobody
would come to lead in it.
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
    """Whether a message of another term than the own is to be looked at; adopts its term or
    answers it as the table says."""
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
