"""Elections: which member asks for votes, and which member grants them.

* A follower whose election timeout ends becomes a **pre-candidate** (thesis 9.6): it asks whether
  it would be elected. Neither its term nor any vote changes. So a member that can send but not
  receive does not raise the term, and a member that comes back does not depose a working leader.
* When a majority says yes, it becomes a **candidate**: it raises its term by 1, votes for itself
  and asks for votes. Its requests leave only when its own vote is durable. Otherwise, after a
  crash, it could ask again in the same term with a shorter log, and count votes given to the longer
  log.
* **Votes** go to the first candidate of a term whose log is at least as up to date (paper 5.2,
  5.4.1). A grant leaves when it is durable, a refusal at once. A member that grants a vote restarts
  its election timeout; a repeated request of the same candidate does not restart it again.
* **Leases on votes** (thesis 4.2.3): a follower that heard of its leader within the shortest
  election timeout ignores a request of any newer term and does not adopt that term. A leader does
  the same as long as it leads; check-quorum ends its leadership if it has lost its followers.
  Requests with `transfer`, which the leader itself asked for, are not affected.
* In **term 0** nobody can lead, so the first election of a fresh group skips the pre-vote.

* In a **group of one** the candidate has nobody to ask. It sends its own vote to itself, as a reply
  that leaves after the write, and counts it when it arrives: so the term is on disk before the
  member leads. Such a candidate never asks again: it waits for its disk, not for a deadline.

A member that is not a voter neither asks nor grants. A member whose disk was wiped knows no voters;
it may have voted before, so it must not vote.
"""

from __future__ import annotations

from ottla.raft import replication
from ottla.raft.messages import Message, RequestVote, TimeoutNow, VoteReply
from ottla.raft.quorum import VoteResult, count_votes
from ottla.raft.roles import Role, Trigger
from ottla.raft.state import (
    Candidate,
    Follower,
    Leader,
    RaftState,
    become_candidate,
    become_follower,
    become_leader,
)
from ottla.raft.types import NO_NODE, Micros


def campaign(state: RaftState, now: Micros) -> None:
    """Start an election at once. Nothing happens on a leader, on a member that is no voter, and
    while the member of a group of one waits for its vote."""
    if isinstance(state.role, Leader) or state.config.node not in state.log.voters:
        return
    if _waits_for_own_vote(state):
        return
    if isinstance(state.role, Follower) and not state.asks_first():
        _ask_for_votes(state, become_candidate(state, Trigger.FIRST_ELECTION, now), now)
    else:
        _ask_for_votes(state, become_candidate(state, Trigger.ELECTION_TIMEOUT, now), now)


def deadline(state: RaftState, role: Follower | Candidate) -> Micros | None:
    """When a member that does not lead must act. None if it is no voter, or waits for its own vote
    to be durable."""
    if isinstance(role, Candidate):
        return None if _waits_for_own_vote(state) else min(role.ends_at, role.retransmit_at)
    if state.config.node not in state.log.voters:
        return None
    return max(role.waits_from, role.contact) + role.timeout


def advance(state: RaftState, role: Follower | Candidate, now: Micros) -> None:
    """Start or repeat an election if it is due at `now`; an early call changes nothing."""
    if isinstance(role, Follower):
        if now >= max(role.waits_from, role.contact) + role.timeout:
            campaign(state, now)
    elif now >= role.ends_at:
        campaign(state, now)
    elif now >= role.retransmit_at:
        role.retransmit_at = now + state.config.retransmit
        _send_requests(state, role)


def on_timeout_now(state: RaftState, message: TimeoutNow, at: Micros) -> None:
    """The leader asks this member to start an election (leadership transfer, thesis 3.10)."""
    role = state.role
    if isinstance(role, Follower):
        willing = role.leader in (NO_NODE, message.sender)
    else:
        willing = role.role is Role.PRE_CANDIDATE
    if willing and state.config.node in state.log.voters:
        candidate = become_candidate(state, Trigger.TRANSFER_ORDERED, at, transfer=True)
        _ask_for_votes(state, candidate, at)


def _waits_for_own_vote(state: RaftState) -> bool:
    return state.role.role is Role.CANDIDATE and state.log.voters == (state.config.node,)


def is_own_vote(state: RaftState, message: Message) -> bool:
    """Whether `message` is the vote that the candidate of a group of one sends to itself."""
    own = isinstance(message, VoteReply) and message.granted and message.term == state.term
    return own and _waits_for_own_vote(state)


def _ask_for_votes(state: RaftState, candidate: Candidate, now: Micros) -> None:
    if _waits_for_own_vote(state):
        me = state.config.node
        state.outbox.send_after(VoteReply(state.config.group, me, me, state.term, True, False))
        return
    _send_requests(state, candidate)
    _count(state, candidate, now)


def _send_requests(state: RaftState, candidate: Candidate) -> None:
    pre = candidate.role is Role.PRE_CANDIDATE
    log, config = state.log, state.config
    send = state.outbox.send if pre else state.outbox.send_after
    for voter in log.voters:
        answer = candidate.votes.get(voter)
        if answer or (answer is False and not pre):
            continue
        request = RequestVote(
            group=config.group,
            sender=config.node,
            to=voter,
            term=state.term + 1 if pre else state.term,
            last_index=log.last_index,
            last_term=log.last_term,
            pre=pre,
            transfer=candidate.transfer,
        )
        send(request)


def on_vote_reply(state: RaftState, message: VoteReply, at: Micros) -> None:
    """Count an answer. A later answer may turn a refusal into a grant, never a grant into a
    refusal."""
    candidate = state.role
    if not isinstance(candidate, Candidate):
        return
    pre = candidate.role is Role.PRE_CANDIDATE
    asked = state.term + 1 if pre and message.granted else state.term
    if message.pre is pre and message.term == asked:
        if not candidate.votes.get(message.sender, False):
            candidate.votes[message.sender] = message.granted
        _count(state, candidate, at)


def _count(state: RaftState, candidate: Candidate, at: Micros) -> None:
    result = count_votes(state.log.voters, candidate.votes)
    pre = candidate.role is Role.PRE_CANDIDATE
    if result is VoteResult.WON and pre:
        _ask_for_votes(state, become_candidate(state, Trigger.PRE_VOTE_WON, at), at)
    elif result is VoteResult.WON:
        replication.take_office(state, become_leader(state, at))
    elif result is VoteResult.LOST:
        become_follower(state, Trigger.PRE_VOTE_LOST if pre else Trigger.ELECTION_LOST, at)


def on_request_vote(state: RaftState, message: RequestVote, at: Micros) -> None:
    """Grant or refuse a vote or a pre-vote. The term gate has adopted the term of a real
    request."""
    granted = _grants_pre_vote(state, message, at) if message.pre else _grants(state, message)
    if not granted:
        refuse(state, message)
        return
    if not message.pre:
        anew = state.vote != message.sender
        state.vote = message.sender
        state.outbox.moved = True
        role = state.role
        if role.role is Role.PRE_CANDIDATE:  # a candidate has given its vote to itself
            become_follower(state, Trigger.VOTE_GRANTED, at)
        elif isinstance(role, Follower) and anew:
            role.waits_from = max(role.waits_from, at)
    reply = VoteReply(
        group=state.config.group,
        sender=state.config.node,
        to=message.sender,
        term=message.term,
        granted=True,
        pre=message.pre,
    )
    state.outbox.send_after(reply)


def refuse(state: RaftState, message: RequestVote) -> None:
    """Refuse. The reply has this member's term, so that a candidate that is behind learns it."""
    config = state.config
    reply = VoteReply(config.group, config.node, message.sender, state.term, False, message.pre)
    state.outbox.send(reply)


def _grants_pre_vote(state: RaftState, message: RequestVote, at: Micros) -> bool:
    """Whether the term is new, the candidate's log is up to date, and no lease forbids the vote."""
    if message.term <= state.term or not state.is_up_to_date(message):
        return False
    return not state.holds_lease(at)


def _grants(state: RaftState, message: RequestVote) -> bool:
    """Figure 2, RequestVote receiver 2: one vote per term, first come, first served."""
    return state.has_vote_for(message.sender) and state.is_up_to_date(message)
