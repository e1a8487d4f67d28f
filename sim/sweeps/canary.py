"""The canary: mutants that every sweep must notice.

A sweep in which nothing fails looks the same whether nothing is wrong or the checkers are blind. So
besides its seeds each sweep, also that of a study, runs the broker with one safety mechanism
switched off, in the same kind of process. If that is not noticed, the results of the seeds are
worth nothing: the sweep is void (TigerBeetle's canary fuzzer, which must fail).

There are two mutants, because runs are judged in two places, and either may be blind: while the run
goes on, which ends it at the first violation, and at its end. One producer sends one record at a
time, and nothing else goes wrong. One mutant answers acks=all when the leader has appended
(sim-M06): each answer is exactly one record too early, so sim-I09 has to be exact. With the other,
followers keep no producers (sim-M03): that has no effect as long as the leader lives, and only a
comparison of states at the end, sim-I25, can show it.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.sim.chance.choices import Replayed, Tape
from ottla.sim.run import run_choices
from ottla.sim.settings.settings import RunConfig

MUTANTS = {"M06": "sim-I09", "M03": "sim-I25"}
"""The invariant that must notice each: the first is judged online, the second at the end."""
CONFIG = RunConfig(
    profile="reference-strict",
    load_ms=500,
    records=20,
    producers=1,
    in_flight=1,
    batch_records=1,
)


class Canary(NamedTuple):
    """The result of the canary: one row."""

    mutant: str
    """Both mutants, or the first that was not noticed."""
    noticed: bool
    """If false, the sweep is void."""
    invariant: str
    """The invariants that noticed them; empty: none."""
    reason: str
    """What was noticed; or what else ended the canary's own run. That says nothing about checkers:
    a patched broker that runs into an error at once is never asked what the mutant spoils."""

    def __str__(self) -> str:
        if self.noticed:
            return f"canary {self.mutant}: noticed by {self.invariant}"
        void = f"void: the canary, mutant {self.mutant}, was not noticed"
        if self.reason:
            return f"{void}, because its run ended with {self.reason}"
        return f"{void}; the checkers see nothing, whatever the seeds of this sweep say"


def canary() -> Canary:
    """Run both mutants, with the plain choices."""
    reasons = []
    for mutant, invariant in MUTANTS.items():
        outcome = run_choices(Replayed(Tape()), CONFIG.with_(mutants=mutant), swarm=False)
        if outcome.broke:
            return Canary(mutant, False, "", str(outcome.broke))
        if invariant not in {each.invariant for each in outcome.anomalies}:
            return Canary(mutant, False, "", outcome.reason if outcome.anomalies else "")
        reasons.append(outcome.reason)
    return Canary(" and ".join(MUTANTS), True, " and ".join(MUTANTS.values()), "; ".join(reasons))
