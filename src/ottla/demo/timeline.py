"""From events to a timeline: which node led when, and for how long there was no leader. Pure.

**Theory.** The leader of a partition is the node that became leader in the highest term so far. It
leads from that event until a fault takes the node away (kill, pause, isolate), or until it stops
leading by itself. From then on there is no leader until the leader of a higher term is elected: a
*failover*. If a paused leader resumes before another was elected, it goes on leading, and there is
no failover. A leader that transfers its leadership, or stops leading without a fault of its node,
makes a *hand-over*.

A leader that is cut off may believe for a while that it leads. It can commit nothing, so its time
counts as time without a leader.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from ottla.raft.types import Micros, NodeId, Term

TAKES_AWAY = ("kill", "pause", "isolate")
BRINGS_BACK = ("resume", "heal")
NO_ROLES = ("leader", "truncated")
"""Events of a replica that do not end its leadership."""


class Event(Protocol):
    """The fields of `ottla.broker.cluster.events.ClusterEvent` that are used here."""

    @property
    def at(self) -> Micros:
        """When it happened."""

    @property
    def kind(self) -> str:
        """A role, or a fault."""

    @property
    def node(self) -> NodeId:
        """The node whose replica changed its role, or that the fault hit."""

    @property
    def topic(self) -> str:
        """The topic, if it is about a role."""

    @property
    def partition(self) -> int:
        """The partition, if it is about a role."""

    @property
    def term(self) -> Term:
        """The term, if it is about a role."""


class Reign(NamedTuple):
    """One leader's time."""

    partition: int
    node: NodeId
    term: Term
    start: Micros
    end: Micros


class Change(NamedTuple):
    """A change from one leader to the next; `cause` is kill, pause, isolate or hand-over."""

    partition: int
    cause: str
    old: NodeId
    new: NodeId
    term: Term
    """Term of the new leader."""
    start: Micros
    """When the old leader stopped leading."""
    end: Micros
    """When the new one was elected."""

    @property
    def failover(self) -> bool:
        """Whether the old leader had failed."""
        return self.cause != "hand-over"

    @property
    def micros(self) -> Micros:
        """Time without a leader."""
        return self.end - self.start


class Timeline(NamedTuple):
    """The leaders of one partition, and the changes between them."""

    reigns: list[Reign]
    changes: list[Change]


def timeline(events: Iterable[Event], topic: str, partition: int, end: Micros) -> Timeline:
    """Build the timeline of one partition up to `end`."""
    builder = _Builder(partition)
    for event in events:
        if event.at > end:
            break
        if event.kind in TAKES_AWAY or event.kind in BRINGS_BACK:
            builder.fault(event)
        elif event.topic == topic and event.partition == partition:
            builder.role(event)
    return builder.finish(end)


class _Builder:
    def __init__(self, partition: int):
        self.partition = partition
        self.node: NodeId = 0
        self.term: Term = 0
        self.start: Micros = 0
        self.gone: Micros | None = 0
        """Since when there is no leader; None while there is one."""
        self.cause = ""
        self.line = Timeline([], [])

    def fault(self, event: Event) -> None:
        """Take in a fault of a whole node."""
        if event.node != self.node:
            return
        if event.kind in TAKES_AWAY and self.gone is None:
            self._close(event.at, event.kind)
        elif event.kind in BRINGS_BACK and self.gone is not None and self.cause in TAKES_AWAY:
            self.start, self.gone = event.at, None

    def role(self, event: Event) -> None:
        """Take in a change of the role of a replica."""
        if event.kind == "leader" and event.term > self.term:
            self._crown(event)
        elif event.node == self.node and self.gone is None and event.kind not in NO_ROLES:
            self._close(event.at, "hand-over")

    def _crown(self, event: Event) -> None:
        if self.gone is None:
            self._close(event.at, "hand-over")
        assert self.gone is not None, "closed"
        if self.node:
            change = Change(
                self.partition, self.cause, self.node, event.node, event.term, self.gone, event.at
            )
            self.line.changes.append(change)
        self.node, self.term, self.start, self.gone = event.node, event.term, event.at, None

    def _close(self, at: Micros, cause: str) -> None:
        reign = Reign(self.partition, self.node, self.term, self.start, at)
        self.line.reigns.append(reign)
        self.gone, self.cause = at, cause

    def finish(self, end: Micros) -> Timeline:
        """The timeline as of `end`."""
        if self.gone is None:
            self._close(end, "end")
        return self.line
