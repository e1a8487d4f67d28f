"""What a core does, and where it stands, in words for transcripts.

As in `ottla.raft.describe`: places in the log are written `index/term`, ranges `first..last`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.raft.core import RaftCore
from ottla.raft.describe import describe_message
from ottla.raft.ready import Ready
from ottla.raft.types import AppendRange, Entry, LogIndex, Term


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


def _span(first: LogIndex, last: LogIndex) -> str:
    return f"{first}" if first == last else f"{first}..{last}"
