"""When a new life lets clients in, and when it believes its catalog: `CatchingUp` by itself.

Time goes on when a test says so; the controller's answers are the test's, too. What a node that
does not know all topics says to clients is in `test_directory_silent.py`.
"""

from typing import Any

import pytest

from ottla.broker.config import ClusterConfig
from ottla.broker.errors import ErrorCode
from ottla.broker.node.readiness import CATCH_UP_TIMEOUTS, CatchingUp
from ottla.broker.turn.commands import Position

CONFIG = ClusterConfig()
PATIENCE = CATCH_UP_TIMEOUTS * CONFIG.election_timeout_ms * 1000


class Life:
    """A node that has been started: its clock, its questions to the controller, its listener."""

    def __init__(self):
        self.time = 1
        self.timers = []
        self.questions: list[Any] = []
        self.served = 0
        self.catching_up = CatchingUp(
            CONFIG,
            now=lambda: self.time,
            call_at=self.call_at,
            control=lambda command, done, _: self.questions.append((command, done)),
            serve=self.serve,
        )
        self.catching_up.begin()

    def call_at(self, when, call):
        """Put it on the list; cancelled, it comes off."""
        timer = when, call
        self.timers.append(timer)
        return lambda: self.timers.remove(timer) if timer in self.timers else None

    def serve(self):
        """Clients are let in."""
        self.served += 1

    def wait(self, time=0):
        """Let time go on, and ring what is due."""
        self.time += time
        due = [each for each in self.timers if each[0] <= self.time]
        for timer in due:
            self.timers.remove(timer)
            timer[1]()

    def answer(self, error=ErrorCode.NONE):
        """The controller's answer to the one question that is open."""
        ((command, done),) = self.questions
        self.questions.clear()
        assert command == Position()
        done(error, {})

    @property
    def state(self):
        """Whether clients are served, and whether all topics are known."""
        return self.catching_up.serving, self.catching_up.informed


@pytest.fixture
def life():
    return Life()


def test_the_controllers_word_lets_clients_in_behind_the_turn(life):
    life.catching_up.controller_heard()
    life.catching_up.controller_heard()  # its next term
    life.wait()
    life.answer()
    assert life.state == (False, True)
    life.wait()
    assert (life.state, life.served) == ((True, True), 1)
    life.wait(PATIENCE)
    assert (life.served, life.questions) == (1, [])


def test_clients_do_not_wait_for_ever_and_the_question_stays(life):
    life.wait(PATIENCE)
    assert (life.state, life.served) == ((True, False), 1)
    life.catching_up.controller_heard()
    life.wait()
    for _ in range(3):
        life.answer(ErrorCode.REQUEST_TIMED_OUT)
        assert not life.questions, "not in the same breath"
        life.wait(PATIENCE)
        assert life.state == (True, False)
    life.answer()
    assert (life.state, life.served) == ((True, True), 1)


def test_who_has_left_asks_no_more_and_serves_nobody(life):
    life.catching_up.controller_heard()
    life.wait()
    life.catching_up.leave()
    life.answer(ErrorCode.REQUEST_TIMED_OUT)  # as by a node that stops
    life.wait(PATIENCE)
    assert (life.state, life.served, life.questions) == ((False, False), 0, [])


def informed(life):
    """It has caught up."""
    life.catching_up.controller_heard()
    life.wait()
    life.answer()
    life.wait()
    assert life.state == (True, True)


def test_who_does_not_hear_the_controller_for_long_knows_no_longer_what_it_decided(life):
    informed(life)
    life.catching_up.controller_lost()
    life.wait(PATIENCE - 1)
    life.catching_up.controller_lost()  # another term without a leader
    assert life.state == (True, True)
    life.wait(1)
    assert life.state == (True, False)
    assert life.questions == [], "there is nobody to ask"
    life.catching_up.controller_heard()
    life.wait()
    assert life.state == (True, False), "what was decided meanwhile is still to come"
    life.answer(ErrorCode.REQUEST_TIMED_OUT)
    life.catching_up.controller_heard()
    life.wait(PATIENCE)
    life.answer()
    life.wait()
    assert (life.state, life.served) == ((True, True), 1)


def test_another_controller_within_a_while_is_asked_nothing(life):
    informed(life)
    life.catching_up.controller_lost()
    life.wait(PATIENCE - 1)
    life.catching_up.controller_heard()
    life.wait(2 * PATIENCE)
    assert (life.state, life.questions) == ((True, True), [])
