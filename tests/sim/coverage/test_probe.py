"""The probe sees what happens in a run, and changes nothing in it.

A scenario that brings something about is known by it, and a run that is watched has the digest of
one that is not.
"""

from __future__ import annotations

import pytest

from ottla.sim.chance.choices import Drawn, Replayed, Tape
from ottla.sim.coverage.cover import Cover, reached_by
from ottla.sim.coverage.deliveries import ONE
from ottla.sim.coverage.overlaps import GROUP, REPLICA
from ottla.sim.coverage.probe import Probe
from ottla.sim.coverage.steps import CRASH, CUT, STALL
from ottla.sim.run import run_choices, undisturbed
from ottla.sim.scenarios.files import files
from ottla.sim.scenarios.script import Script
from ottla.sim.settings.settings import RunConfig

SHORT = RunConfig(load_ms=2_000, records=30, fault_every_ms=300)
BY_NUMBER = {path.stem.split("_")[0]: path for path in files()}


class Probed(Script):
    """A script whose worlds are watched."""

    def __init__(self):
        super().__init__()
        self.probes = []

    def make_world(self, config):
        world = super().make_world(config)
        self.probes.append(Probe())
        self.probes[-1].watch(world)
        return world


def counted(number):
    """What a scenario reaches in any of its worlds."""
    script = Probed()
    lines = BY_NUMBER[number].read_text(encoding="utf-8").splitlines()
    with undisturbed():
        script.play("\n".join(line for line in lines if not line.startswith("> mutant")))
    found = set()
    for probe in script.probes:
        probe.steps.finish()
        found |= {*probe.overlaps.counts, *probe.steps.counts, *probe.deliveries.counts}
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "reached", "not_reached"),
    [
        ("s12", ("truncation", "flush", REPLICA), ("snapshot", "flush", GROUP)),
        ("s12", ("first entry: flush", STALL), ("vote: flush", CRASH)),
        ("s19", ("flush", "expiry", REPLICA), ("truncation", "expiry", GROUP)),
        ("s30", ("vote: written", CRASH), ("first entry: written", CRASH)),
        ("s30", ("RequestVote", ONE), ("TimeoutNow", ONE)),
        ("s31", ("snapshot taken: written", CRASH), ("snapshot installed: written", CRASH)),
        ("s42", ("transfer", "election", GROUP), ("transfer", "election", REPLICA)),
        ("s46", ("snapshot", "flush", REPLICA), ("snapshot", "election", GROUP)),
        ("s46", ("snapshot taken: flush", CUT), ("snapshot taken: flush", STALL)),
    ],
)
def test_a_scenario_reaches_what_it_is_about(number, reached, not_reached):
    found = counted(number)
    assert reached in found
    assert not_reached not in found


@pytest.mark.slow
def test_a_barrier_is_under_way_where_an_answer_waits_for_proof():
    assert ("barrier", "barrier", GROUP) in counted("s19")


@pytest.mark.slow
def test_a_calm_run_meets_no_fault():
    probe = Probe()
    calm = SHORT.with_(fault_every_ms=0)
    run_choices(Replayed(Tape()), calm, swarm=False, watching=[probe.watch])
    probe.steps.finish()
    met = {fault for _, fault in probe.steps.counts}
    assert met == {"passed"}
    assert ("election", "flush", GROUP) in probe.overlaps.counts  # at the beginning
    assert ("snapshot", "flush", GROUP) not in probe.overlaps.counts


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_is_watched_is_the_same_run(seed):
    plain = run_choices(Drawn(seed), SHORT)
    watched = run_choices(Drawn(seed), SHORT, watching=[Probe().watch])
    assert watched.digest == plain.digest


@pytest.mark.slow
def test_a_small_sweep_counts_a_known_pair_and_adds_up():
    transfers = SHORT.with_(faults="transfer kill", nodes=3)
    cover, found = Cover.of(transfers), [reached_by(seed, transfers) for seed in range(4)]
    for each in found:
        cover.add(each)
    pair = "transfer", "election", GROUP
    assert cover.overlaps[pair].times == sum(each.overlaps.get(pair, 0) for each in found) > 0
    assert cover.overlaps[pair].seeds == sum(pair in each.overlaps for each in found)
    assert cover.deliveries["TimeoutNow", "arrived"].times > 0
    assert cover.steps["records: written", CUT] == (0, 0, None)
