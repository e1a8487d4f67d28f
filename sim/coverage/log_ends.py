"""How far each replica's log is durable, committed and applied, by the rows of a history.

An entry that is durable here and not committed anywhere is *alone*; one that is committed and not
applied here is still to be applied. Both are steps (`steps.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ottla.raft.types import LogIndex, NodeId
from ottla.sim.coverage.steps import ALONE, REPLICATED
from ottla.sim.history.history import Event

KINDS = ("append", "truncate", "durable", "commit", "apply", "start", "crash")
"""The rows that are followed."""


class _Log:
    """The log of one partition."""

    def __init__(self) -> None:
        self.committed: LogIndex = 0
        """What any node knows to be committed."""
        self.last: dict[NodeId, LogIndex] = {}
        self.durable: dict[NodeId, LogIndex] = {}
        self.applied: dict[NodeId, LogIndex] = {}


class LogEnds:
    """See the module's docstring. `at` is called with node, step, partition, and whether the
    replica is at that step now."""

    def __init__(self, nodes: Iterable[NodeId], at: Callable[[NodeId, str, int, bool], None]):
        self._nodes = tuple(nodes)
        self._at = at
        self._logs: dict[int, _Log] = {}

    def row(self, row: Event) -> None:
        """A row of one of `KINDS`."""
        node, partition, index = row.node, row.partition, row.log_index or 0
        if node not in self._nodes or partition is None:
            return  # the reference model
        log = self._logs.setdefault(partition, _Log())
        match row.kind:
            case "append":
                log.last[node] = index
            case "truncate":
                log.last[node] = index - 1
                log.durable[node] = min(log.durable.get(node, 0), index - 1)
            case "durable":
                log.durable[node] = index
            case "apply":
                log.applied[node] = index
            case "start":
                log.last[node], log.applied[node] = index, log.committed
            case "crash":
                log.durable[node] = log.last[node] = index
                return  # it is at no step any more
            case _:
                log.committed = max(log.committed, index)
                for each in self._nodes:
                    self._follow(log, partition, each)
        self._follow(log, partition, node)

    def _follow(self, log: _Log, partition: int, node: NodeId) -> None:
        self._at(node, ALONE, partition, log.durable.get(node, 0) > log.committed)
        known = min(log.committed, log.last.get(node, 0))
        self._at(node, REPLICATED, partition, log.applied.get(node, 0) < known)
