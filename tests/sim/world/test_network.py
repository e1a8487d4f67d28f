"""The network between nodes: what becomes of messages when links stop and nodes begin anew."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.broker.controller.client import ControlRequest
from ottla.broker.turn.commands import Position
from ottla.raft.messages import AppendReply
from ottla.sim.chance.choices import Replayed, Tape
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.kernel import Kernel
from ottla.sim.world.network import SimNetwork

SECOND = 1_000_000


class Wired:
    """Two nodes and what node 2 has received."""

    def __init__(self) -> None:
        self.kernel = Kernel()
        self.network = SimNetwork(self.kernel, Replayed(Tape()), RunConfig())
        self.received: list[Any] = []
        for node in (1, 2):
            self.begin(node)

    def begin(self, node: int) -> None:
        """A new life of a node."""
        self.network.attach(node, lambda _, message: self.received.append(message))

    def run(self) -> None:
        """Let everything arrive that does."""
        self.kernel.run(self.kernel.now + SECOND)


def call() -> ControlRequest:
    """A message that comes once, and only while both ends live as they did."""
    return ControlRequest(1, 1, 1, Position(), SECOND)


@pytest.mark.parametrize("clogged", [False, True])
@pytest.mark.parametrize("anew", [1, 2])
def test_a_call_does_not_outlive_who_made_it_or_who_was_meant(clogged, anew):
    """What a clogged link had kept was sent by the new life of its sender."""
    wired = Wired()
    if clogged:
        wired.network.clog((1, 2))
    wired.network.send(1, 2, call())
    wired.network.detach(anew)
    wired.begin(anew)
    if clogged:
        wired.network.release((1, 2))
    wired.run()
    assert wired.received == []
    assert wired.network.dropped == 1


def test_a_clogged_link_keeps_calls_and_what_outlives_its_sender():
    wired = Wired()
    wired.network.clog((1, 2))
    reply = AppendReply(1, 1, 2, 1, True, 1)
    for message in (call(), reply):
        wired.network.send(1, 2, message)
    wired.run()
    assert wired.received == []
    wired.network.release((1, 2))
    wired.run()
    assert sorted(type(each).__name__ for each in wired.received) == [
        "AppendReply",
        "ControlRequest",
    ]
    wired.network.clog((1, 2))
    wired.network.send(1, 2, reply)
    wired.network.detach(1)
    wired.network.release((1, 2))
    wired.run()
    assert wired.received[2:] == [reply]
