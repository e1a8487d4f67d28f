"""Snapshots on the wire: sent chunk by chunk, received in order, installed whole.

One chunk is on its way per follower. The answer says how many bytes the follower holds, and that
is where the leader goes on, forwards or back: so lost, repeated and overtaken chunks, and a
follower that restarted in the middle, need no rules of their own.

The leader's core sends chunks without bytes; the driver reads them from the stored snapshot. If a
newer snapshot takes its place meanwhile, sending begins again with that one.

A follower never installs what it does not need: a snapshot at or below its commit index, or one
that stands for an entry its log already has, is answered as done (figure 13 of the paper, receiver
6). An unfinished one is forgotten with the term: another leader's bytes may differ.
"""

from __future__ import annotations

from ottla.raft.following import hear_leader
from ottla.raft.messages import InstallSnapshot, SnapshotReply
from ottla.raft.progress import Progress, ProgressEvent, Sending
from ottla.raft.state import Follower, RaftState, Receiving
from ottla.raft.types import Micros, Snapshot, SnapshotMeta


def send_chunk(state: RaftState, progress: Progress) -> None:
    """Send the chunk at the offset the follower has reached."""
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
    """Go on where the follower is; an answer for the place being sent already says nothing."""
    sending = progress.sending
    if sending is None or sending.meta.index != message.index:
        return
    if message.received != sending.offset and 0 <= message.received <= sending.meta.size:
        sending.offset = message.received
        progress.asked = False


def on_install_snapshot(state: RaftState, message: InstallSnapshot, at: Micros) -> None:
    """Figure 13, InstallSnapshot receiver 2 to 8 (the term gate has seen to 1)."""
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
        return  # overtaken by a newer one
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
    """How far this member is; that it is done, only when that is durable."""
    config = state.config
    reply = SnapshotReply(
        config.group, config.node, message.sender, state.term, message.index, received, done
    )
    if done:
        state.outbox.send_after(reply)
    else:
        state.outbox.send(reply)
