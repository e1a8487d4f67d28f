"""Events of a cluster, in order: roles that changed, entries that were truncated, faults.

They are for timelines, and to see what happened before a failure. Their number is bounded: the
newest `EVENTS_KEPT` stay, or fewer if the truncated entries in them exceed `DROPPED_BYTES`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ottla.broker.event_loop.native import monotonic_micros
from ottla.broker.node.inspection import ReplicaView
from ottla.broker.node.node import Node
from ottla.broker.turn.watcher import Watcher
from ottla.raft.types import Entry, GroupId, Micros

EVENTS_KEPT = 100_000
"""Events; each takes about 200 bytes."""
DROPPED_BYTES = 32 << 20
"""Bytes of truncated entries, in all events together."""


class ClusterEvent(NamedTuple):
    """One change: a replica's role, a truncation, a fault, or the failure of a node."""

    at: Micros
    """Monotonic clock."""
    kind: str
    """leader, follower, candidate..., truncated, failed, or kill, restart, pause, resume, isolate,
    heal, disk stalled, disk failed, disk full, disk mended, left out."""
    node: int
    topic: str = ""
    partition: int = -1
    term: int = 0
    leader: int = 0
    dropped: tuple[Entry, ...] = ()
    """Of a truncation: the entries that were replaced by the log of the leader of `term`."""
    reason: str = ""
    """Of a failure: why the node has stopped by itself."""


class EventLog:
    """The events of one cluster, oldest first."""

    def __init__(self) -> None:
        self.now: Callable[[], Micros] = monotonic_micros
        """The clock of the cluster."""
        self._events: deque[ClusterEvent] = deque()
        self._dropped_bytes = 0
        self.forgotten = 0
        """How many of the oldest events were dropped for newer ones."""

    def __iter__(self) -> Iterator[ClusterEvent]:
        return iter(tuple(self._events))

    def __len__(self) -> int:
        return len(self._events)

    def note(self, kind: str, node: int) -> None:
        """Note what was done to a node."""
        self._add(ClusterEvent(self.now(), kind, node))

    def failed(self, life: Node, error: Exception) -> None:
        """Note that a node has stopped by itself, and why."""
        self._add(ClusterEvent(self.now(), "failed", life.node, reason=str(error)))

    def watch(self, life: Node) -> None:
        """From now on, note roles and truncations of this node's replicas."""
        life.watch(
            Watcher(
                role_changed=partial(self.role_changed, life),
                dropped=partial(self.truncated, life),
            )
        )

    def role_changed(self, life: Node, group: GroupId) -> None:
        """Note that a replica of `life` has another role, term or known leader."""
        replica = life.inspect().replica(group)
        if replica is not None:
            self._append(replica.soft.role.name.lower(), life, replica)

    def truncated(self, life: Node, group: GroupId, dropped: Sequence[Entry]) -> None:
        """Note entries of a replica of `life` that a newer leader's log replaced."""
        replica = life.inspect().replica(group)
        if replica is not None:
            self._append("truncated", life, replica, tuple(dropped))

    def _append(
        self, kind: str, life: Node, replica: ReplicaView, dropped: tuple[Entry, ...] = ()
    ) -> None:
        placed = life.inspect().placed(replica.group)
        topic, partition = ("", -1) if placed is None else (placed[0].name, placed[1].partition)
        soft, at = replica.soft, self.now()
        self._add(
            ClusterEvent(at, kind, life.node, topic, partition, soft.term, soft.leader, dropped)
        )

    def _add(self, event: ClusterEvent) -> None:
        events = self._events
        events.append(event)
        self._dropped_bytes += _bytes_of(event)
        while len(events) > EVENTS_KEPT or self._dropped_bytes > DROPPED_BYTES:
            if len(events) == 1:
                return  # The newest stays, however large it is.
            self._dropped_bytes -= _bytes_of(events.popleft())
            self.forgotten += 1


def _bytes_of(event: ClusterEvent) -> int:
    return sum(entry.size for entry in event.dropped)
