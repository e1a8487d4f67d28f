"""The invariants of what the controller decides: topics."""

from __future__ import annotations

from ottla.sim.invariants import topics
from ottla.sim.invariants.invariant import Invariant, Place

CONTROLLER: tuple[Invariant, ...] = (
    Invariant(
        "sim-I48",
        "topic differs from the answer",
        "a topic is created once until it is deleted, and clients are told so; in the end "
        "all nodes know what was created, each partition is led, and nothing of what was deleted "
        "is left on a disk",
        Place.END,
        topics.wrong_topics,
    ),
)
