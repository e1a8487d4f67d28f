"""Snapshots between members: sent chunk by chunk, received in order, installed as a whole.

At most one chunk per follower is unanswered. The answer says how many bytes the follower holds, and
the leader continues from there, even if that is less than before. So lost, repeated or late chunks
and a follower that restarts need no rules of their own.

The leader's core sends chunks without bytes; the driver reads them from the stored snapshot. If a
newer snapshot replaces the stored one, sending begins again with the newer one.

A follower does not install a snapshot that it does not need. If the snapshot is at or below its
commit index, or its log has the snapshot's last entry, it answers *done* (figure 13 of the paper,
receiver rule 6). When the term ends, a partly received snapshot is dropped: another leader's bytes
may differ.
"""

from __future__ import annotations

from ottla.raft.following import hear_leader
from ottla.raft.messages import InstallSnapshot, SnapshotReply
from ottla.raft.progress import Progress, ProgressEvent, Sending
from ottla.raft.state import Follower, RaftState, Receiving
from ottla.raft.types import Micros, Snapshot, SnapshotMeta


def send_chunk(state: RaftState, progress: Progress) -> None:
    """Send the chunk that begins where the follower's bytes end."""
    meta = state.log.snapshot
    assert meta is not None, f"the log starts at {state.log.first_index} without a snapshot"
    sending = progress.sending
    if sending is None:
        sending = progress.sending = Sending(meta)
    elif sending.meta != meta:
        progress.move(ProgressEvent.COMPACTED)
        sending = progress.sending = Sending(meta)
    config = state.config
    message = InstallSnapshot(
        group=config.group,
        sender=config.node,
        to=progress.node,
        term=state.term,
        index=meta.index,
        snapshot_term=meta.term,
        voters=meta.voters,
        offset=sending.offset,
        length=min(config.snapshot_chunk_bytes, meta.size - sending.offset),
        total=meta.size,
    )
    state.outbox.send(message)


def on_received(progress: Progress, message: SnapshotReply) -> None:
    """Continue where the follower's bytes end. An answer with the present offset changes
    nothing."""
    sending = progress.sending
    if sending is None or sending.meta.index != message.index:
        return
    if message.received != sending.offset and 0 <= message.received <= sending.meta.size:
        sending.offset = message.received
        progress.asked = False


def on_install_snapshot(state: RaftState, message: InstallSnapshot, at: Micros) -> None:
    """Figure 13, InstallSnapshot, receiver rules 2 to 8 (rule 1 is in `term_gate`)."""
    if not _is_well_formed(message):
        return
    follower = hear_leader(state, message.sender, at)
    if follower is None:
        return
    index = message.index
    if index <= state.commit or state.log.term_at(index) == message.snapshot_term:
        state.commit_to(index)
        follower.receiving = None
        _reply(state, message, message.total, done=True)
        return
    meta = SnapshotMeta(index, message.snapshot_term, message.voters, message.total)
    receiving = follower.receiving
    if receiving is None or receiving.meta.index < index:
        receiving = follower.receiving = Receiving(meta, bytearray())
    elif receiving.meta != meta:
        return  # a newer snapshot is being received
    if message.offset == len(receiving.data):
        receiving.data += message.chunk
    if len(receiving.data) < message.total:
        _reply(state, message, len(receiving.data), done=False)
    else:
        _install(state, follower, receiving)
        _reply(state, message, message.total, done=True)


def _is_well_formed(message: InstallSnapshot) -> bool:
    end = message.offset + message.length
    sized = len(message.chunk) == message.length and 0 <= message.offset <= end <= message.total
    return sized and message.snapshot_term <= message.term and bool(message.voters)


def _install(state: RaftState, follower: Follower, receiving: Receiving) -> None:
    follower.receiving = None
    state.log.install(receiving.meta)
    state.outbox.drop_acknowledgement()
    state.outbox.install(Snapshot(receiving.meta, bytes(receiving.data)))
    state.commit_to(receiving.meta.index)


def _reply(state: RaftState, message: InstallSnapshot, received: int, *, done: bool) -> None:
    """Answer how many bytes this member has. The answer *done* leaves only when that is durable."""
    config = state.config
    reply = SnapshotReply(
        config.group, config.node, message.sender, state.term, message.index, received, done
    )
    if done:
        state.outbox.send_after(reply)
    else:
        state.outbox.send(reply)
