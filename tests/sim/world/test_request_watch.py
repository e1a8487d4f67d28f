"""`RequestWatch`: what is late leaves a row, and what could not be in time leaves none.

Nodes here are the broker's own, and one that never answers lacks a handler. Time is the world's:
what waits is waited for in virtual seconds.
"""

import pytest

from ottla.broker.turn.tickets import ProduceTicket
from ottla.broker.wire.requests import MetadataRequest
from ottla.log.build import build_batch
from ottla.log.record_batch import read_batch
from ottla.log.types import RecordBatch
from ottla.sim.chance.choices import Drawn
from ottla.sim.invariants.judge import judge
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.frames import Frame, fetch
from ottla.sim.world.listener import listener_of
from ottla.sim.world.world import SECOND, World

CLIENT = 77


@pytest.fixture
def world():
    world = World(RunConfig(nodes=3), Drawn(1))
    world.boot()
    return world


def ask(world, node, *requests):
    """Send these on one connection."""
    connection = world.clients.connect(CLIENT, node, lambda _: None, lambda _: None)
    for number, request in enumerate(requests, 1):
        connection.send(Frame(number, request))
    return connection


def late(world, span):
    """The `late` rows of that time and its end."""
    world.kernel.run(world.kernel.now + span)
    world.note_unanswered()
    return [row for row in world.history.rows if row.kind == "late"]


def mute(world, node, kind):
    """That node never answers such requests."""
    world.lives[node].node.server.handlers = {
        **world.lives[node].node.server.handlers,
        kind: lambda *_: None,
    }


def test_what_is_answered_in_time_leaves_no_row(world):
    leader = world.leader(0).node_id
    ask(world, leader, MetadataRequest(), fetch(0, 0, 1_000, SECOND))
    assert late(world, 5 * SECOND) == []


def test_a_ticket_whose_time_was_over_at_once_is_answered_in_time(world):
    """Its node was frozen meanwhile: it was said to take longer than -4 s (80273)."""
    life = world.leader(0)
    batch = read_batch(build_batch([b"x"]))
    assert isinstance(batch, RecordBatch)
    ticket = ProduceTicket(batch, -1, lambda _: None, deadline=0)
    listener_of(life).watches.requests.begin(CLIENT, ticket)
    world.kernel.run(world.kernel.now + 2_000)
    listener_of(life).watches.requests.ended(ticket)
    assert late(world, 0) == []


def test_what_is_never_answered_is_found_at_the_end(world):
    mute(world, 2, MetadataRequest)
    ask(world, 2, MetadataRequest())
    (row,) = late(world, 2 * SECOND)
    assert (row.node, row.client, row.code, row.aux) == (2, CLIENT, "Metadata, open", 0)
    assert row.value > SECOND
    assert "sim-I44" in judge(world.history.rows).broken


def test_who_waits_behind_it_is_not_blamed(world):
    mute(world, 2, MetadataRequest)
    ask(world, 2, MetadataRequest(), fetch(0, 0, 1_000, 0))
    assert [row.code for row in late(world, 2 * SECOND)] == ["Metadata, open"]


def test_a_connection_that_is_lost_is_counted(world):
    mute(world, 2, MetadataRequest)
    connection = ask(world, 2, MetadataRequest(), MetadataRequest())
    world.kernel.run(world.kernel.now + 5_000)
    connection.reset("reset")
    (row,) = late(world, SECOND)
    assert (row.node, row.client, row.aux) == (None, None, 2)
    assert "sim-I44" not in judge(world.history.rows).broken


def test_a_frozen_node_owes_nothing_until_it_goes_on(world):
    world.freeze(2)
    ask(world, 2, MetadataRequest())
    world.kernel.run(world.kernel.now + 2 * SECOND)
    world.thaw(2)
    assert late(world, SECOND) == []


@pytest.mark.parametrize("again", [False, True])
def test_a_slow_node_owes_nothing_until_it_is_itself_again(world, again):
    world.lives[2].clockwork.slowness = 500
    mute(world, 2, MetadataRequest)
    ask(world, 2, MetadataRequest())
    world.kernel.run(world.kernel.now + SECOND)
    if again:
        world.lives[2].clockwork.slowness = 1
    assert [row.code for row in late(world, 5 * SECOND)] == ["Metadata, open"] * again


def test_a_clock_that_jumps_makes_nobody_late(world):
    leader = world.leader(0).node_id
    ask(world, leader, fetch(0, 0, 1_000, 5 * SECOND))
    world.kernel.run(world.kernel.now + SECOND)
    world.jump(leader, 60 * SECOND)
    assert late(world, SECOND) == []


def test_a_dead_node_owes_nothing(world):
    mute(world, 2, MetadataRequest)
    ask(world, 2, MetadataRequest())
    world.kernel.run(world.kernel.now + SECOND)
    world.crash(2)
    world.start(2)
    assert [row for row in late(world, SECOND) if row.client] == []
