"""Messages between members as text for people: for transcripts, logs and reports.

One line per message: `sender>receiver Kind field=value ...`; fields at their default are left out.
A place in the log is written `index/term`, a range `first..last`. No code decides by these texts.
They contain no times, so the same run gives the same text on any machine.
"""

from __future__ import annotations

from collections.abc import Callable

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
from ottla.raft.types import LogIndex, Matched


def describe_message(message: Message) -> str:
    """One line: `1>2 AppendEntries term=3 prev=4/2 entries=5..6 commit=4`."""
    detail = _DETAILS[type(message)](message)
    kind = type(message).__name__
    return f"{message.sender}>{message.to} {kind} term={message.term}{detail}"


def _flags(**flags: bool) -> str:
    return "".join(f" {name}" for name, is_set in flags.items() if is_set)


def _span(first: LogIndex, last: LogIndex) -> str:
    if last < first:
        return "none"
    return f"{first}" if first == last else f"{first}..{last}"


def _request_vote(m: RequestVote) -> str:
    return f" last={m.last_index}/{m.last_term}" + _flags(pre=m.pre, transfer=m.transfer)


def _vote_reply(m: VoteReply) -> str:
    return (" granted" if m.granted else " refused") + _flags(pre=m.pre)


def _append_entries(m: AppendEntries) -> str:
    entries = _span(m.prev_index + 1, m.last_index)
    return f" prev={m.prev_index}/{m.prev_term} entries={entries} commit={m.commit}"


def _append_reply(m: AppendReply) -> str:
    if m.success:
        return f" match={m.match}"
    return f" refused={m.match} hint={m.hint_index}/{m.hint_term}"


def _heartbeat(m: Heartbeat) -> str:
    return f" commit={m.commit}" + (f" context={m.context}" if m.context else "")


def _heartbeat_reply(m: HeartbeatReply) -> str:
    return f" context={m.context}" if m.context else ""


def _install_snapshot(m: InstallSnapshot) -> str:
    last = m.offset + m.length
    return f" snapshot={m.index}/{m.snapshot_term} bytes={m.offset}..{last} of {m.total}"


def _snapshot_reply(m: SnapshotReply) -> str:
    return f" snapshot={m.index} received={m.received}" + _flags(done=m.done)


def _timeout_now(_: TimeoutNow) -> str:
    return ""


_DETAILS: dict[type, Callable[[Matched], str]] = {
    RequestVote: _request_vote,
    VoteReply: _vote_reply,
    AppendEntries: _append_entries,
    AppendReply: _append_reply,
    Heartbeat: _heartbeat,
    HeartbeatReply: _heartbeat_reply,
    InstallSnapshot: _install_snapshot,
    SnapshotReply: _snapshot_reply,
    TimeoutNow: _timeout_now,
}
