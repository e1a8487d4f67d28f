"""The beginning of a run: a topic, asked for again where the controller moved meanwhile."""

import pytest

from ottla.broker.errors import ErrorCode
from ottla.sim.choices import Drawn
from ottla.sim.settings import RunConfig
from ottla.sim.world import BrokerBug, World


class Refusing(World):
    """The first requests for a topic get answers that are given; `done_too` says whether they are
    done all the same."""

    answers: list[ErrorCode]
    patch: pytest.MonkeyPatch
    done_too = False

    def start(self, node):
        started = super().start(node)
        host = self.lives[1].node
        control = host.control

        def refuse(command, done, deadline):
            if not self.answers or command["type"] != "create_topic":
                control(command, done, deadline)
                return
            error = self.answers.pop(0)
            if self.done_too:
                control(command, lambda *_: done(error, None), deadline)
            else:
                done(error, None)

        if node == 1:
            self.patch.setattr(host, "control", refuse)
        return started


def world(patch, *answers):
    made = Refusing(RunConfig(), Drawn(1))
    made.patch, made.answers = patch, list(answers)
    return made


@pytest.mark.parametrize("done_too", [False, True])
def test_a_topic_is_asked_for_until_a_controller_answers(monkeypatch, done_too):
    refusing = world(monkeypatch, ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER)
    refusing.done_too = done_too
    refusing.boot()
    assert sorted(refusing.placement) == [0]
    assert refusing.answers == []


def test_a_topic_that_was_there_before_anybody_asked_is_a_bug(monkeypatch):
    with pytest.raises(BrokerBug, match="the topic was refused: TOPIC_ALREADY_EXISTS"):
        world(monkeypatch, ErrorCode.TOPIC_ALREADY_EXISTS).boot()


def test_a_controller_that_never_answers_is_a_bug(monkeypatch):
    with pytest.raises(BrokerBug, match="the topic was refused: NOT_CONTROLLER"):
        world(monkeypatch, *[ErrorCode.NOT_CONTROLLER] * 1_000_000).boot()
