"""Messages between nodes that come once more, long after they were sent (sim-N3, sim-N4).

A datagram may be repeated and may take any time. What is harmless within a term may not be after
one: an acknowledgement of what was cut since, an answer to an older barrier, a vote for a term that
is over. So some of what passes is kept, and comes again when another leader has its first entry
written, and once more at the next one.
"""

from __future__ import annotations

from typing import Any

from ottla.broker.controller.client import ControlRequest, ControlResponse
from ottla.raft.types import NodeId
from ottla.sim.nemesis.fault_context import MS, FaultContext
from ottla.sim.nemesis.timed_faults import opens_a_term
from ottla.sim.world.life import Life
from ottla.sim.world.points import Trap

MOST_KEPT = 60
"""Messages."""
_ORDERED = (ControlRequest, ControlResponse)
"""These go over a connection: none of them comes twice."""


def repeat_late(hand: FaultContext) -> None:
    """Some of what nodes say to each other now is heard again after changes of leadership."""
    world, stream = hand.world, hand.stream
    network, election = world.network, world.config.election_timeout_ms * MS
    kept: list[tuple[NodeId, NodeId, Any]] = []
    every, seen = stream.pick((1, 3, 10, 40)), 0
    world.fault(f"one message in {every} will come again when others lead")

    def keeps(sender: NodeId, to: NodeId, message: Any) -> bool:
        nonlocal seen
        if not isinstance(message, _ORDERED):
            seen += 1
            if not seen % every:
                kept.append((sender, to, message))
                del kept[:-MOST_KEPT]
        return True

    def repeat(_: Life) -> None:
        for each in kept:
            hand.later(stream.below(election), network.repeat, *each)

    def changes(life: Life) -> None:
        if keeps in network.filters:
            network.filters.remove(keeps)
            hand.later(0, _set, 1)
        repeat(life)

    def _set(count: int) -> None:
        trap = world.points.set(Trap("append", changes, count=count, fits=opens_a_term))
        hand.later(8 * hand.span(), world.points.lift, trap)

    network.filters.append(keeps)
    _set(1 + stream.below(2))
