"""The canary: every sweep carries mutants that have to be noticed.

A sweep in which nothing fails looks the same whether nothing is wrong or nobody looks. So beside
its seeds each sweep, that of a study too, runs the broker with one safety mechanism switched off,
in the same kind of process. Is that not noticed, then what the seeds say is worth nothing: the
sweep is void (TigerBeetle's canary fuzzer, which must fail).

There are two, because there are two places where a run is judged, and one may be blind by itself:
while it goes on, which ends a run at the first hit, and at its end. One producer has one record
under way at a time, and nothing else goes wrong. One mutant answers acks=all when the leader has
appended (sim-M06): each answer is one record too early, no more, and sim-I09 has to be exact to
notice. With the other followers keep nothing of producers (sim-M03): nothing comes of it as long as
the leader lives, and only who compares the states in the end, for sim-I25, can tell.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.sim.chance.choices import Replayed, Tape
from ottla.sim.run import run_choices
from ottla.sim.settings.settings import RunConfig

MUTANTS = {"M06": "sim-I09", "M03": "sim-I25"}
"""What has to notice each: the first is judged online, the second at the end."""
CONFIG = RunConfig(
    profile="reference-strict",
    load_ms=500,
    records=20,
    producers=1,
    in_flight=1,
    batch_records=1,
)


class Canary(NamedTuple):
    """What became of it: one row."""

    mutant: str
    """Both, or the first that was not noticed."""
    noticed: bool
    """Is it not, the sweep is void."""
    invariant: str
    """Which noticed them; empty for none."""
    reason: str
    """What was noticed; if a run of its own broke, which says nothing of checkers, how."""

    def __str__(self) -> str:
        if self.noticed:
            return f"canary {self.mutant}: noticed by {self.invariant}"
        return (
            f"void: the canary, mutant {self.mutant}, was not noticed; the checkers see nothing, "
            "whatever the seeds of this sweep say"
        ) + (f" (its run broke: {self.reason})" if self.reason else "")


def canary() -> Canary:
    """Run both: all their choices are the plain ones."""
    reasons = []
    for mutant, invariant in MUTANTS.items():
        outcome = run_choices(Replayed(Tape()), CONFIG.with_(mutants=mutant), swarm=False)
        if outcome.broke:
            return Canary(mutant, False, "", str(outcome.broke))
        if invariant not in {each.invariant for each in outcome.anomalies}:
            return Canary(mutant, False, "", "")
        reasons.append(outcome.reason)
    return Canary(" and ".join(MUTANTS), True, " and ".join(MUTANTS.values()), "; ".join(reasons))
