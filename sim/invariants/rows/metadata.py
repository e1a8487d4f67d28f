"""The invariants of what nodes say of their partitions: where logs begin, and which node leads.

A replica derives its log start and its epoch history from its log. A node knows the leaders that it
names from messages. At the end all of it is compared with what was written and which nodes led.
"""

from __future__ import annotations

from ottla.sim.invariants import epochs, log_starts
from ottla.sim.invariants.invariant import Invariant, Place

METADATA: tuple[Invariant, ...] = (
    Invariant(
        "sim-I46",
        "log start that nobody decided",
        "a replica's log start follows from the decisions that it has applied; it never goes "
        "back, never lies above the high watermark, is the same everywhere in the end, and the "
        "record there is held",
        Place.END,
        log_starts.log_starts,
    ),
    Invariant(
        "sim-I47",
        "false epoch or leader",
        "an epoch history names each term that wrote records, with its first offset; a leader that "
        "is named led that term, and in the end was replaced at most two seconds ago",
        Place.END,
        epochs.epochs,
    ),
)
