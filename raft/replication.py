"""The leader's side of replication: sending entries, taking answers, advancing the commit index.

`propose` sends nothing. `collect` runs when a `Ready` is taken and visits each follower once, so
all proposals of one turn leave as one AppendEntries per follower (several only if the limits split
them). Messages name ranges; the driver fills in the bytes, while the leader's own disk still writes
the same entries (thesis 10.2.1). A leader counts itself only after `persisted`.

Bytes in flight are not counted per message: they are the log between `match` and `next`, and the
log knows the size of every range.

The commit rule (paper 5.4.2, figure 8): an entry is committed when a majority holds it *and* it is
of the leader's own term; all earlier entries are committed with it. Entries of the leader's own
term begin at `term_start`, so the second condition is one comparison.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.raft import leadership, snapshot
from ottla.raft.messages import AppendEntries, AppendReply, SnapshotReply
from ottla.raft.progress import Progress, ProgressEvent, ProgressState
from ottla.raft.state import Leader, RaftState
from ottla.raft.types import Entry, EntryKind, LogIndex, Micros, Proposal


def take_office(state: RaftState, leader: Leader) -> None:
    """Append a new leader's first entry, which is empty. Entries of earlier terms may not be
    committed by counting; this entry commits them (paper 5.4.2, section 8; thesis 6.4)."""
    empty = Entry(leader.term_start, state.term, EntryKind.EMPTY, b"")
    state.log.append((empty,))
    state.outbox.append((empty,))


def propose(state: RaftState, proposals: Sequence[Proposal]) -> LogIndex:
    """Append proposals to the log (figure 2, leaders: *append entry to local log*). Returns the
    index of the first one."""
    assert proposals, f"{len(proposals)} proposals, need at least 1"
    first = index = state.log.last_index + 1
    term = state.term
    entries = []
    for proposal in proposals:
        kind = proposal.kind
        assert kind is not EntryKind.CONFIGURATION, f"entry {index}: voters are fixed"
        entries.append(Entry(index, term, kind, proposal.payload))
        index += 1
    state.log.append(entries)
    state.outbox.append(entries)
    return first


def collect(state: RaftState, leader: Leader) -> None:
    """Send to each follower what may be sent now. Arm the retransmission timer if an answer is
    outstanding."""
    last = state.log.last_index
    streaming = ProgressState.REPLICATE
    waiting = False
    for progress in leader.progress.values():
        if progress.state is streaming and progress.next > last:
            # Everything is sent and the timer is armed: the usual case when a commit makes the
            # leader ready.
            continue
        if progress.may_send(last):
            if progress.next < state.log.first_index and progress.sending is None:
                progress.move(ProgressEvent.COMPACTED)
            if progress.state is ProgressState.REPLICATE:
                _stream(state, progress, last)
            else:
                _ask(state, progress)
        if not waiting:
            waiting = progress.unanswered
    if waiting and leader.retransmit_at is None:
        leader.retransmit_at = state.clock + state.config.retransmit


def _stream(state: RaftState, progress: Progress, last: LogIndex) -> None:
    """In REPLICATE: send until everything is sent or the bytes in flight reach their limit."""
    log, config = state.log, state.config
    if last - progress.match <= config.max_append_entries:  # nearly always
        whole = log.bytes_between(progress.match, last)
        if whole <= config.max_append_bytes and whole <= config.max_inflight_bytes:
            _send(state, progress, last)
            progress.next = last + 1
            return
    sent = progress.next - 1
    in_flight = log.bytes_between(progress.match, sent) if sent > progress.match else 0
    while sent < last:
        window = config.max_inflight_bytes - in_flight
        end = log.range_end(sent + 1, min(window, config.max_append_bytes))
        end = min(end, sent + config.max_append_entries)
        if in_flight and log.bytes_between(sent, end) > window:
            return
        _send(state, progress, end)
        progress.next = end + 1
        if end < last:
            in_flight += log.bytes_between(sent, end)
        sent = end


def _ask(state: RaftState, progress: Progress) -> None:
    """In PROBE or SNAPSHOT: send the one message that may be unanswered."""
    log = state.log
    if progress.state is ProgressState.SNAPSHOT:
        snapshot.send_chunk(state, progress)
    else:
        end = progress.next - 1
        if end < log.last_index and not progress.bare:
            config = state.config
            end = log.range_end(progress.next, config.max_append_bytes)
            end = min(end, progress.next - 1 + config.max_append_entries)
        _send(state, progress, end)
    progress.asked = True


def _send(state: RaftState, progress: Progress, end: LogIndex) -> None:
    prev_index = progress.next - 1
    log = state.log
    prev_term = log.term_at(prev_index)
    assert prev_term is not None, (
        f"entry {prev_index} has no term, the log is {log.first_index}..{log.last_index}"
    )
    config = state.config
    message = AppendEntries(
        config.group,
        config.node,
        progress.node,
        state.term,
        prev_index,
        prev_term,
        end,
        state.commit,
    )
    state.outbox.send(message)


def on_append_reply(state: RaftState, message: AppendReply, at: Micros) -> None:
    """A follower reports up to where its log agrees, or where it may agree."""
    leader = state.role
    if not isinstance(leader, Leader):
        return
    progress = leader.progress[message.sender]
    progress.answered(at)
    if not message.success:
        _on_refused(state, progress, message)
    elif message.match <= state.log.last_index:
        _on_matched(state, leader, progress, message.match)
    if progress.may_send(state.log.last_index):
        state.outbox.dirty = True


def on_snapshot_reply(state: RaftState, message: SnapshotReply, at: Micros) -> None:
    """A follower reports how much of the snapshot it has, or that it has installed it."""
    leader = state.role
    if not isinstance(leader, Leader):
        return
    progress = leader.progress[message.sender]
    progress.answered(at)
    if not message.done:
        snapshot.on_received(progress, message)
    elif message.index <= state.commit:  # a leader sends snapshots of what is committed
        progress.asked = False
        _on_matched(state, leader, progress, message.index)
    if progress.may_send(state.log.last_index):
        state.outbox.dirty = True


def _on_matched(state: RaftState, leader: Leader, progress: Progress, match: LogIndex) -> None:
    """The follower holds all entries up to `match` durably (figure 2, leaders: *update
    matchIndex*).

    In PROBE, a success below the index that the probe asked about does not answer the probe.
    """
    rose = match > progress.match
    if rose:
        progress.match = match
    if progress.state is ProgressState.PROBE and match >= progress.next - 1:
        progress.move(ProgressEvent.MATCHED)
    elif progress.state is ProgressState.SNAPSHOT and match + 1 >= state.log.first_index:
        progress.move(ProgressEvent.MATCHED)
        progress.next = match + 1
    if match >= progress.next:
        progress.next = match + 1
    if rose:
        if match > state.commit:  # else a majority holds no more than it did
            advance_commit(state, leader)
        if leader.transfer is not None:
            state.outbox.dirty = True
        if leader.retransmit_at is not None and progress.next - 1 == match:
            leadership.rest(leader)


def _on_refused(state: RaftState, progress: Progress, message: AppendReply) -> None:
    """Go back to where the logs may agree (figure 2, leaders: *decrement nextIndex and retry*).

    Old refusals may arrive late, so only two kinds count. In PROBE: a refusal of the index that the
    probe asked about. If that index is at or below `match`, the follower has lost entries that it
    had confirmed, and `match` falls, so that they are sent again. (Its disk lost its tail, or it
    was removed and came back while an old answer was in flight.) In REPLICATE: a refusal of an
    index that is sent and not confirmed.
    """
    refused = message.match
    hint, _ = state.log.agreement_hint(message.hint_index, message.hint_term)
    hint = min(hint, refused - 1)
    if hint < 0:
        return  # the place before the first entry is never refused
    if progress.state is ProgressState.PROBE:
        if refused != progress.next - 1:
            return
        progress.match = min(progress.match, hint)
    elif progress.state is ProgressState.REPLICATE:
        if not progress.match < refused < progress.next:
            return
        hint = max(hint, progress.match)
    else:
        return
    progress.next = hint + 1
    progress.move(ProgressEvent.REFUSED)


def advance_commit(state: RaftState, leader: Leader) -> None:
    """Figure 2, leaders, last rule: commit what a majority holds, if it is of the leader's term."""
    index = state.held_by_majority(leader)
    if index > state.commit and state.commits_by_counting(leader, index):
        state.commit_to(index)
        if leader.barriers:
            leadership.finish_barriers(state, leader)
