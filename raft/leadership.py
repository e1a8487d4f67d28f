"""The leader's tasks besides replication: check-quorum, barriers, transfer, retransmission,
resigning.

* **Check-quorum** (thesis 6.2): a leader that has not heard of a majority for an election timeout
  steps down. It compares the times at which followers were last heard. A driver may vouch for a
  follower later, with the time at which its node was really heard; so an early or repeated call
  does no harm.
* **Leadership barrier** (read index, thesis 6.4): proves that no newer leader existed when the
  barrier was asked for. It needs one round of heartbeats that a majority answers. It also needs a
  committed entry of the leader's own term: only then does the commit index cover earlier terms.
  Barriers of one turn share a round; a round answers every barrier that was asked for before it.
* **Transfer** (thesis 3.10): the leader refuses proposals, waits until the successor has the whole
  log, and tells it to start an election. A transfer is given up after an election timeout. It does
  not begin if the successor was silent for that long.
* **Retransmission**: one timer for all followers, armed only while something is unanswered. Each
  scan counts how often a follower that owes an answer was found silent (see `progress`).

When the leader loses its role, all barriers fail and the transfer is dropped with the `Leader`
object (`state.py`).
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
    """Look for unanswered messages; send again those that an earlier scan found unanswered."""
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
    """Disarm the retransmission timer if everything sent is answered, so that the driver does not
    wake up for a scan that finds nothing."""
    if leader.barriers or leader.transfer is not None:
        return
    for progress in leader.progress.values():
        if progress.unanswered:
            return
    leader.retransmit_at = None


def collect(state: RaftState, leader: Leader) -> None:
    """Send the heartbeats that barriers need, and TimeoutNow to a successor that has the whole
    log."""
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
    """Ask for proof of leadership and return a ticket. The outcome comes in a `Ready`: the next one
    if it is already known.

    The outcome reports the present commit index, or `term_start` if that is higher. Until the entry
    at `term_start` is committed, the leader does not know how far earlier terms committed; but they
    did not commit beyond it.
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
    """A follower still follows this leader. A context answers all barriers up to that ticket."""
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
    """Report barriers that a majority has answered, once an entry of this term is committed."""
    if state.commit < leader.term_start:
        return
    answered = reached([*(p.context for p in leader.progress.values()), state.tickets])
    while leader.barriers and leader.barriers[0].ticket <= answered:
        barrier = leader.barriers.popleft()
        state.outbox.finish_barrier(barrier.ticket, barrier.index)


def begin_transfer(state: RaftState, to: NodeId, now: Micros) -> bool:
    """Start a transfer. False if this member does not lead, if `to` is not another voter or is
    silent, or if a transfer to another member is in progress."""
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
    """Give up leadership within the term. This member cannot win the same term again."""
    if isinstance(state.role, Leader):
        become_follower(state, Trigger.RESIGNED, now)
