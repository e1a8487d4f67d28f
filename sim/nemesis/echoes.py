"""Messages between nodes that come once more, long after they were sent (sim-N3, sim-N4).

A datagram may be repeated and may take any time. What is harmless within a term may not be after
one: an acknowledgement of what was cut since, an answer to an older barrier, a vote for a term that
is over. So some of what passes is kept, and comes again when another leader has its first entry
written, and once more at the next one.
"""

from __future__ import annotations

from typing import Any

from ottla.raft.types import NodeId
from ottla.sim.nemesis.fault_context import MS, FaultContext
from ottla.sim.nemesis.timed_faults import opens_a_term
from ottla.sim.world.network import CALLS
from ottla.sim.world.points import Trap

MOST_KEPT = 60
"""Messages."""


class _Echo:
    """Messages that are kept until others lead."""

    def __init__(self, hand: FaultContext, every: int):
        self._hand = hand
        self._every = every
        self._seen = 0
        self._kept: list[tuple[NodeId, NodeId, Any]] = []
        self._filters = hand.world.network.filters
        self._election = hand.world.config.election_timeout_ms * MS

    def begin(self, count: int) -> None:
        """Keep some of what passes, until the `count`-th change of leadership from here on."""
        self._filters.append(self._keep)
        self._await_change(count)

    def _keep(self, sender: NodeId, to: NodeId, message: Any) -> bool:
        if not isinstance(message, CALLS):
            self._seen += 1
            if not self._seen % self._every:
                self._kept.append((sender, to, message))
                del self._kept[:-MOST_KEPT]
        return True

    def _stop_keeping(self) -> bool:
        """Returns whether it kept messages until now."""
        keeping = self._keep in self._filters
        if keeping:
            self._filters.remove(self._keep)
        return keeping

    def _await_change(self, count: int) -> None:
        hand = self._hand
        trap = Trap("append", self._changed, count=count, fits=opens_a_term)
        hand.world.points.set(trap)
        hand.later(8 * hand.span(), self._give_up, trap)

    def _changed(self, _: NodeId) -> None:
        hand = self._hand
        if self._stop_keeping():
            hand.later(0, self._await_change, 1)
        for each in self._kept:
            hand.later(hand.stream.below(self._election), hand.world.network.repeat, *each)

    def _give_up(self, trap: Trap) -> None:
        self._hand.world.points.lift(trap)
        self._stop_keeping()


def repeat_late(hand: FaultContext) -> None:
    """Some of what nodes say to each other now is heard again after changes of leadership."""
    every = hand.stream.pick((1, 3, 10, 40))
    hand.world.fault(f"one message in {every} will come again when others lead")
    _Echo(hand, every).begin(1 + hand.stream.below(2))
