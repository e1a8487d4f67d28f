"""What a core says and does, in words for people: transcripts, logs, reports, diagrams.

One line per message, `sender>receiver Kind field=value ...`, fields at their default left out;
places in the log are written `index/term`, ranges `first..last`. Nothing decides by these texts,
and they name no times: the same run reads the same on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ottla.raft.core import RaftCore
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
from ottla.raft.progress import PROGRESS
from ottla.raft.ready import Ready
from ottla.raft.roles import TRANSITIONS
from ottla.raft.types import AppendRange, Entry, LogIndex, Term


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


_DETAILS: dict[type, Callable[[Any], str]] = {
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


def describe_entries(entries: Iterable[Entry]) -> str:
    """Entries as `index/term kind`, separated by commas."""
    return ", ".join(f"{e.index}/{e.term} {e.kind.name.lower()}" for e in entries)


def describe_range(appended: AppendRange) -> str:
    """What a write does to the log: from where, and with which entries."""
    return f"from {appended.first}: {describe_entries(appended.entries)}"


def describe_ready(ready: Ready) -> list[str]:
    """A line for everything a `Ready` asks for, in the order in which it is to be done."""
    lines = []
    if ready.soft is not None:
        soft = ready.soft
        lines.append(f"role {soft.role.value} term={soft.term} leader={soft.leader}")
    lines.extend(f"send {describe_message(message)}" for message in ready.messages)
    if ready.hard_state is not None:
        lines.append(f"write term={ready.hard_state.term} vote={ready.hard_state.vote}")
    if ready.snapshot is not None:
        meta = ready.snapshot.meta
        lines.append(f"write snapshot {meta.index}/{meta.term}, {meta.size} bytes")
    lines.extend(f"write {describe_range(appended)}" for appended in ready.append)
    lines.extend(f"then send {describe_message(message)}" for message in ready.messages_after)
    lines.extend(
        f"barrier {outcome.ticket} "
        + ("failed" if outcome.index is None else f"holds at {outcome.index}")
        for outcome in ready.barriers
    )
    return lines


def describe_log(core: RaftCore) -> str:
    """The log as runs of one term each: `(3/1) 4..7/2 8/3`, the boundary in parentheses."""
    log = core.log
    boundary = log.first_index - 1
    runs: list[tuple[LogIndex, LogIndex, Term]] = []
    for index in range(log.first_index, log.last_index + 1):
        term = log.term_at(index)
        assert term is not None, f"entry {index} of {log.first_index}..{log.last_index} has no term"
        if runs and runs[-1][2] == term:
            runs[-1] = (runs[-1][0], index, term)
        else:
            runs.append((index, index, term))
    start = [f"({boundary}/{log.term_at(boundary)})"] if boundary else []
    return " ".join([*start, *(f"{_span(first, last)}/{term}" for first, last, term in runs)])


def describe_core(core: RaftCore) -> list[str]:
    """A member's state: one line for itself, one for its log, one per follower if it leads."""
    state = f"{core.config.node} {core.role.value} term={core.term} vote={core.vote}"
    state += f" leader={core.leader} commit={core.commit}"
    if core.transferring_to:
        state += f" transferring to {core.transferring_to}"
    lines = [state, f"  log {describe_log(core)} persisted={core.log.persisted}"]
    lines.extend(
        f"  follower {node} {view.state.value} match={view.match} next={view.next}"
        for node, view in core.progress().items()
    )
    return lines


def role_diagram() -> str:
    """The table of roles as a Mermaid state diagram."""
    return _diagram((row.source.value, row.trigger.value, row.target.value) for row in TRANSITIONS)


def progress_diagram() -> str:
    """The table of progress as a Mermaid state diagram."""
    return _diagram((row.source.value, row.event.value, row.target.value) for row in PROGRESS)


def _diagram(rows: Iterable[tuple[str, str, str]]) -> str:
    """One arrow per pair of states, labelled with everything that leads along it."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for source, label, target in rows:
        arrows.setdefault((source.replace("-", "_"), target.replace("-", "_")), []).append(label)
    lines = ["stateDiagram-v2"]
    lines.extend(f"    {a} --> {b}: {', '.join(labels)}" for (a, b), labels in arrows.items())
    return "\n".join(lines) + "\n"
