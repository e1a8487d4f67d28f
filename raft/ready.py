"""What one round of the core asks its caller to do, and in which order.

The caller takes a `Ready`, then:

1. sends `messages` at once (a leader sends entries to followers while its own disk still works,
   thesis 10.2.1),
2. makes `hard_state`, `snapshot` and `append` durable, in one transaction,
3. sends `messages_after`: votes and acknowledgements that speak of what step 2 wrote, *or of what
   an earlier `Ready` wrote* (figure 2: "respond after entries are durable"). So they leave when
   this write and every one before it are durable, also if this one is empty. One may be addressed
   to the member itself (its vote, in a group of one) and is stepped instead,
4. tells the core `persisted(index, term)` for the last entry written.

Several in a row may be done as one: all writes in their order in one transaction, then all
`messages_after`. But the bytes that a message names are those of the log as its own `Ready` left
it, so they are read before another message is stepped: entries of a newer leader that took their
place may look well formed to the receiver, behind a `prev_term` that is not theirs.

`commit`, `barriers` and `soft` need no disk: the state machine may apply entries up to `commit`
as soon as it has them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ottla.raft.messages import Message
from ottla.raft.roles import Role
from ottla.raft.types import AppendRange, HardState, LogIndex, NodeId, Snapshot, Term


@dataclass(frozen=True, slots=True)
class SoftState:
    """Who leads, as this node sees it; lost in a crash without harm."""

    role: Role
    term: Term
    leader: NodeId


@dataclass(frozen=True, slots=True)
class BarrierOutcome:
    """End of one leadership barrier (thesis 6.4).

    `index` is the commit index that was current when the barrier was asked for and is now proved
    to be the leader's own; None when leadership could not be proved.
    """

    ticket: int
    index: LogIndex | None


@dataclass(slots=True)
class Ready:
    """Effects of the core since the last `Ready`. Fields left at their default ask for nothing."""

    hard_state: HardState | None = None
    snapshot: Snapshot | None = None
    """A snapshot received whole: replaces the log up to its index."""
    append: list[AppendRange] = field(default_factory=list)
    """In this order; a later range may replace the tail of an earlier one."""
    messages: list[Message] = field(default_factory=list)
    messages_after: list[Message] = field(default_factory=list)
    commit: LogIndex = 0
    """The commit index, always set; it never goes back."""
    soft: SoftState | None = None
    """Set when role, term or known leader changed."""
    barriers: list[BarrierOutcome] = field(default_factory=list)
