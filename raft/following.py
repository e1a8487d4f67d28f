"""The follower's side of replication: entries, and heartbeats of the leader.

A success is sent only when the entries are durable, once per `Ready`: the reply with the highest
match stands for all. A refusal promises nothing; it leaves at once, with a hint where the leader
should go on (thesis 3.5).

A committed entry may be applied here before this member's own disk holds it. A majority holds it
durably, so every later leader has it. If this member crashes, it loses the applied state, which is
in memory, and receives the entry again.

Entries are input from peers. A malformed message (a range that does not fit its entries, an entry
of a later term than the message) is ignored. Only the first and the last entry are checked, because
entries either stayed in this process or came with a checksum. A message that contradicts a
*committed* entry means that an invariant is broken: then this module asserts.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.raft.messages import AppendEntries, AppendReply, Heartbeat, HeartbeatReply
from ottla.raft.roles import Trigger
from ottla.raft.state import Candidate, Follower, Leader, RaftState, become_follower
from ottla.raft.types import NO_NODE, Entry, LogIndex, Micros, NodeId


def hear_leader(state: RaftState, sender: NodeId, at: Micros) -> Follower | None:
    """Follow `sender`, whose message only the leader of this term can send.

    Returns None if this term has another leader; then the message must be ignored.
    """
    role = state.role
    if isinstance(role, Leader):
        return None
    if isinstance(role, Candidate):
        role = become_follower(state, Trigger.LEADER_HEARD, at)
    if role.leader != sender:
        if role.leader != NO_NODE:
            return None
        role.leader = sender
        role.contact = at
        state.outbox.dirty = state.outbox.moved = True
    role.contact = max(role.contact, at)
    return role


def follow(state: RaftState, message: AppendEntries, at: Micros) -> AppendReply | None:
    """`on_append_entries` and `ready` in one, for the usual message: the current leader sends
    entries of its own term that begin where this log ends.

    The caller writes `message.entries`, and sends the reply that is returned when they are durable.
    None: the message is not of this kind, nothing was changed, and the caller must use `step`. The
    result is always the same as by `step` (tests compare the two).
    """
    log, role, term, config = state.log, state.role, state.term, state.config
    entries, prev_index, last = message.entries, message.prev_index, message.last_index
    if (
        role.__class__ is not Follower
        or role.leader != message.sender
        or not entries
        or message.term != term
        or message.prev_term != term
        or not log.continues(prev_index, term)
        or len(entries) != last - prev_index
        or entries[0].index != prev_index + 1
        or entries[0].term != term
        or entries[-1].index != last
        or entries[-1].term != term
        or state.outbox.dirty
        or message.to != config.node
        or message.group != config.group
        or message.sender not in log.voters
    ):
        return None
    state.clock = at
    role.contact = max(role.contact, at)
    log.append(entries)
    log.begin_write(last, term)
    state.commit_to(min(message.commit, last))
    return AppendReply(config.group, config.node, message.sender, term, True, last)


def on_append_entries(state: RaftState, message: AppendEntries, at: Micros) -> None:
    """Figure 2, AppendEntries, receiver rules 2 to 5 (rule 1 is in `term_gate`)."""
    if not _is_well_formed(message) or hear_leader(state, message.sender, at) is None:
        return
    prev_index, entries = message.prev_index, message.entries
    if prev_index < state.commit:
        entries = _skip_committed(state, message)
        prev_index = state.commit
    elif not state.matches(message):
        _refuse(state, message)
        return
    if entries:
        _take_in(state, prev_index, entries)
    match = prev_index + len(entries)
    if message.commit > state.commit:
        state.commit_to(min(message.commit, match))
    config = state.config
    reply = AppendReply(config.group, config.node, message.sender, state.term, True, match)
    state.outbox.acknowledge(reply)


def _is_well_formed(message: AppendEntries) -> bool:
    entries = message.entries
    first = message.prev_index + 1
    if len(entries) != message.last_index - message.prev_index or first < 1:
        return False
    if not entries:
        return True
    head, tail = entries[0], entries[-1]
    numbered = head.index == first and tail.index == message.last_index
    return numbered and message.prev_term <= head.term <= tail.term <= message.term


def _skip_committed(state: RaftState, message: AppendEntries) -> Sequence[Entry]:
    """The entries behind the commit index. Asserts that the last one before it has our term."""
    repeated = min(state.commit, message.last_index) - message.prev_index
    last = message.prev_index + repeated
    theirs = message.entries[repeated - 1].term if repeated else message.prev_term
    ours = state.log.term_at(last)
    assert ours is None or ours == theirs, (
        f"entry {last} of term {ours} is committed (through {state.commit}), "
        f"the leader of term {state.term} has term {theirs} there"
    )
    return message.entries[repeated:]


def _take_in(state: RaftState, prev_index: LogIndex, entries: Sequence[Entry]) -> None:
    """Append the entries that are new, truncating own entries that differ. The logs agree up to
    `prev_index`."""
    log = state.log
    if prev_index < log.last_index:
        fresh = _first_difference(state, entries)
        if fresh == len(entries):
            return  # all of it is here already: nothing is truncated (figure 2, receiver 3)
        index = entries[fresh].index
        if index <= log.last_index:
            assert index > state.commit, (
                f"truncate from {index}, but {state.commit} is committed: entry {index} has term "
                f"{log.term_at(index)}, the leader of term {state.term} sends {entries[fresh].term}"
            )
            log.truncate_from(index)
        if fresh:
            entries = entries[fresh:]
    log.append(entries)
    state.outbox.append(entries)


def _first_difference(state: RaftState, entries: Sequence[Entry]) -> int:
    """Position of the first entry that the log lacks, or has with another term."""
    log = state.log
    for position, entry in enumerate(entries):
        if log.term_at(entry.index) != entry.term:
            return position
    return len(entries)


def _refuse(state: RaftState, message: AppendEntries) -> None:
    config = state.config
    hint_index, hint_term = state.log.agreement_hint(message.prev_index, message.prev_term)
    reply = AppendReply(
        group=config.group,
        sender=config.node,
        to=message.sender,
        term=state.term,
        success=False,
        match=message.prev_index,
        hint_index=hint_index,
        hint_term=hint_term,
    )
    state.outbox.send(reply)


def on_heartbeat(state: RaftState, message: Heartbeat, at: Micros) -> None:
    """The leader was alive at `at`. Its `commit` is at most what this member has confirmed.

    A heartbeat without a context gets no reply: the driver makes it itself, to vouch for a leader
    on a node that it heard of at `at`.
    """
    if hear_leader(state, message.sender, at) is None:
        return
    state.commit_to(min(message.commit, state.log.last_index))
    if message.context > 0:
        config = state.config
        state.outbox.send(
            HeartbeatReply(config.group, config.node, message.sender, state.term, message.context)
        )
