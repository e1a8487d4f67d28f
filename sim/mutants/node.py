"""Nodes without one of their safety mechanisms."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.node.hosting import Hosting
from ottla.broker.node.node import Node
from ottla.raft.types import GroupId
from ottla.sim.mutants.mutant import Mutant, Mutants


class _KeepingHosting(Hosting):
    """Removes replicas from the node, and leaves their logs on its disk."""

    def _drop(self, groups: Sequence[GroupId]) -> None:
        for group in groups:
            self._runner.remove(group)


class _KeepingNode(Node):
    hosting_type = _KeepingHosting


def node_without(mutants: Mutants) -> type[Node]:
    """The class of a node with these mutants."""
    return _KeepingNode if Mutant.DELETED_LOGS_KEPT in mutants else Node
