"""The invariants of what nodes say of their partitions: where logs begin, and who leads since when.

A replica makes its log start and its epoch history from its log. A node makes the leaders that it
names from what it hears. All of it is compared, at the end, with what was written and who led.
"""

from __future__ import annotations

from ottla.sim.invariants import epochs, log_starts
from ottla.sim.invariants.invariant import Invariant, Place

METADATA: tuple[Invariant, ...] = (
    Invariant(
        "sim-I46",
        "log start that nobody decided",
        "a replica's log start is what the decisions that it has applied made of it; it never goes "
        "back, never lies above the high watermark, is the same everywhere in the end, and the "
        "record there is held",
        Place.END,
        log_starts.log_starts,
    ),
    Invariant(
        "sim-I47",
        "an epoch or a leader that was not",
        "an epoch history names each term that wrote records, with its first offset; a leader that "
        "is named led that term, and in the end was replaced at most two seconds ago",
        Place.END,
        epochs.epochs,
    ),
)
