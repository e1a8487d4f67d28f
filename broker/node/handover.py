"""Leadership transfer to another replica (thesis 3.10), as an administrator asks for it.

During a transfer the leader refuses proposals, for an election timeout at most; then it goes on as
leader. If it were asked again and again while the successor is silent, it would refuse all that
time. So each leader is asked once, and not at all if the successor was not heard lately.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.broker.errors import ClusterTimeoutError
from ottla.broker.node.inspection import ReplicaView
from ottla.broker.node.node import Node
from ottla.raft.types import GroupId, Micros, NodeId, Term

PATIENCE = 2
"""How many election timeouts to wait for a silent successor before giving up."""


def hand_over(life: Node, group: GroupId, to: NodeId) -> bool:
    """Let the node's replica of a group transfer its leadership. False: it does not lead, or `to`
    was silent for an election timeout."""
    runner = life.runner
    hosted = runner.hosted_replicas[group]
    runner.deadlines.vouch(hosted)
    begun = hosted.replica.transfer(to, life.now())
    if begun:
        runner.wake(hosted)
    return begun


def stand_for_election(life: Node, group: GroupId) -> None:
    """Let the node's replica of a group, if it has one, start an election now."""
    hosted = life.runner.hosted_replicas.get(group)
    if hosted is not None:
        hosted.replica.campaign(life.now())
        life.runner.wake(hosted)


class Handover:
    """The transfer of one partition to node `to`. `leading` returns the node that serves it now."""

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
        """Ask the present leader, unless it was asked before. Returns whether there is nothing more
        to wait for."""
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
        # The successor may have just come back and be heard with the next heartbeat.
        if self._silent_since is None:
            self._silent_since = now
        return now - self._silent_since >= PATIENCE * life.config.election_timeout_ms * 1000

    def check(self, what: str) -> None:
        """After the end: raise `ClusterTimeoutError` if another node still leads."""
        found = self._leading()
        if found is not None and found[0] != self._to:
            why = "is silent, and was not asked to lead"
            if self._asked:
                why = "did not become leader of"
            raise ClusterTimeoutError(f"node {self._to} {why} {what}; node {found[0]} goes on")
