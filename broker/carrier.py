"""`Carrier`: fills in what a message of Raft only names, entries and chunks, and sends it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ottla.log.errors import CompactedError
from ottla.log.store import LogStore, Write
from ottla.raft.messages import AppendEntries, InstallSnapshot, Message
from ottla.raft.types import NodeId


class Sender(Protocol):
    """Whoever carries messages to other nodes."""

    def send(self, sender: NodeId, to: NodeId, message: object) -> None:
        """Deliver, late or never; in order for each pair of nodes."""


class Transport(Sender, Protocol):
    """Connects nodes: one process's own network, or the simulator's."""

    def attach(self, node: NodeId, receive: Callable[[NodeId, Any], None], /) -> None:
        """Messages to `node` go to `receive(sender, message)` from now on."""

    def detach(self, node: NodeId, /) -> None:
        """Nothing reaches `node` any more."""


WHOLE_RANGE = 1 << 62
"""Bytes read for one message: the core has bounded its range (`RaftConfig.max_append_bytes`), and a
message with less than it names is ignored."""


class Carrier:
    """Sends for `node`; reads bytes from `store`."""

    __slots__ = ("_node", "_sender", "_store")

    def __init__(self, node: NodeId, store: LogStore, sender: Sender):
        self._node = node
        self._store = store
        self._sender = sender

    def send(self, message: Message, written: Sequence[Write] = ()) -> None:
        """Fill in and send; a message that cannot be filled in is dropped, for the core will hear
        of the compaction and send the snapshot instead. `written`: by the same turn."""
        if isinstance(message, AppendEntries):
            if message.last_index > message.prev_index and not self._fill_in(message, written):
                return
        elif isinstance(message, InstallSnapshot):
            snapshot = self._store.snapshot(message.group)
            if snapshot is None or snapshot.meta.index != message.index:
                return
            message.chunk = snapshot.data[message.offset : message.offset + message.length]
        self._sender.send(self._node, message.to, message)

    def _fill_in(self, message: AppendEntries, written: Sequence[Write]) -> bool:
        """What was just written is handed on, not read back. False: the range is compacted."""
        first, last = message.prev_index + 1, message.last_index
        for write in written:
            if write.first == first and write.entries and write.entries[-1].index == last:
                message.entries = write.entries
                return True
        try:
            message.entries = self._store.read(message.group, first, last, WHOLE_RANGE)
        except CompactedError:
            return False
        return True
