"""What a runner keeps beside each replica, and beside each turn that is under way.

A replica knows nothing of its node. What the parts of the driver remember about it stands in its
`HostedReplica`. Each field there is written by one part of the driver, all others read it
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
    """Nobody wants to know."""


class HostedReplica:
    """A replica's place in its runner, with what the runner remembers about it."""

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
        # By `Runner`.
        self.dirty = False
        self.gone = False
        """Removed: it takes no turn any more, whoever still holds it."""
        # By `Notices`: what the rest of the node has heard.
        self.soft = replica.soft
        self.leads = False
        self.applied: LogIndex = 0
        self.commit: LogIndex = 0
        self.term: Term = replica.core.term
        # By `DeadlineWatch`.
        self.look_at: Micros = 0
        """When its deadlines are looked at next; in the past: not in the queue."""
        self.told: tuple[NodeId, Term, Micros] | None = None
        """What beats vouched for when its core last heard of it: leader, term, and when."""
        self.trusting = False
        """See `deadlines.py`."""
        # By nobody.
        self.urgent = urgent
        """The node waits for what it applies (`Runner.report_to`), and its followers hear of a
        commit at once, not with the next beat."""


def term_of(hosted_replicas: Mapping[GroupId, HostedReplica], group: GroupId) -> Term | None:
    """The term of a group's replica here; None where there is none."""
    hosted = hosted_replicas.get(group)
    return None if hosted is None else hosted.replica.core.term


def tell_whether_it_leads(hosted: HostedReplica, beats: Heartbeats) -> None:
    """The node's heartbeats vouch for a group from when its replica here comes to lead."""
    soft, core = hosted.soft, hosted.replica.core
    if soft.role is Role.LEADER:
        followers = tuple(each for each in core.voters if each != core.config.node)
        beats.leading(hosted.group, soft.term, followers, core.commit)
    else:
        beats.not_leading(hosted.group)


Turn: TypeAlias = tuple[HostedReplica, Effects]
"""One turn on its way: its effects are performed up to their append, then wait for a sync."""
NOTHING = Effects(0)
"""Of a turn whose effects are carried out already."""
