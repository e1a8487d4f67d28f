"""`Effects`: what one turn of a replica asks its driver to do.

The driver carries a turn's effects out in this order (hop 5 of design.md, section 3):

1. `LogStore.append(writes)`: reads see the entries from here on,
2. send `messages` (entries may reach followers before the own disk is done, thesis 10.2.1),
3. call `on_enqueued` of `enqueued`, `on_done` of `answers`, then of `answers_after_append`,
4. sync as the flush policy says; when it is done, send `messages_after` and call
   `Replica.synced(persisted)`.

Reads are effects too: `read` names a range of committed entries that the replica no longer holds
and needs for `apply`; the driver reads them from the store and submits `EntriesRead`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.commands import ProduceTicket, Ticket
from ottla.log.store import Write
from ottla.raft.messages import Message
from ottla.raft.types import Entry, GroupId, LogIndex, Term


class Effects:
    """See the module's text. A field left at its default asks for nothing."""

    __slots__ = (
        "answers",
        "answers_after_append",
        "dropped",
        "enqueued",
        "group",
        "messages",
        "messages_after",
        "persisted",
        "read",
        "writes",
    )

    def __init__(self, group: GroupId):
        self.group = group
        self.messages: list[Message] = []
        self.writes: list[Write] = []
        self.answers: Sequence[Ticket] = ()
        self.answers_after_append: Sequence[Ticket] = ()
        self.enqueued: Sequence[ProduceTicket] = ()
        self.messages_after: list[Message] = []
        self.persisted: tuple[LogIndex, Term] | None = None
        """The last entry of `writes` and its term, to be echoed once durable."""
        self.read: tuple[LogIndex, LogIndex] | None = None
        self.dropped: Sequence[Entry] = ()
        """Entries that `writes` replace by those of a newer leader, in order; nothing to do but to
        say so: whoever was told that they are stored has lost them (mission-K4)."""


class EntriesRead:
    """Input: the entries an `Effects.read` asked for (may be fewer than asked, never none)."""

    __slots__ = ("entries",)

    def __init__(self, entries: Sequence[Entry]):
        self.entries = entries
