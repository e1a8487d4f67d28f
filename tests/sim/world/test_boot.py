"""The beginning of a run: a topic is asked for once, whatever becomes of the controller then."""

import pytest

from ottla.broker.controller.controller import CONTROLLER_GROUP
from ottla.broker.errors import ErrorCode
from ottla.broker.turn.commands import CreateTopic
from ottla.sim.chance.choices import Drawn
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.world import BrokerBug, World


class Refusing(World):
    """The first request for a topic is answered `answer`."""

    answer = ErrorCode.TOPIC_ALREADY_EXISTS
    patch: pytest.MonkeyPatch

    def start(self, node):
        started = super().start(node)
        host = self.lives[1].node
        control = host.control

        def refuse(command, done, deadline):
            if isinstance(command, CreateTopic):
                done(self.answer, {})
            else:
                control(command, done, deadline)

        if node == 1:
            self.patch.setattr(host, "control", refuse)
        return started


class Resigning(World):
    """The first leader of the controller resigns when it has the topic in its log."""

    patch: pytest.MonkeyPatch
    resigned = 0

    def start(self, node):
        started = super().start(node)
        machine = self.lives[node].node.controller_machine
        proposed = machine.proposed

        def resign(first):
            proposed(first)
            if not self.resigned:
                self.resigned = node
                hosted = self.lives[node].node.runner.hosted_replicas[CONTROLLER_GROUP]
                hosted.replica.step_down(self.lives[node].node.now())
                self.lives[node].node.runner.wake(hosted)

        self.patch.setattr(machine, "proposed", resign)
        return started


def test_a_controller_that_resigns_over_the_topic_has_it_made_once(monkeypatch):
    world = Resigning(RunConfig(), Drawn(1))
    world.patch = monkeypatch
    world.boot()
    assert world.resigned
    assert sorted(world.placement) == [0]


def test_a_topic_that_was_there_before_anybody_asked_is_a_bug(monkeypatch):
    world = Refusing(RunConfig(), Drawn(1))
    world.patch = monkeypatch
    with pytest.raises(BrokerBug, match="the topic was refused: TOPIC_ALREADY_EXISTS"):
        world.boot()
