"""One run of a study, to its end, as a history and what came of it.

With swarm it is the run that a sweep makes of the seed. Without, it is an experiment's: nothing is
drawn, a plan says what goes wrong, and it goes on behind an anomaly, for what follows is counted.
Either way what ends it early is a verdict: a bug of the broker, a cluster that comes to no rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.raft.types import Micros
from ottla.sim.choices import Drawn
from ottla.sim.clients.link import ProtocolViolation
from ottla.sim.ending import NotLive
from ottla.sim.experiments.conduct import carry_out
from ottla.sim.experiments.failures import FAILURES
from ottla.sim.history import Event
from ottla.sim.invariants.beyond import weighed
from ottla.sim.invariants.findings import Anomaly
from ottla.sim.invariants.judge import judge
from ottla.sim.nemesis.beyond import beyond_the_budget
from ottla.sim.run import Outcome, digest, run, undisturbed
from ottla.sim.run import Verdict as Word
from ottla.sim.studies.study import Study, Variant
from ottla.sim.world import BrokerBug, World

_PLANS = {each.name: each.plan for each in FAILURES}


class Trial(NamedTuple):
    """One run."""

    verdict: str
    """ok, failed or weakened: see `ottla.sim.run`."""
    told: str | None
    """Why, in one line; None where there is nothing to say."""
    rows: list[Event]
    partitions: int
    steps: int
    """Events of the kernel."""
    choices: int
    simulated: Micros
    digest: int
    """That of the run, as 64 bits with a sign."""
    broken: frozenset[str] | None
    """What `judge` finds broken in the rows; None where nobody has asked it yet."""


def trial(study: Study, variant: Variant, seed: int) -> Trial:
    """Run a variant with a seed."""
    return _swarmed(run(seed, variant.config)) if study.swarm else _played(variant, seed)


def _swarmed(outcome: Outcome) -> Trial:
    plain = not (outcome.anomalies or outcome.weakened or outcome.unavoidable)
    return Trial(
        outcome.verdict.value,
        None if plain else outcome.reason,
        outcome.rows,
        outcome.config.partitions,
        outcome.steps,
        len(outcome.tape),
        outcome.simulated,
        _signed(outcome.digest),
        None,
    )


def _played(variant: Variant, seed: int) -> Trial:
    with undisturbed():
        world = World(variant.config, Drawn(seed))
        ended = _carried_out(world, variant.failure)
        rows = world.history.rows
        found = judge(rows)
        anomalies: Sequence[Anomaly] = [*ended, *found.anomalies]
        weakened: list[str] = []
        if beyond_the_budget(variant.config):
            weakened, anomalies = weighed(rows, anomalies)
    verdict = Word.FAILED if anomalies else Word.WEAKENED if weakened else Word.OK
    told = [*map(str, anomalies), *weakened]
    return Trial(
        verdict.value,
        told[0] if told else None,
        rows,
        variant.config.partitions,
        world.kernel.steps,
        len(world.choices.tape),
        world.kernel.now,
        _signed(digest(world)),
        found.broken,
    )


def _carried_out(world: World, failure: str | None) -> list[Anomaly]:
    """All phases; what ended them early."""
    try:
        carry_out(world, None if failure is None else _PLANS[failure])
    except (BrokerBug, ProtocolViolation) as bug:
        return [Anomaly("sim-I00", len(world.history.rows) - 1, str(bug))]
    except NotLive as dead:
        return [Anomaly("sim-I31", len(world.history.rows) - 1, str(dead))]
    return []


def _signed(digest: str) -> int:
    return int.from_bytes(bytes.fromhex(digest), "big", signed=True)


def broken_in(each: Trial) -> frozenset[str]:
    """Ids of the invariants that do not hold in its history, as `judge` finds them."""
    return judge(each.rows).broken if each.broken is None else each.broken
