"""`MessageSender`: fills in what a message of Raft only names, entries and chunks, and sends it.

What was just written is handed on. What is read back from the store waits its turn (`reading.py`),
and so does what comes behind it: a message must not overtake the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from ottla.broker.driver.reading import Reading
from ottla.log.errors import CompactedError
from ottla.log.store import LogStore, Write
from ottla.raft.messages import AppendEntries, InstallSnapshot, Message
from ottla.raft.types import GroupId, NodeId, Snapshot, Term


class Sender(Protocol):
    """Whoever carries messages to other nodes."""

    def send(self, sender: NodeId, to: NodeId, message: object) -> None:
        """Deliver, late or never; in order for each pair of nodes."""


class Transport(Sender, Protocol):
    """Connects nodes: one process's own network, or the simulator's."""

    def attach(self, node: NodeId, receive: Callable[[NodeId, object], None], /) -> None:
        """Messages to `node` go to `receive(sender, message)` from now on."""

    def detach(self, node: NodeId, /) -> None:
        """Nothing reaches `node` any more."""


WHOLE_RANGE = 1 << 62
"""Bytes read for one message: the core has bounded its range (`RaftConfig.max_append_bytes`), and a
message with less than it names is ignored."""
SNAPSHOTS_KEPT = 4
"""Snapshots in memory for the sake of their next chunks."""


class MessageSender:
    """Sends for `node`; reads bytes from `store`, entries as `reading` lets it. `term_of`: of the
    replica of a group here."""

    __slots__ = ("_line", "_node", "_reading", "_sender", "_snapshots", "_store", "_term_of")

    def __init__(
        self,
        node: NodeId,
        store: LogStore,
        sender: Sender,
        *,
        reading: Reading,
        term_of: Callable[[GroupId], Term | None],
    ):
        self._node = node
        self._store = store
        self._sender = sender
        self._reading = reading
        self._line = reading.waiting
        self._snapshots: dict[GroupId, Snapshot] = {}
        self._term_of = term_of

    def send(self, message: Message, written: Sequence[Write] = ()) -> None:
        """Fill in and send; a message that cannot be filled in is dropped, for the core will hear
        of the compaction and send the snapshot instead. `written`: by the same turn."""
        if isinstance(message, AppendEntries):
            if message.last_index > message.prev_index and not _handed_on(message, written):
                count = message.last_index - message.prev_index
                self._reading.run(count, partial(self._read, message))
                return
            if self._line:
                self._reading.run(0, partial(self._sender.send, self._node, message.to, message))
                return
        elif isinstance(message, InstallSnapshot):
            snapshot = self._snapshot(message)
            if snapshot is None:
                return
            message.chunk = snapshot.data[message.offset : message.offset + message.length]
        self._sender.send(self._node, message.to, message)

    def _snapshot(self, message: InstallSnapshot) -> Snapshot | None:
        """The one that a chunk is of, if it is still the latest. It is read and checked as a whole,
        so it is kept from the first chunk to the last, unless many are sent at once."""
        group, kept = message.group, self._snapshots
        snapshot = kept.pop(group, None)
        if snapshot is None or snapshot.meta.index != message.index:
            snapshot = self._store.snapshot(group)
        if snapshot is None or snapshot.meta.index != message.index:
            return None
        if message.offset + message.length < message.total:
            kept[group] = snapshot
            if len(kept) > SNAPSHOTS_KEPT:
                del kept[next(iter(kept))]
        return snapshot

    def _read(self, message: AppendEntries) -> None:
        """Fill in from the store, and send, unless who asked for it leads no more: its log may be
        another one by now."""
        group, first = message.group, message.prev_index + 1
        if self._term_of(group) != message.term:
            return
        with suppress(CompactedError):
            message.entries = self._store.read(group, first, message.last_index, WHOLE_RANGE)
            self._sender.send(self._node, message.to, message)


def _handed_on(message: AppendEntries, written: Sequence[Write]) -> bool:
    """Fill in what was just written, which is not read back. False: it was not."""
    first, last = message.prev_index + 1, message.last_index
    for write in written:
        if write.first == first and write.entries and write.entries[-1].index == last:
            message.entries = write.entries
            return True
    return False
