"""`Ready`: what the core asks its caller to do, and in which order.

The caller takes a `Ready`, then it

1. sends `messages` at once (a leader sends entries to followers while its own disk still writes
   them, thesis 10.2.1),
2. makes `hard_state`, `snapshot` and `append` durable, in one transaction,
3. sends `messages_after`: votes and acknowledgements of what step 2 *or an earlier `Ready`* wrote
   (figure 2: "respond after entries are durable"). So they leave when this write and every earlier
   write are durable, also if this write is empty. A message to the member itself (its vote, in a
   group of one) is stepped instead,
4. calls `persisted(index, term)` for the last entry written.

The caller may carry out several `Ready` together: all writes in their order in one transaction,
then all `messages_after`. But it must read the bytes that a message names before it steps another
message. Otherwise entries of a newer leader may have replaced them, and the receiver could not see
that they do not belong to the message's `prev_term`.

`commit`, `barriers` and `soft` need no disk: the state machine may apply entries up to `commit` as
soon as it has them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ottla.raft.messages import Message
from ottla.raft.roles import Role
from ottla.raft.types import AppendRange, HardState, LogIndex, NodeId, Snapshot, Term


@dataclass(frozen=True, slots=True)
class SoftState:
    """Role, term and leader as this member sees them. A crash may lose them without harm."""

    role: Role
    term: Term
    leader: NodeId


@dataclass(frozen=True, slots=True)
class BarrierOutcome:
    """The outcome of one leadership barrier (thesis 6.4).

    `index`: this member led when the barrier was asked for, and this was its commit index then (see
    `leadership.begin_barrier`). None: the leadership could not be proved.
    """

    ticket: int
    index: LogIndex | None


@dataclass(slots=True)
class Ready:
    """Effects of the core since the last `Ready`. A field with its default asks for nothing."""

    hard_state: HardState | None = None
    snapshot: Snapshot | None = None
    """A snapshot that was received completely: it replaces the whole log."""
    append: list[AppendRange] = field(default_factory=list)
    """Write them in this order; a later range may replace the tail of an earlier one."""
    messages: list[Message] = field(default_factory=list)
    messages_after: list[Message] = field(default_factory=list)
    commit: LogIndex = 0
    """The commit index, always set; it never goes back."""
    soft: SoftState | None = None
    """Set if the role, the term or the known leader has changed."""
    barriers: list[BarrierOutcome] = field(default_factory=list)
