"""The invariants of what readers are told instead of records, and of whom metadata names."""

from __future__ import annotations

from ottla.sim.invariants import epoch_ends, errors, offsets, shown
from ottla.sim.invariants.invariant import Invariant, Place

READERS: tuple[Invariant, ...] = (
    Invariant(
        "sim-I39",
        "a reader is told an error that is not true",
        "an error that a reader is told (out of range, not leader, an epoch too old or too new, "
        "unknown) was true at some time since it asked, and whom metadata names has led that term",
        Place.END,
        errors.untrue,
    ),
    Invariant(
        "sim-I40",
        "an offset that was not asked for",
        "the first, the last and the first offset of a time are those that the leader's log had at "
        "some time since it was asked, as far as it was committed",
        Place.END,
        offsets.offsets,
    ),
    Invariant(
        "sim-I41",
        "a fetch shows what is held back",
        "the high watermark of a fetch is one that its leader had at some time since it was asked, "
        "and no record that is shown lies above it",
        Place.END,
        shown.held,
    ),
    Invariant(
        "sim-I42",
        "an epoch ended elsewhere",
        "the end of a leader epoch that a reader is told is where the log of the leader that "
        "answers has it",
        Place.END,
        epoch_ends.ends,
    ),
)
