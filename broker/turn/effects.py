"""`Effects`: what one turn of a replica asks its driver to do.

The driver carries a turn's effects out in this order (docs/explanation/architecture.md, The turn):

1. `LogStore.append(writes)`: reads see the entries from here on,
2. send `messages` (entries may reach followers before the own disk is done, thesis 10.2.1),
3. call `on_enqueued` of `enqueued`, `on_done` of `answers`, then of `answers_after_append`,
4. sync as the flush policy says; when it is done, send `messages_after` (submit what is addressed
   to this node) and call `Replica.synced(persisted)`.

Reads are effects too: `read` names a range of committed entries that the replica no longer holds
and needs for `apply`; the driver reads them from the store and submits `EntriesRead`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.turn.tickets import ProduceTicket, Ticket
from ottla.log.store import Write
from ottla.raft.messages import Message
from ottla.raft.types import Entry, GroupId, LogIndex, Term


class Effects:
    """See the module's text. A field left at its default asks for nothing, and costs nothing: most
    turns set three of them."""

    messages: Sequence[Message] = ()
    writes: Sequence[Write] = ()
    answers: Sequence[Ticket] = ()
    answers_after_append: Sequence[Ticket] = ()
    enqueued: Sequence[ProduceTicket] = ()
    messages_after: Sequence[Message] = ()
    persisted: tuple[LogIndex, Term] | None = None
    """The last entry of `writes` and its term, to be echoed once durable."""
    read: tuple[LogIndex, LogIndex] | None = None
    dropped: Sequence[Entry] = ()
    """Entries that `writes` replace by those of a newer leader, in order; nothing to do but to say
    so: whoever was told that they are stored has lost them (promise-K4)."""

    def __init__(self, group: GroupId):
        self.group = group


class EntriesRead:
    """Input: the entries an `Effects.read` asked for, or the first of them; none where a snapshot
    has overtaken the question."""

    __slots__ = ("entries",)

    def __init__(self, entries: Sequence[Entry]):
        self.entries = entries
