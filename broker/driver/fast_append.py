"""`FastAppend`: the short way of a follower's append, from the network to the acknowledgement.

A leader's entries usually find their follower idle: nothing in its inbox, nothing unsynced, the log
ends where they begin. Then its turn has one outcome (append, sync, acknowledge) that nothing else
can be part of, so it is taken where the message arrives, and neither an inbox nor the scheduler nor
an `Effects` value is needed for it. `Replica.follow` decides whether this is such a message;
anything else goes the general way, and so does everything on a store whose syncs take time, where
appends of many groups had better share one (`Runner.pump`).

What is committed is applied by the next turn of the general kind, which the next beat that tells of
a commit brings, or here when much has gathered (`replica.MOST_UNAPPLIED`): many small commits are
applied as one.
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
    """See the module's text. One per node."""

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
        """Turns taken here."""
        self.syncs = 0
        """Of which so many were durable at once."""

    def take(self, hosted: HostedReplica, message: AppendEntries, now: Micros) -> bool:
        """Take the follower's turn; False: nothing was done. Raises `StoreError`."""
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
        """The sync takes time after all: acknowledge when it has ended."""
        effects = Effects(message.group)
        effects.persisted = (message.last_index, message.term)
        effects.messages_after = (reply,)
        self._syncer.add((hosted, effects))
        self._syncer.poll()
