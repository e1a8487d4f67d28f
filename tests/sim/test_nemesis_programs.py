"""What a program of the nemesis says it does is what becomes of the nodes."""

from __future__ import annotations

import pytest

from ottla.sim.choices import Replayed, Tape
from ottla.sim.nemesis.hand import Hand
from ottla.sim.nemesis.nemesis import named
from ottla.sim.scenarios.script import Script

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
