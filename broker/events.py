"""What changed a cluster, in order: roles of replicas, and faults that were asked for.

For timelines, and for whoever asks at night what happened before it broke. Bounded: the newest
`EVENTS_KEPT` stay.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from ottla.broker.node import Node, monotonic_micros
from ottla.broker.seat import Seat
from ottla.raft.types import Micros

EVENTS_KEPT = 100_000


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """Something that changed the cluster: a role, or a fault that was asked for."""

    at: Micros
    """Monotonic clock."""
    kind: str
    """leader, follower, candidate..., or kill, restart, pause, resume, isolate, heal, failed."""
    node: int
    topic: str = ""
    partition: int = -1
    term: int = 0
    leader: int = 0


class EventLog:
    """The events of one cluster, oldest first."""

    def __init__(self) -> None:
        self._events: deque[ClusterEvent] = deque(maxlen=EVENTS_KEPT)

    def __iter__(self) -> Iterator[ClusterEvent]:
        return iter(tuple(self._events))

    def __len__(self) -> int:
        return len(self._events)

    def note(self, kind: str, node: int) -> None:
        """Something was done to a node."""
        self._events.append(ClusterEvent(monotonic_micros(), kind, node))

    def role_changed(self, life: Node, seat: Seat) -> None:
        """A replica of `life` has another role, term or known leader."""
        placed = life.controller_machine.partition_of(seat.group)
        topic, partition = ("", -1) if placed is None else (placed[0].name, placed[1].partition)
        soft, at = seat.soft, monotonic_micros()
        kind = soft.role.name.lower()
        self._events.append(
            ClusterEvent(at, kind, life.node, topic, partition, soft.term, soft.leader)
        )
