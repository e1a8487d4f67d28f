"""Messages between the members of one Raft group, one class per kind.

The core sends `AppendEntries` and `InstallSnapshot` without bytes: they only name ranges. The
driver fills in `entries` or `chunk` from the log store before the message leaves. Names are those
of figure 2 of the Raft paper and of thesis chapters 3, 4, 6 and 9.

| message | sender | answers |
|---|---|---|
| RequestVote | candidate, or pre-candidate (`pre`) | VoteReply |
| AppendEntries | leader | AppendReply |
| Heartbeat | leader, for barriers; a driver that vouches for a leader | HeartbeatReply |
| InstallSnapshot | leader, chunk by chunk | SnapshotReply |
| TimeoutNow | leader, to its chosen successor | - |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ottla.raft.types import Entry, GroupId, LogIndex, NodeId, Term


@dataclass(slots=True)
class RequestVote:
    """Asks for a vote (figure 2) or, with `pre`, whether a vote would be given (thesis 9.6)."""

    group: GroupId
    sender: NodeId
    to: NodeId
    term: Term
    """With `pre`: the term the sender would start."""
    last_index: LogIndex
    last_term: Term
    pre: bool = False
    transfer: bool = False
    """The old leader asked for this election (thesis 3.10): the receiver's lease does not apply."""


@dataclass(slots=True)
class VoteReply:
    """Answers `RequestVote`. A grant leaves only after the vote is durable."""

    group: GroupId
    sender: NodeId
    to: NodeId
    term: Term
    granted: bool
    pre: bool = False


@dataclass(slots=True)
class AppendEntries:
    """Entries `prev_index + 1 .. last_index`. An empty range only asks whether the logs agree."""

    group: GroupId
    sender: NodeId
    to: NodeId
    term: Term
    prev_index: LogIndex
    prev_term: Term
    last_index: LogIndex
    commit: LogIndex
    entries: Sequence[Entry] = ()


@dataclass(slots=True)
class AppendReply:
    """Answers `AppendEntries`. A success leaves only after the entries are durable."""

    group: GroupId
    sender: NodeId
    to: NodeId
    term: Term
    success: bool
    match: LogIndex
    """On success: the last index up to which the logs agree. On failure: the refused prev_index."""
    hint_index: LogIndex = 0
    """On failure: the last index at which the logs may agree (thesis 3.5, fast back-up)."""
    hint_term: Term = 0


@dataclass(slots=True)
class Heartbeat:
    """The leader is alive in `term` and `commit` is committed (never beyond the receiver's match).

    `context` > 0 asks for an answer that counts for the barrier of that number (thesis 6.4).
    """

    group: GroupId
    sender: NodeId
    to: NodeId
    term: Term
    commit: LogIndex
    context: int = 0


@dataclass(slots=True)
class HeartbeatReply:
    """The sender follows `to` in `term`. `context` is that of the heartbeat."""

    group: GroupId
    sender: NodeId
    to: NodeId
    term: Term
    context: int = 0


@dataclass(slots=True)
class InstallSnapshot:
    """Bytes `offset .. offset + length` of the snapshot at (`index`, `snapshot_term`)."""

    group: GroupId
    sender: NodeId
    to: NodeId
    term: Term
    index: LogIndex
    snapshot_term: Term
    voters: tuple[NodeId, ...]
    offset: int
    length: int
    total: int
    chunk: bytes = b""


@dataclass(slots=True)
class SnapshotReply:
    """The receiver holds bytes `0 .. received` of that snapshot, or (`done`) has installed it."""

    group: GroupId
    sender: NodeId
    to: NodeId
    term: Term
    index: LogIndex
    received: int
    done: bool = False


@dataclass(slots=True)
class TimeoutNow:
    """Start an election at once (leadership transfer, thesis 3.10)."""

    group: GroupId
    sender: NodeId
    to: NodeId
    term: Term


Message: TypeAlias = (
    RequestVote
    | VoteReply
    | AppendEntries
    | AppendReply
    | Heartbeat
    | HeartbeatReply
    | InstallSnapshot
    | SnapshotReply
    | TimeoutNow
)
