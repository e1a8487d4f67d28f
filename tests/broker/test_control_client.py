"""Commands on their way to the controller's leader, and answers that find nobody any more.

Expectations from `control_client.py`: an answer belongs to the life that asked.
"""

from __future__ import annotations

from typing import Any

from ottla.broker.control_client import ControlClient, ControlRequest, ControlResponse
from ottla.broker.errors import ErrorCode

NOW = 1_000_000
COMMAND = {"type": "create_topic", "name": "t"}


class Life:
    """A node's control client whose controller leads elsewhere."""

    def __init__(self, incarnation):
        self.sent: list[Any] = []
        self.outcomes: list[Any] = []
        self.client = ControlClient(
            1,
            incarnation,
            now=lambda: NOW,
            call_at=lambda *_: lambda: None,
            submit=self.outcomes.append,
            send=lambda _, message: self.sent.append(message),
            leader=lambda: 2,
        )

    def ask(self, command):
        """Returns what goes to the leader."""
        done = lambda error, result: self.outcomes.append((error, result))  # noqa: E731
        self.client.request(command, done, NOW + 1000)
        (request,) = self.sent
        assert isinstance(request, ControlRequest)
        return request


def answer(request, index=0, **result):
    return ControlResponse(request.incarnation, request.number, ErrorCode.NONE, result, index)


def test_an_answer_to_an_earlier_life_is_not_taken_for_one_to_this():
    """Every life counts its requests from 1: the first answer that came was taken, whatever the
    question had been, and a block of producer ids made of a topic's description stopped the node.
    """
    before = Life(incarnation=1).ask(COMMAND)
    life = Life(incarnation=2)
    now = life.ask({"type": "allocate_producer_ids", "node": 1})
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
    for request in life.sent:
        life.client.answered(answer(request, index=7))
    life.client.applied(7)
    assert outcomes == [(ErrorCode.NONE, {})]
    assert "could not be delivered" in caplog.text
