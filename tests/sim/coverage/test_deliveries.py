"""A message is late by the leaders that were elected between its sending and its arrival."""

from __future__ import annotations

import pytest

from ottla.broker.controller.client import ControlResponse
from ottla.broker.errors import ErrorCode
from ottla.broker.heartbeats.heartbeats import BeatAck
from ottla.raft.messages import RequestVote, TimeoutNow
from ottla.sim.coverage.deliveries import ARRIVED, MORE, ONE, Deliveries
from ottla.sim.history.history import CONTROLLER_PARTITION

ACK = BeatAck(1, 2, 1, 1, 1, 0)
ORDER = TimeoutNow(5, 1, 2, 3)


@pytest.mark.parametrize(
    ("message", "partition", "leaders", "late"),
    [
        (ORDER, 0, [], ARRIVED),
        (ORDER, 0, [0], ONE),
        (ORDER, 0, [0, 0, 0], MORE),
        (ORDER, 0, [1, CONTROLLER_PARTITION], ARRIVED),  # of other groups
        (ACK, None, [1], ONE),  # it vouches for all
        (ControlResponse(1, 1, 1, ErrorCode.NONE, {}, 0), None, [0, 1], ARRIVED),
        (ControlResponse(1, 1, 1, ErrorCode.NONE, {}, 0), None, [CONTROLLER_PARTITION], ONE),
    ],
    ids=str,
)
def test_a_message_is_late_by_the_leaders_elected_on_its_way(message, partition, leaders, late):
    deliveries = Deliveries()
    deliveries.elected(0)
    deliveries.sent(2, message, partition)
    for each in leaders:
        deliveries.elected(each)
    deliveries.arrived(2, message, partition)
    name = type(message).__name__
    assert deliveries.counts == {(name, each): 1 for each in {ARRIVED, late}}


def test_what_comes_twice_counts_twice_and_what_is_held_up_leaves_once():
    deliveries = Deliveries()
    deliveries.sent(2, ORDER, 0)
    deliveries.arrived(2, ORDER, 0)
    deliveries.elected(0)
    deliveries.sent(2, ORDER, 0)  # a link that was clogged lets it go on
    deliveries.arrived(2, ORDER, 0)
    assert deliveries.counts == {("TimeoutNow", ARRIVED): 2, ("TimeoutNow", ONE): 1}


def test_what_nobody_saw_leave_does_not_count():
    deliveries = Deliveries()
    deliveries.arrived(2, ORDER, 0)
    deliveries.sent(3, ORDER, 0)
    deliveries.arrived(2, ORDER, 0)
    assert deliveries.counts == {}


def test_a_pre_vote_is_a_type_of_its_own():
    deliveries = Deliveries()
    for pre in (False, True, True):
        ask = RequestVote(5, 1, 2, 3, 1, 1, pre=pre)
        deliveries.sent(2, ask, 0)
        deliveries.arrived(2, ask, 0)
    assert deliveries.counts == {("RequestVote", ARRIVED): 1, ("RequestVote, pre-vote", ARRIVED): 2}
