"""`FastAppend`: handles a follower's append directly, from the message to the acknowledgement.

When a leader's entries arrive, the follower is usually idle: its inbox is empty, everything is
synced, and its log ends where the entries begin. Then its turn has only one outcome: append, sync,
acknowledge. So the turn is taken where the message arrives, without inbox, scheduler and `Effects`
value. `Replica.follow` decides whether a message is of this kind. All others go through the inbox,
and so does everything if the store's syncs take time, because then appends of many groups should
share one sync (`Runner.pump`).

Committed entries are applied together: by the next ordinary turn, which comes with the next
heartbeat that has a new commit index, or here if there are many of them (`replica.MOST_UNAPPLIED`).
"""

from __future__ import annotations

from ottla.broker.driver.group_commit import Syncer
from ottla.broker.driver.hosted import HostedReplica, Turn
from ottla.broker.driver.sender import Sender
from ottla.broker.turn.effects import Effects
from ottla.log.store import LogStore
from ottla.raft.messages import AppendEntries, AppendReply
from ottla.raft.types import Micros, NodeId


class FastAppend:
    """See the module's docstring. One per node."""

    __slots__ = ("_node", "_open", "_sender", "_store", "_syncer", "syncs", "turns")

    def __init__(
        self,
        node: NodeId,
        syncer: Syncer[Turn],
        *,
        sender: Sender,
        store: LogStore,
    ):
        self._node = node
        self._store = store
        self._sender = sender
        self._syncer = syncer
        self._open = store.immediate and syncer.each_turn
        self.turns = 0
        """How many turns were taken here."""
        self.syncs = 0
        """How many of these turns were durable at once."""

    def take(self, hosted: HostedReplica, message: AppendEntries, now: Micros) -> bool:
        """Take the follower's turn. False: nothing was done. Raises `StoreError`."""
        if hosted.dirty or hosted.urgent or hosted.trusting or not self._open:
            return False
        reply = hosted.replica.follow(message, now)
        if reply is None:
            return False
        self.turns += 1
        if self._store.extend(message.group, message.prev_index + 1, message.entries):
            self.syncs += 1
            hosted.replica.synced(message.last_index, message.term, now)
            self._sender.send(self._node, message.sender, reply)
        else:
            self._wait(hosted, message, reply)
        return True

    def _wait(self, hosted: HostedReplica, message: AppendEntries, reply: AppendReply) -> None:
        """The sync was not done at once: acknowledge when it has ended."""
        effects = Effects(message.group)
        effects.persisted = (message.last_index, message.term)
        effects.messages_after = (reply,)
        self._syncer.add((hosted, effects))
        self._syncer.poll()
