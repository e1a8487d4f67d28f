"""`Effects`: what one turn of a replica asks its driver to do.

The driver carries out a turn's effects in this order (docs/explanation/architecture.md, The turn):

1. call `LogStore.append(writes)`: reads see the entries from here on,
2. send `messages` (entries may reach followers before this node's disk has them, thesis 10.2.1),
3. call `on_enqueued` of `enqueued`, `on_done` of `answers`, then of `answers_after_append`,
4. sync as the flush policy says. When the sync is done, send `messages_after` (a message to this
   node itself is submitted instead) and call `Replica.synced(persisted)`.

A read is an effect, too: `read` names a range of committed entries that the replica must apply and
does not have in memory. The driver reads them from the store and submits `EntriesRead`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.turn.tickets import ProduceTicket, Ticket
from ottla.log.store import Write
from ottla.raft.messages import Message
from ottla.raft.types import Entry, GroupId, LogIndex, Term


class Effects:
    """See the module's docstring. A field with its default asks for nothing and costs nothing; most
    turns set three fields."""

    messages: Sequence[Message] = ()
    writes: Sequence[Write] = ()
    answers: Sequence[Ticket] = ()
    answers_after_append: Sequence[Ticket] = ()
    enqueued: Sequence[ProduceTicket] = ()
    messages_after: Sequence[Message] = ()
    persisted: tuple[LogIndex, Term] | None = None
    """Index and term of the last entry of `writes`, for `Replica.synced` once it is durable."""
    read: tuple[LogIndex, LogIndex] | None = None
    """First and last index of the entries to read."""
    dropped: Sequence[Entry] = ()
    """Entries that `writes` replace by those of a newer leader, in order. The driver only reports
    them: a client that was told that they are stored has lost them (promise-K4)."""

    def __init__(self, group: GroupId):
        self.group = group


class EntriesRead:
    """Input: the entries that an `Effects.read` asked for, or the first of them. Empty if a
    snapshot has replaced them meanwhile."""

    __slots__ = ("entries",)

    def __init__(self, entries: Sequence[Entry]):
        self.entries = entries
