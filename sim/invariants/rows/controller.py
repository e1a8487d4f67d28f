"""The invariants of what the controller decides: topics."""

from __future__ import annotations

from ottla.sim.invariants import topics
from ottla.sim.invariants.invariant import Invariant, Place

CONTROLLER: tuple[Invariant, ...] = (
    Invariant(
        "sim-I48",
        "a topic that is not as was told",
        "a topic is created once until it is deleted, and clients are told no other; in the end "
        "all nodes know what was created, each partition is led, and of what was deleted nothing "
        "is left on a disk",
        Place.END,
        topics.wrong_topics,
    ),
)
