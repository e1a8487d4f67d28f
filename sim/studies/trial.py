"""One run of a study, to its end, as a history and its results.

With swarm it is the run that a sweep makes of the seed. Without swarm it is a whole run: nothing is
drawn, a plan says what goes wrong, and the run goes on after an anomaly, because what follows is
counted. In both cases what ends it early is a verdict: a bug of the broker, or a cluster that does
not settle.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.raft.types import Micros
from ottla.sim.chance.choices import Drawn
from ottla.sim.ending.breaking import Broke
from ottla.sim.history.history import Event
from ottla.sim.invariants.judge import judge
from ottla.sim.run import Outcome, run
from ottla.sim.studies.study import Study, Variant
from ottla.sim.whole import run_whole


class Trial(NamedTuple):
    """One run."""

    verdict: str
    """ok, failed or weakened: see `ottla.sim.run`."""
    noticed: str | None
    """The first invariant that was seen to be broken, if the verdict is failed."""
    told: str | None
    """The reason, in one line; None: there is none."""
    rows: list[Event]
    partitions: int
    steps: int
    """How many events the kernel ran."""
    choices: int
    simulated: Micros
    digest: int
    """The digest of the run, as signed 64 bits."""
    broken: frozenset[str] | None
    """What `judge` finds broken in the rows; None: it was not called yet."""
    broke: Broke | None
    """Set if the run itself broke: then nothing else of it means anything."""


def trial(study: Study, variant: Variant, seed: int) -> Trial:
    """Run a variant with a seed."""
    if study.swarm:
        return _trial(run(seed, variant.config), None)
    return _trial(*run_whole(Drawn(seed), variant.config, variant.failure))


def _trial(outcome: Outcome, broken: frozenset[str] | None) -> Trial:
    told = outcome.anomalies, outcome.weakened, outcome.unavoidable, outcome.noted
    plain = not any(told)
    return Trial(
        outcome.verdict.value,
        outcome.anomalies[0].invariant if outcome.anomalies else None,
        None if plain else outcome.reason,
        outcome.rows,
        outcome.config.partitions,
        outcome.steps,
        len(outcome.tape),
        outcome.simulated,
        int.from_bytes(bytes.fromhex(outcome.digest), "big", signed=True),
        broken,
        outcome.broke,
    )


def broken_in(each: Trial) -> frozenset[str]:
    """Ids of the invariants that do not hold in its history, according to `judge`."""
    return judge(each.rows).broken if each.broken is None else each.broken
