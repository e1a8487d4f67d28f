"""Commands on their way to the controller's leader, and answers that find nobody any more.

Expectations from `client.py`: an answer belongs to the life that asked, and what one leader
did not answer the next is asked.
"""

from __future__ import annotations

from typing import Any

import pytest

from ottla.broker.controller.client import (
    RETRY_AFTER,
    ControlClient,
    ControlRequest,
    ControlResponse,
)
from ottla.broker.errors import ErrorCode
from ottla.broker.turn.commands import AllocateProducerIds, CreateTopic, Position

NOW = 1_000_000
PATIENCE = 10_000_000
COMMAND = CreateTopic("t")


class Life:
    """A node's control client whose controller leads elsewhere."""

    def __init__(self, incarnation):
        self.sent: list[Any] = []
        self.to: list[int] = []
        self.outcomes: list[Any] = []
        self.led = 2, 1
        self.calls: list[Any] = []
        self.client = ControlClient(
            1,
            incarnation,
            now=lambda: NOW,
            call_at=self.call_at,
            submit=self.outcomes.append,
            send=self.send,
            leader=lambda: self.led,
        )

    def call_at(self, when, call):
        self.calls.append((when, call))
        return lambda: None

    def send(self, to, message):
        self.sent.append(message)
        self.to.append(to)

    def hear(self, leader, term):
        """The node hears who leads, 0 for nobody."""
        self.led = leader, term
        self.client.leader_moved()

    def sleep(self, span):
        """Make the calls that are due by then."""
        due = [call for when, call in self.calls if when <= NOW + span]
        self.calls = [each for each in self.calls if each[0] > NOW + span]
        for call in due:
            call()

    def ask(self, command):
        """Returns what goes to the leader."""
        done = lambda error, result: self.outcomes.append((error, result))  # noqa: E731
        self.client.request(command, done, NOW + PATIENCE)
        (request,) = self.sent
        assert isinstance(request, ControlRequest)
        return request


def answer(request, index=0, *, error=ErrorCode.NONE, sender=2, **result):
    return ControlResponse(sender, request.incarnation, request.number, error, result, index)


def test_an_answer_to_an_earlier_life_is_not_taken_for_one_to_this():
    """Every life counts its requests from 1: the first answer that came was taken, whatever the
    question had been, and a block of producer ids made of a topic's description stopped the node.
    """
    before = Life(incarnation=1).ask(COMMAND)
    life = Life(incarnation=2)
    now = life.ask(AllocateProducerIds(1))
    assert before.number == now.number
    life.client.answered(answer(before, name="t"))
    assert life.outcomes == []
    life.client.answered(answer(now, first=0))
    assert life.outcomes == [(ErrorCode.NONE, {"first": 0})]


def test_the_leader_answers_the_life_that_asked():
    leader = Life(incarnation=7)
    request = Life(incarnation=2).ask(COMMAND)
    leader.client.serve(request)
    (ticket,) = leader.outcomes
    ticket.on_done(ticket)
    (response,) = leader.sent
    assert (response.incarnation, response.number) == (2, request.number)


def test_an_asker_that_breaks_on_its_outcome_breaks_nobody_else(caplog):
    """It broke the pump that applied the decision, and with it the node."""
    life = Life(incarnation=1)
    outcomes = []

    def breaks(*_):
        raise RuntimeError("no more")

    for done in (breaks, lambda *outcome: outcomes.append(outcome)):
        life.client.request(COMMAND, done, NOW + 1000)
    for request in tuple(life.sent):
        life.client.answered(answer(request, index=7))
    life.client.applied(7)
    assert outcomes == [(ErrorCode.NONE, {})]
    assert "could not be delivered" in caplog.text


def test_what_a_leader_left_unanswered_goes_to_the_next_under_the_same_number():
    """It was sent once: after the leader's death nothing happened until the deadline."""
    life = Life(incarnation=1)
    request = life.ask(COMMAND)
    life.hear(0, 2)
    assert life.sent == [request]
    life.hear(3, 2)
    assert life.sent == [request], "the retry that waits already brings it there"
    life.sleep(RETRY_AFTER)
    assert (life.sent, life.to) == ([request, request], [2, 3])
    life.client.answered(answer(request, sender=3, name="t"))
    assert life.outcomes == [(ErrorCode.NONE, {"name": "t"})]


@pytest.mark.parametrize("led", [(3, 2), (2, 3)], ids=["another", "the same in a later term"])
def test_it_goes_to_a_new_leader_at_once_and_to_the_same_one_never_twice(led):
    life = Life(incarnation=1)
    request = life.ask(COMMAND)
    life.client.leader_moved()
    assert life.sent == [request]
    life.hear(*led)
    life.client.leader_moved()
    assert (life.sent, life.to) == ([request, request], [2, led[0]])


def test_it_goes_to_this_node_s_own_replica_when_that_leads_now():
    life = Life(incarnation=1)
    request = life.ask(COMMAND)
    life.hear(1, 2)
    (ticket,) = life.outcomes
    assert ticket.origin == (request.sender, request.incarnation, request.number)
    life.outcomes.clear()
    ticket.on_done(ticket)
    assert life.outcomes == [(ErrorCode.NONE, {})]


def test_the_second_of_two_answers_finds_nobody():
    life = Life(incarnation=1)
    request = life.ask(COMMAND)
    life.hear(3, 2)
    life.client.answered(answer(request, index=7, name="t"))
    life.client.answered(answer(request, sender=3, error=ErrorCode.TOPIC_ALREADY_EXISTS))
    assert life.outcomes == [], "decided, and not applied here yet"
    life.hear(4, 3)
    assert len(life.sent) == 2, "decided"
    life.client.applied(7)
    life.client.answered(answer(request, index=8, sender=3))
    life.sleep(PATIENCE)
    assert life.outcomes == [(ErrorCode.NONE, {"name": "t"})]


def test_a_leader_that_lost_its_office_over_a_command_leaves_it_to_the_next():
    life = Life(incarnation=1)
    request = life.ask(COMMAND)
    life.client.answered(answer(request, index=7, error=ErrorCode.NOT_CONTROLLER))
    assert (life.sent, life.outcomes) == ([request], [])
    life.sleep(RETRY_AFTER)
    assert life.sent == [request, request]


def test_a_late_word_of_the_leader_before_says_nothing_about_this_one():
    life = Life(incarnation=1)
    request = life.ask(COMMAND)
    life.hear(3, 2)
    life.client.answered(answer(request, error=ErrorCode.NOT_CONTROLLER))
    life.sleep(RETRY_AFTER)
    assert life.to == [2, 3]


def test_without_a_leader_the_outcome_is_not_known_at_the_deadline():
    life = Life(incarnation=1)
    life.ask(COMMAND)
    life.hear(0, 2)
    life.sleep(PATIENCE)
    assert life.outcomes == [(ErrorCode.REQUEST_TIMED_OUT, {})]


@pytest.mark.parametrize("command", [Position(), COMMAND])
def test_what_this_node_has_not_applied_by_the_deadline_is_not_confirmed(command):
    """The leader that answered died before its follower here had caught up: at the deadline the
    follower took its catalog for complete, and told clients that a topic does not exist which they
    had made (sim-I49)."""
    life = Life(incarnation=1)
    life.client.answered(answer(life.ask(command), 9))
    life.client.applied(8)
    life.sleep(PATIENCE)
    assert life.outcomes == [(ErrorCode.REQUEST_TIMED_OUT, {})]


def test_producer_ids_that_were_decided_are_given_out_at_the_deadline():
    """Nobody else gets them, and no catalog has to know of them."""
    life = Life(incarnation=1)
    request = life.ask(AllocateProducerIds(1))
    life.client.answered(answer(request, 9, first=1000))
    life.sleep(PATIENCE)
    assert life.outcomes == [(ErrorCode.NONE, {"first": 1000})]


@pytest.mark.parametrize(
    ("command", "index", "error"),
    [(Position(), 3, ErrorCode.NONE), (COMMAND, 0, ErrorCode.TOPIC_ALREADY_EXISTS)],
)
def test_what_a_deposed_leader_says_of_its_own_catalog_is_not_believed(command, index, error):
    """One that was frozen answers what it was asked before it hears of its successor."""
    life = Life(incarnation=1)
    request = life.ask(command)
    life.hear(3, 2)
    life.client.answered(answer(request, index, error=error))
    life.client.applied(3)
    assert life.outcomes == []
    life.client.answered(answer(request, 9, sender=3))
    life.client.applied(9)
    assert life.outcomes == [(ErrorCode.NONE, {})]


def test_two_lives_on_one_disk_that_begin_at_the_same_time_share_no_number():
    """By a simulated clock every life of the first node begins at 0; the second command was told
    the outcome of the first, and never carried out."""
    first, second = Life(incarnation=0), Life(incarnation=0)
    first.client.begin(last_index=0)
    second.client.begin(last_index=1)
    assert first.ask(COMMAND).number == 1
    assert second.ask(COMMAND).number > 1000
