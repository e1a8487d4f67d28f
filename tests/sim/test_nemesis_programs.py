"""What a program of the nemesis says it does is what becomes of the nodes."""

from __future__ import annotations

import pytest

from ottla.broker.controller import CONTROLLER_GROUP
from ottla.broker.errors import ConfigError
from ottla.sim.choices import Replayed, Tape
from ottla.sim.nemesis.hand import Hand
from ottla.sim.nemesis.nemesis import named
from ottla.sim.run import Verdict, run, run_choices
from ottla.sim.scenarios.script import Script
from ottla.sim.settings import RunConfig, from_toml

ANOTHER = Tape({"nemesis": dict.fromkeys(range(8), 1)})
"""Whoever is picked at random is not node 1, which leads."""


class Played(Script):
    """A script that keeps its world."""

    def make_world(self, config):
        self.made = super().make_world(config)
        return self.made


@pytest.mark.parametrize("program", ["crash-loop", "win-and-go"])
def test_the_leader_that_dies_for_an_election_comes_back(program):
    """Some node was started in its place, which was up most of the time, and it stayed away."""
    script = Played()
    script.play("> nodes 3\n> producers P=7\n> send P A to 1 seq 0\n> until answered")
    world = script.made
    leader = world.leader()
    assert leader is not None
    dead = leader.node_id
    named(program).run(Hand(world, Replayed(ANOTHER).stream("nemesis")))
    assert world.lives.get(dead) is None
    script.play("> run 20s")
    assert dead in world.lives


OFTEN = RunConfig(load_ms=1_000, records=5, fault_every_ms=100)


@pytest.mark.parametrize("program", ["one-link", "slow-link", "swizzle", "stuck-disk", "bridge"])
def test_a_program_that_needs_more_nodes_than_were_told_is_refused(program):
    """Some ended the run with a traceback, others did nothing and said nothing."""
    config = OFTEN.with_(nodes=1, replicas=1, faults=f"kill {program}")
    least = named(program).nodes
    with pytest.raises(ConfigError) as refused:
        run(1, config)
    assert str(refused.value) == (
        f"nodes is 1, but {program} needs {least}: set more, or leave that fault out"
    )


def test_the_number_of_nodes_may_be_told_by_its_default():
    with pytest.raises(ConfigError, match="nodes is 3, but ring needs 4"):
        run(1, from_toml('faults = "ring"\nnodes = 3\n'))


def test_a_seed_that_draws_fewer_nodes_does_without_the_program():
    """Among three nodes each hears its two neighbours anyhow, and a ring was told of."""
    seen = set()
    for seed in range(6):
        outcome = run(seed, OFTEN.with_(faults="ring kill"))
        codes = {row.code for row in outcome.rows if row.kind == "fault"}
        seen.add((outcome.config.nodes, "program ring" in codes))
    assert seen == {(3, False), (5, True)}


def test_a_tape_is_run_without_what_does_not_fit_it():
    """A smaller run of the same tape, as `shrink` looks for."""
    config = OFTEN.with_(nodes=1, replicas=1, faults="one-link swizzle")
    struck = Tape({"nemesis": dict.fromkeys(range(40), 1)})
    outcome = run_choices(Replayed(struck), config, swarm=False)
    assert outcome.verdict is Verdict.OK


@pytest.mark.parametrize("leads", ["the controller", "partition 0"])
def test_who_hands_over_leadership_says_of_what(leads):
    """It said the number of the Raft group, which nothing else speaks of."""
    script = Script()
    script.play("> nodes 3")
    world = script.world
    life = world.leader(0)
    assert life is not None
    if leads != "the controller":
        controller = life.node.runner.seats.pop(CONTROLLER_GROUP)
        assert controller.replica.leading
    named("transfer").run(Hand(world, Replayed(Tape()).stream("nemesis")))
    (told,) = (row.code for row in world.history.rows if row.kind == "fault")
    assert told == f"hands {leads} to node 2"
