"""The invariants of what readers are told instead of records, and of the leaders that metadata
names."""

from __future__ import annotations

from ottla.sim.invariants import epoch_ends, errors, offsets, shown
from ottla.sim.invariants.invariant import Invariant, Place

READERS: tuple[Invariant, ...] = (
    Invariant(
        "sim-I39",
        "false error",
        "an error that a reader is told (out of range, not leader, an epoch too old or too new, "
        "unknown) was true at some time since it asked, and a leader that metadata names has led "
        "that term",
        Place.END,
        errors.untrue,
    ),
    Invariant(
        "sim-I40",
        "wrong offset",
        "the first, the last and the first offset of a time are those that the leader's log had at "
        "some time since it was asked, as far as it was committed",
        Place.END,
        offsets.offsets,
    ),
    Invariant(
        "sim-I41",
        "a fetch shows what is held back",
        "the high watermark of a fetch is one that its leader had at some time since it was asked, "
        "and no record that is shown is above it",
        Place.END,
        shown.held,
    ),
    Invariant(
        "sim-I42",
        "wrong end of an epoch",
        "the end of a leader epoch that a reader is told is where it ended in the log of the "
        "leader that answers",
        Place.END,
        epoch_ends.ends,
    ),
)
