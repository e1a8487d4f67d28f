"""The canary: every sweep carries a mutant that has to be noticed.

A sweep in which nothing fails looks the same whether nothing is wrong or nobody looks. So beside
its seeds each sweep, that of a study too, runs the broker with one safety mechanism switched off,
in the same kind of process. Is that not noticed, then what the seeds say is worth nothing: the
sweep is void (TigerBeetle's canary fuzzer, which must fail).

The mutant answers acks=all when the leader has appended (sim-M06). One producer has one record
under way at a time, and nothing else goes wrong: each answer is one record too early, no more, and
sim-I09 has to be exact to notice.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.sim.choices import Replayed, Tape
from ottla.sim.run import run_choices
from ottla.sim.settings import RunConfig

MUTANT = "M06"
CONFIG = RunConfig(
    profile="reference-strict",
    mutants=MUTANT,
    load_ms=500,
    records=20,
    producers=1,
    in_flight=1,
    batch_records=1,
)


class Canary(NamedTuple):
    """What became of it: one row."""

    mutant: str
    noticed: bool
    """Is it not, the sweep is void."""
    invariant: str
    """Which noticed it; empty for none."""
    reason: str
    """What was noticed; if its own run broke, which says nothing of checkers, how."""

    def __str__(self) -> str:
        if self.noticed:
            return f"canary {self.mutant}: noticed by {self.invariant}"
        return (
            f"void: the canary, mutant {self.mutant}, was not noticed; the checkers see nothing, "
            "whatever the seeds of this sweep say"
        ) + (f" (its run broke: {self.reason})" if self.reason else "")


def canary() -> Canary:
    """Run it: all its choices are the plain ones."""
    outcome = run_choices(Replayed(Tape()), CONFIG, swarm=False)
    if outcome.broke:
        return Canary(MUTANT, False, "", str(outcome.broke))
    found = next(iter(outcome.anomalies), None)
    if found is None:
        return Canary(MUTANT, False, "", "")
    return Canary(MUTANT, True, found.invariant, outcome.reason)
