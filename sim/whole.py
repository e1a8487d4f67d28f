"""One run with exactly the given settings, to its end: no swarm draws, and an anomaly does not end
it.

`--whole` and studies run this way, to count all that is lost after an anomaly. A plan of
`nemesis/failures.py` says what goes wrong; the nemesis takes no part. The verdict is that of the
whole history. The digest says whether two runs were the same, as that of `ottla.sim.run`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ottla.broker.config import FlushPolicy
from ottla.broker.profiles.named import profile_named
from ottla.sim.chance.choices import Choices
from ottla.sim.clients.visits import begin_visits
from ottla.sim.clients.workload import make_clients
from ottla.sim.ending.breaking import Breaking, in_order
from ottla.sim.ending.ending import MS, Ending
from ottla.sim.invariants.beyond import weighed
from ottla.sim.invariants.findings import Anomaly
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.judge import judge
from ottla.sim.invariants.promised_less import explained
from ottla.sim.invariants.weaker import noted, unsynced, weaker
from ottla.sim.nemesis.beyond import beyond_the_budget
from ottla.sim.nemesis.failures import FAILURES
from ottla.sim.plugins.own import switched_off
from ottla.sim.run import Outcome, Verdict, digest, judged_by_own, undisturbed
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.world import World

BY_NAME = {each.name: each for each in FAILURES}


def run_whole(
    choices: Choices,
    config: RunConfig,
    failure: str | None = None,
    watching: Iterable[Callable[[World], None]] = (),
) -> tuple[Outcome, frozenset[str]]:
    """Run it. Returns the outcome and the ids of the invariants that its history breaks.

    `failure` names a plan; `watching` is called with the world before it boots. Raises `KeyError`
    if there is no such plan. Raises `ConfigError` if no leader could be elected, or if the load
    ends before the failure; no setting is changed to fit.
    """
    config.check_elections()
    config.check_lag()
    plan = None if failure is None else BY_NAME[failure].plan
    with undisturbed():
        with switched_off(config.mutants, config.plugins):
            world = World(config, choices)
            for each in watching:
                each(world)
            ending = Ending(world, make_clients(world))
            with Breaking(world.history) as playing:
                _play(world, ending, plan)
        rows = world.history.rows
        found = judge(rows)
        anomalies: Sequence[Anomaly] = [*playing.verdicts, *found.anomalies]
        weakened: list[str] = []
        if beyond_the_budget(config):
            weakened, anomalies = weighed(rows, anomalies)
        elif config.flush == FlushPolicy.OFF.value:
            weakened, anomalies = unsynced(Index(rows), anomalies)
        anomalies, broke = in_order(anomalies, playing.unexplained), playing.broke
        notes: list[str] = []
        if not playing.ended:
            index = Index(rows)
            allowed, anomalies = explained(profile_named(config.profile), index, anomalies)
            weakened, notes = [*weakened, *weaker(index), *allowed], [*noted(index)]
            own, broke = judged_by_own(world)
            anomalies = in_order(anomalies, own)
        verdict = Verdict.WEAKENED if weakened else Verdict.OK
        outcome = Outcome(
            config,
            Verdict.FAILED if anomalies else verdict,
            anomalies,
            weakened,
            ending.unavoidable,
            rows,
            choices.tape,
            digest(world),
            world.kernel.steps,
            world.kernel.now,
            broke,
            notes,
        )
    return outcome, found.broken


def _play(world: World, ending: Ending, plan: Callable[[World], None] | None) -> None:
    """Run everything, from the start of the nodes to the last record read. Raises what ends a run
    (`breaking.py`); then the world's history is still there, and so is what the ending has
    excused."""
    world.boot()
    if plan is not None:
        plan(world)
    begin_visits(world)
    ending.clients.start()
    world.kernel.run(world.kernel.now + world.config.load_ms * MS)
    ending.settle()
    ending.finish()
    world.note_final()
