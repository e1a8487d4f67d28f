"""Who may never hear of a leader, in the end: two nodes cut off apart excuse a client that is
connected to both, two that are cut off together know better (sim-S64)."""

from __future__ import annotations

import pytest

from ottla.sim.lost_clients import lost
from ottla.sim.settings import RunConfig
from sim_begun import MS, begun

CORE = (2, 3, 5)
CUT_OFF = (1, 4)


def cut_off(*, together):
    """A world of five nodes, of which 1 and 4 are cut off; and a consumer that 4 told last."""
    world, clients = begun(RunConfig(nodes=5, producers=0, consumers=1, client_model="java"))
    links = [(each, other) for each in CUT_OFF for other in CORE]
    links += [] if together else [CUT_OFF]
    world.network.cut([*links, *((other, each) for each, other in links)])
    world.kernel.run(world.kernel.now + 10_000 * MS)
    leader = world.leader(0)
    assert leader is not None
    assert leader.node_id in CORE
    (consumer,) = clients.consumers
    consumer.view.told_by = 4
    return world, consumer


@pytest.mark.parametrize("together", [True, False])
def test_nodes_that_are_cut_off_apart_send_a_client_to_one_another(monkeypatch, together):
    world, consumer = cut_off(together=together)
    monkeypatch.setattr(consumer, "reached", lambda: CUT_OFF)
    why = "" if together else "the nodes [1, 4] in turn, which are not healed and do not hear each"
    assert lost(world, consumer, 0, CORE).startswith(why)
    assert bool(lost(world, consumer, 0, CORE)) is not together


@pytest.mark.parametrize("reached", [(1, 2, 4), (4,), ()])
def test_who_is_connected_to_a_healed_node_or_to_one_alone_must_find_the_leader(
    monkeypatch, reached
):
    world, consumer = cut_off(together=False)
    monkeypatch.setattr(consumer, "reached", lambda: reached)
    assert lost(world, consumer, 0, CORE) == ""


def test_who_was_told_by_a_healed_node_must_find_the_leader(monkeypatch):
    world, consumer = cut_off(together=False)
    monkeypatch.setattr(consumer, "reached", lambda: CUT_OFF)
    consumer.view.told_by = 2
    assert lost(world, consumer, 0, CORE) == ""
