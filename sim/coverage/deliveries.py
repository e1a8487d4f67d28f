"""Deliveries: how often messages between nodes arrive after leaders have changed.

What is harmless within a term may not be after it: an acknowledgement of entries that were cut
since, an answer to an older barrier. So messages are counted by type, and by how many leaders were
elected between their sending and their arrival. A Raft message counts the leaders of its group;
heartbeats between nodes, which vouch for many groups, those of all; a controller's call those of
the controller's group. What waits before a frozen process arrives when that goes on.
"""

from __future__ import annotations

from typing import Any, TypeAlias, get_args

from ottla.broker.controller.client import ControlRequest, ControlResponse
from ottla.broker.heartbeats.heartbeats import Beat, BeatAck
from ottla.raft.messages import Message, RequestVote, VoteReply
from ottla.raft.types import NodeId
from ottla.sim.history.history import CONTROLLER_PARTITION

ARRIVED, ONE, MORE = "arrived", "after 1 change", "after 2 or more"
LATENESS = (ARRIVED, ONE, MORE)
Delivery: TypeAlias = tuple[str, str]
"""The name of a type of messages (`TYPES`), and how late it was (`LATENESS`)."""
_ASKS = (RequestVote, VoteReply)
_CALLS = (ControlRequest, ControlResponse)
_BEATS = (Beat, BeatAck)
TYPES: tuple[str, ...] = (
    *(each.__name__ for each in get_args(Message)),
    *(f"{each.__name__}, pre-vote" for each in _ASKS),
    *(each.__name__ for each in (*_BEATS, *_CALLS)),
)
DELIVERIES: tuple[Delivery, ...] = tuple((name, late) for name in TYPES for late in LATENESS)


class Deliveries:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.counts: dict[Delivery, int] = {}
        self._leaders: dict[int, int] = {}
        """How many leaders each partition has had."""
        self._all = 0
        self._sent: dict[tuple[int, NodeId], tuple[Any, int]] = {}
        """Every message that was sent, by its identity and receiver, and how many leaders there had
        been by then. A message that is kept here keeps its identity."""

    def elected(self, partition: int) -> None:
        """A partition has a new leader."""
        self._leaders[partition] = self._leaders.get(partition, 0) + 1
        self._all += 1

    def sent(self, to: NodeId, message: Any, partition: int | None) -> None:
        """A message leaves; what a link has held up leaves only once. `partition`: that of its
        group; None: it has no group."""
        self._sent.setdefault((id(message), to), (message, self._changes(message, partition)))

    def arrived(self, to: NodeId, message: Any, partition: int | None) -> None:
        """A message arrives, maybe not for the first time."""
        found = self._sent.get((id(message), to))
        if found is not None:
            changes = self._changes(message, partition) - found[1]
            self._count(message, (ARRIVED, ONE, MORE)[min(changes, 2)])

    def _changes(self, message: Any, partition: int | None) -> int:
        if isinstance(message, _CALLS):
            return self._leaders.get(CONTROLLER_PARTITION, 0)
        return self._all if partition is None else self._leaders.get(partition, 0)

    def _count(self, message: Any, late: str) -> None:
        name = type(message).__name__
        if isinstance(message, _ASKS) and message.pre:
            name += ", pre-vote"
        for each in dict.fromkeys((ARRIVED, late)):
            self.counts[name, each] = self.counts.get((name, each), 0) + 1
