"""A world that has begun, for tests of how a run ends: nodes are led, and clients are at work."""

from __future__ import annotations

import pytest

from ottla.broker.images import BrokerImage
from ottla.raft.types import NodeId
from ottla.sim.chance.choices import Replayed, Tape
from ottla.sim.clients.workload import Clients, make_clients
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.world import World

MS = 1_000
LATE = dict.fromkeys(range(100), 400 * MS)
"""Waits of a node before an election: without, two of three would stand at once, for ever."""
THIRD_LATE = Tape({"election 3": LATE})


def begun(config: RunConfig, tape: Tape = THIRD_LATE) -> tuple[World, Clients]:
    """The world of a configuration, whose choices are those of the tape, and its clients."""
    world = World(config, Replayed(tape))
    world.boot()
    clients = make_clients(world)
    clients.start()
    return world, clients


def cut_off(monkeypatch: pytest.MonkeyPatch, world: World, node: NodeId) -> None:
    """The node hears nobody, as it says itself, and names all, itself too: it leads something."""
    told = world.lives[node].node
    named = [BrokerImage(each, "", 0) for each in world.nodes]
    monkeypatch.setattr(told.beats, "alive", lambda peer, *_: peer == node)
    monkeypatch.setattr(told, "brokers", lambda _=(): named)
