"""Leadership handed to another replica (thesis 3.10), as an administrator asks for it.

A leader that hands over refuses what is proposed, for an election timeout at most; then it goes on.
Asked again and again, with a successor that does not answer, it would refuse for as long as that is
kept up. So each leader is asked once, and not at all if nothing was heard of the successor lately.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.broker.errors import ClusterTimeoutError
from ottla.broker.node.inspection import ReplicaView
from ottla.broker.node.node import Node
from ottla.raft.types import GroupId, Micros, NodeId, Term

PATIENCE = 2
"""Election timeouts for which a successor that is silent may come back before nothing is asked."""


def hand_over(life: Node, group: GroupId, to: NodeId) -> bool:
    """Have the node's replica of a group hand over. False: it does not lead, or nothing was heard
    of `to` for an election timeout, as far as beats tell."""
    runner = life.runner
    hosted = runner.hosted_replicas[group]
    runner.deadlines.vouch(hosted)
    begun = hosted.replica.transfer(to, life.now())
    if begun:
        runner.wake(hosted)
    return begun


def stand_for_election(life: Node, group: GroupId) -> None:
    """Have the node's replica of a group, if it has one, stand for election now."""
    hosted = life.runner.hosted_replicas.get(group)
    if hosted is not None:
        hosted.replica.campaign(life.now())
        life.runner.wake(hosted)


class Handover:
    """One partition on its way to node `to`. `leading` says who serves it now."""

    def __init__(
        self,
        to: NodeId,
        leading: Callable[[], tuple[NodeId, ReplicaView] | None],
        lives: Mapping[NodeId, Node],
    ):
        self._to = to
        self._leading = leading
        self._lives = lives
        self._asked: dict[tuple[NodeId, Term], None] = {}
        self._silent_since: Micros | None = None

    def ended(self) -> bool:
        """Ask who leads, unless it was asked; whether nothing more is to be waited for."""
        found = self._leading()
        if found is None or found[0] == self._to:
            return found is not None
        node, replica = found
        if (node, replica.term) in self._asked:
            return replica.successor != self._to
        life = self._lives[node]
        if hand_over(life, replica.group, self._to):
            self._asked[node, replica.term] = None
            return False
        now = life.now()
        # Nobody waits for this: it may just have come back, and be heard with the next beat.
        if self._silent_since is None:
            self._silent_since = now
        return now - self._silent_since >= PATIENCE * life.config.election_timeout_ms * 1000

    def check(self, what: str) -> None:
        """It has ended. Raises `ClusterTimeoutError` if somebody else leads on."""
        found = self._leading()
        if found is not None and found[0] != self._to:
            why = "did not come to lead" if self._asked else "is silent, and was not asked to lead"
            raise ClusterTimeoutError(f"node {self._to} {why} {what}; node {found[0]} goes on")
