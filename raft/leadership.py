"""What a leader does besides replicating: keeps time, proves that it leads, hands over, resigns.

* **Check-quorum** (thesis 6.2): a leader that has not heard of a majority for an election timeout
  steps down. It judges by when followers were last heard of, and followers may be vouched for late,
  at the time they were really heard; so an early or repeated call decides nothing.
* **Leadership barrier** (read index, thesis 6.4): proves that no newer leader existed when it was
  asked for. Needs one round of heartbeats that a majority answers, and an entry of the own term
  committed, since only then is the commit index known to cover earlier terms. Barriers asked for in
  one turn share a round; a round answers every barrier asked for before it.
* **Transfer** (thesis 3.10): refuse proposals, wait until the successor has the whole log, tell it
  to start an election. Given up after an election timeout, and not begun when nothing was heard of
  the successor for as long.
* **Retransmission**: one timer for all followers, armed only while something is unanswered. Each
  scan counts the silence of those that owe an answer; see `progress` for why this needs no clock.

Losing the role fails all barriers and drops the transfer with the `Leader` object (`state.py`).
"""

from __future__ import annotations

from ottla.raft.messages import Heartbeat, HeartbeatReply, TimeoutNow
from ottla.raft.progress import ProgressEvent
from ottla.raft.quorum import reached
from ottla.raft.roles import Trigger
from ottla.raft.state import Barrier, Leader, RaftState, Transfer, become_follower
from ottla.raft.types import LogIndex, Micros, NodeId


def deadline(leader: Leader) -> Micros | None:
    """The earliest of the leader's timers."""
    due, check_at = work_deadline(leader), leader.check_at
    if due is None or check_at is None:
        return due if check_at is None else check_at
    return min(due, check_at)


def work_deadline(leader: Leader) -> Micros | None:
    """The earliest of the leader's timers, check-quorum left out."""
    due = leader.retransmit_at
    if leader.barriers:
        expires_at = leader.barriers[0].expires_at
        due = expires_at if due is None else min(due, expires_at)
    if leader.transfer is not None:
        expires_at = leader.transfer.expires_at
        due = expires_at if due is None else min(due, expires_at)
    return due


def advance(state: RaftState, leader: Leader, now: Micros) -> None:
    """Do whatever is due at `now`."""
    if leader.check_at is not None and now >= leader.check_at:
        contacts = [progress.contact for progress in leader.progress.values()]
        heard = reached([*contacts, now])
        leader.check_at = heard + state.config.election_timeout
        if now >= leader.check_at:
            become_follower(state, Trigger.QUORUM_LOST, now)
            return
    while leader.barriers and now >= leader.barriers[0].expires_at:
        state.outbox.finish_barrier(leader.barriers.popleft().ticket, None)
    if leader.transfer is not None and now >= leader.transfer.expires_at:
        leader.transfer = None
    if leader.retransmit_at is not None and now >= leader.retransmit_at:
        _scan(state, leader, now)


def _scan(state: RaftState, leader: Leader, now: Micros) -> None:
    """Look for unanswered messages; send again what was unanswered before."""
    waiting = bool(leader.barriers)
    for progress in leader.progress.values():
        if progress.unanswered:
            waiting = True
            if progress.is_overdue():
                progress.move(ProgressEvent.SILENT)
                state.outbox.dirty = True
    if leader.barriers:
        leader.round_due = True
        state.outbox.dirty = True
    if leader.transfer is not None and leader.transfer.ordered:
        leader.transfer.ordered = False
        state.outbox.dirty = True
    leader.retransmit_at = now + state.config.retransmit if waiting else None


def rest(leader: Leader) -> None:
    """Disarm the timer if all that was sent is answered: a scan would find nothing, and a driver
    would wake up for it."""
    if leader.barriers or leader.transfer is not None:
        return
    for progress in leader.progress.values():
        if progress.unanswered:
            return
    leader.retransmit_at = None


def collect(state: RaftState, leader: Leader) -> None:
    """Send the round that barriers wait for, and the order to a successor that has everything."""
    if leader.round_due:
        leader.round_due = False
        if leader.barriers and leader.progress:
            _send_round(state, leader)
    transfer = leader.transfer
    if transfer is None or transfer.ordered:
        return
    if leader.progress[transfer.to].match == state.log.last_index:
        transfer.ordered = True
        config = state.config
        state.outbox.send(TimeoutNow(config.group, config.node, transfer.to, state.term))
        if leader.retransmit_at is None:
            leader.retransmit_at = state.clock + config.retransmit


def _send_round(state: RaftState, leader: Leader) -> None:
    config, ticket = state.config, state.tickets
    for progress in leader.progress.values():
        if progress.context < ticket:
            commit = min(progress.match, state.commit)
            state.outbox.send(
                Heartbeat(config.group, config.node, progress.node, state.term, commit, ticket)
            )
    if leader.retransmit_at is None:
        leader.retransmit_at = state.clock + config.retransmit


def begin_barrier(state: RaftState, now: Micros) -> int:
    """Ask for proof of leadership; the outcome comes in a `Ready`, at once if it is known.

    The index it will report is the commit index of now, but at least `term_start`: before that
    entry is committed the leader does not know how far earlier terms committed, and they did not
    get beyond it.
    """
    state.tickets += 1
    ticket = state.tickets
    leader = state.role
    if not isinstance(leader, Leader):
        state.outbox.finish_barrier(ticket, None)
        return ticket
    index: LogIndex = max(state.commit, leader.term_start)
    leader.barriers.append(Barrier(ticket, index, now + state.config.election_timeout))
    leader.round_due = True
    state.outbox.dirty = True
    finish_barriers(state, leader)
    return ticket


def on_heartbeat_reply(state: RaftState, message: HeartbeatReply, at: Micros) -> None:
    """A follower still follows; with a context it answers every barrier up to that number."""
    leader = state.role
    if not isinstance(leader, Leader) or message.context > state.tickets:
        return
    progress = leader.progress[message.sender]
    progress.alive(at)
    if progress.may_send(state.log.last_index):
        state.outbox.dirty = True
    if message.context > progress.context:
        progress.context = message.context
        if leader.barriers:
            finish_barriers(state, leader)


def finish_barriers(state: RaftState, leader: Leader) -> None:
    """Report the barriers that a majority has answered, once the own term has a committed entry."""
    if state.commit < leader.term_start:
        return
    answered = reached([*(p.context for p in leader.progress.values()), state.tickets])
    while leader.barriers and leader.barriers[0].ticket <= answered:
        barrier = leader.barriers.popleft()
        state.outbox.finish_barrier(barrier.ticket, barrier.index)


def begin_transfer(state: RaftState, to: NodeId, now: Micros) -> bool:
    """Start to hand over; False if this is not a leader, or `to` not another voter, or silent, or
    another transfer is under way."""
    leader = state.role
    if not isinstance(leader, Leader) or to not in leader.progress:
        return False
    if leader.transfer is not None:
        return leader.transfer.to == to
    if now - leader.progress[to].contact >= state.config.election_timeout:
        return False
    leader.transfer = Transfer(to, now + state.config.election_timeout)
    state.outbox.dirty = True
    return True


def resign(state: RaftState, now: Micros) -> None:
    """Give leadership up within the term. It cannot be won back in it: the vote is spent."""
    if isinstance(state.role, Leader):
        become_follower(state, Trigger.RESIGNED, now)
