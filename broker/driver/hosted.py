"""What a runner keeps about each replica and about each turn in progress.

A replica knows nothing of its node. The parts of the driver keep what they know about a replica in
its `HostedReplica`. Each field is written by one part of the driver only; the others read it
(`tests/tidy/test_owners.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ottla.broker.heartbeats.heartbeats import Heartbeats
from ottla.broker.turn.effects import Effects
from ottla.broker.turn.replica import Replica
from ottla.raft.roles import Role
from ottla.raft.types import GroupId, LogIndex, Micros, NodeId, Term


def unheard(*_: object) -> None:
    """The default callback: does nothing."""


class HostedReplica:
    """A replica in its runner, and what the parts of the driver keep about it."""

    __slots__ = (
        "applied",
        "commit",
        "dirty",
        "gone",
        "group",
        "leads",
        "look_at",
        "replica",
        "soft",
        "term",
        "told",
        "trusting",
        "urgent",
    )

    def __init__(self, replica: Replica, urgent: bool):
        self.replica = replica
        self.group: GroupId = replica.group
        # Written by `Runner`.
        self.dirty = False
        """The replica will get a turn in the next pump."""
        self.gone = False
        """The replica was removed: it takes no more turns, even if a part still refers to it."""
        # Written by `Notices`: the values that the rest of the node was last told.
        self.soft = replica.soft
        self.leads = False
        self.applied: LogIndex = 0
        self.commit: LogIndex = 0
        self.term: Term = replica.core.term
        # Written by `DeadlineWatch`.
        self.look_at: Micros = 0
        """When its deadlines are looked at next; a time in the past: it is not in the queue."""
        self.told: tuple[NodeId, Term, Micros] | None = None
        """What heartbeats vouched for when the core was last told: leader, term, and when heard."""
        self.trusting = False
        """Whether it trusts its peers; see `deadlines.py`."""
        # Never changed.
        self.urgent = urgent
        """The node waits for what this replica applies (`Runner.report_to`), so its followers get a
        new commit index at once, not with the next heartbeat."""


def term_of(hosted_replicas: Mapping[GroupId, HostedReplica], group: GroupId) -> Term | None:
    """The term of this node's replica of a group; None if there is no such replica."""
    hosted = hosted_replicas.get(group)
    return None if hosted is None else hosted.replica.core.term


def tell_whether_it_leads(hosted: HostedReplica, beats: Heartbeats) -> None:
    """Tell the node's heartbeats whether the replica leads: they vouch for groups that it leads."""
    soft, core = hosted.soft, hosted.replica.core
    if soft.role is Role.LEADER:
        followers = tuple(each for each in core.voters if each != core.config.node)
        beats.leading(hosted.group, soft.term, followers, core.commit)
    else:
        beats.not_leading(hosted.group)


Turn: TypeAlias = tuple[HostedReplica, Effects]
"""A turn in progress. Its effects are carried out up to the append; the rest waits for a sync."""
NOTHING = Effects(0)
"""For a turn whose effects are carried out already."""
