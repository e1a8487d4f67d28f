"""`MessageSender`: fills entries and chunks into Raft's messages, which only name them, and sends.

Entries that this turn has written are taken from memory. Others are read back from the store, which
may have to wait (`reading.py`). Later messages with entries then wait, too, because a message must
not overtake an earlier one.
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
    """Sends messages to other nodes."""

    def send(self, sender: NodeId, to: NodeId, message: object) -> None:
        """Send a message. It may arrive late or never; each pair of nodes keeps its order."""


class Transport(Sender, Protocol):
    """Connects nodes: the network inside one process, or that of the simulator."""

    def attach(self, node: NodeId, receive: Callable[[NodeId, object], None], /) -> None:
        """From now on call `receive(sender, message)` for messages to `node`."""

    def detach(self, node: NodeId, /) -> None:
        """From now on no message reaches `node`."""


WHOLE_RANGE = 1 << 62
"""Limit of the bytes read for one message: none, because the core has bounded its range
(`RaftConfig.max_append_bytes`), and a follower ignores a message with fewer entries than it
names."""
SNAPSHOTS_KEPT = 4
"""How many snapshots stay in memory for their next chunks."""


class MessageSender:
    """Sends for `node`. It reads snapshots from `store`, and entries when `reading` allows it.
    `term_of` returns the term of this node's replica of a group."""

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
        """Fill in and send a message. `written`: the writes of the same turn. A message whose
        entries are compacted is dropped: the core will send the snapshot instead."""
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
        """The snapshot of a chunk; None if it is no longer the latest. The store reads and checks a
        snapshot as a whole, so it is kept from its first chunk to its last (`SNAPSHOTS_KEPT`)."""
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
        """Fill in entries from the store and send, unless this node's replica has another term now:
        then its log may have changed."""
        group, first = message.group, message.prev_index + 1
        if self._term_of(group) != message.term:
            return
        with suppress(CompactedError):
            message.entries = self._store.read(group, first, message.last_index, WHOLE_RANGE)
            self._sender.send(self._node, message.to, message)


def _handed_on(message: AppendEntries, written: Sequence[Write]) -> bool:
    """Fill in the entries if this turn has written them. False: it has not."""
    first, last = message.prev_index + 1, message.last_index
    for write in written:
        if write.first == first and write.entries and write.entries[-1].index == last:
            message.entries = write.entries
            return True
    return False
