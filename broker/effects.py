"""`Effects`: what one turn of a replica asks its driver to do.

The driver carries a turn's effects out in this order (hop 5 of design.md, section 3):

1. send `messages` (entries may reach followers before the own disk is done, thesis 10.2.1),
2. `LogStore.append(writes)`,
3. call `on_done` of `answers`, then of `answers_after_append`,
4. sync as the flush policy says; when it is done, send `messages_after` and call
   `Replica.synced(persisted)`.

Reads are effects too: `read` names a range of committed entries that the replica no longer holds
and needs for `apply`; the driver reads them from the store and submits `EntriesRead`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.commands import Ticket
from ottla.log.store import Write
from ottla.raft.messages import Message
from ottla.raft.types import Entry, GroupId, LogIndex, Micros, Term


class Effects:
    """See the module's text. A field left at its default asks for nothing."""

    __slots__ = (
        "answers",
        "answers_after_append",
        "group",
        "messages",
        "messages_after",
        "persisted",
        "read",
        "writes",
    )

    def __init__(self, group: GroupId):
        self.group = group
        self.messages: Sequence[Message] = ()
        self.writes: Sequence[Write] = ()
        self.answers: Sequence[Ticket] = ()
        self.answers_after_append: Sequence[Ticket] = ()
        self.messages_after: Sequence[Message] = ()
        self.persisted: tuple[LogIndex, Term] | None = None
        """The last entry of `writes` and its term, to be echoed once durable."""
        self.read: tuple[LogIndex, LogIndex] | None = None


class EntriesRead:
    """Input: the entries an `Effects.read` asked for (may be fewer than asked, never none)."""

    __slots__ = ("entries",)

    def __init__(self, entries: Sequence[Entry]):
        self.entries = entries


class Synced:
    """Input: everything up to `index`, whose entry had `term`, is durable."""

    __slots__ = ("at", "index", "term")

    def __init__(self, index: LogIndex, term: Term, at: Micros):
        self.index = index
        self.term = term
        self.at = at
