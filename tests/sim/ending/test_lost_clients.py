"""Who may never hear of a leader, in the end.

Two nodes cut off apart excuse a client that is connected to both, two that are cut off together
know better (sim-S64), and one that hears a majority is told (sim-S68).
"""

from __future__ import annotations

import pytest

from ottla.broker.controller.controller import CONTROLLER_GROUP
from ottla.broker.images import BrokerImage, LeaderImage
from ottla.broker.node.handover import hand_over
from ottla.sim.chance.choices import Tape
from ottla.sim.ending.lost_clients import lost
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.frames import TOPIC
from sim_begun import LATE, MS, begun

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
    why = "" if together else "the nodes [1, 4] in turn, which are not healed and know of no leader"
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


CHAIN = [(5, 4), (4, 2), (2, 1), (2, 3), (3, 1)]
"""Who hears whom: 4 hears a majority, and neither 1 nor 3; 5 hears nobody but 4."""


@pytest.mark.slow
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize(("reached", "told_by"), [((5, 4), 5), ((4, 5), 4), ((5,), 5), ((5, 2), 5)])
def test_who_hears_a_majority_excuses_nobody_and_needs_not(monkeypatch, reached, told_by, told):
    """Seed 9052948: node 4 leads another partition and did not know who leads this one, so that it
    kept its clients and those of node 5. Node 2 tells it; should it not, that is no excuse."""
    config = RunConfig(nodes=5, partitions=2, producers=0, consumers=1, client_model="java")
    world, clients = begun(config, Tape({"election 5": LATE}))
    # From node 2, the controller's leader, those that come back learn of the topic, and not who
    # leads partition 0. Node 4 leads partition 1, so that 5 names it.
    assert hand_over(world.lives[1].node, CONTROLLER_GROUP, 2)
    world.until(lambda: world.controller() is world.lives[2], 10_000 * MS, "another controller")
    pairs = [(each, other) for each in world.nodes for other in world.nodes if each != other]
    heard = {frozenset(each) for each in [*CHAIN, (2, 5)]}
    world.network.cut([each for each in pairs if frozenset(each) not in heard])
    for node in (4, 5):
        world.crash(node, power=True)
        assert world.start(node)
    world.kernel.run(world.kernel.now + 10_000 * MS)
    world.network.cut([(2, 5), (5, 2)])
    world.kernel.run(world.kernel.now + 10_000 * MS)
    assert [world.leader(0), world.leader(1)] == [world.lives[1], world.lives[4]]
    (consumer,) = clients.consumers
    consumer.view.told_by = told_by
    monkeypatch.setattr(consumer, "reached", lambda: reached)
    if not told:
        monkeypatch.setattr(world.lives[4].node.beats, "relayed", lambda *_: None)
    assert lost(world, consumer, 0, [1, 2, 3]) == ""


@pytest.mark.parametrize(
    ("reached", "told_by", "excused"),
    [((4,), 4, True), ((1, 4), 1, True), ((1,), 1, False), ((1, 2), 1, False)],
)
def test_one_that_is_cut_off_and_leads_another_partition_keeps_its_clients(
    monkeypatch, reached, told_by, excused
):
    """It must name itself to clients of that; and node 1, which is cut off as well, names it."""
    world, consumer = cut_off(together=False)
    (group,) = (each.group for each in world.lives[4].node.topics()[TOPIC].partitions)
    named = world.lives[4].node.brokers([])
    monkeypatch.setattr(world.lives[4].node, "brokers", lambda _: [*named, BrokerImage(4, "", 0)])
    leads = {group: LeaderImage(0, 0, ()), group + 1: LeaderImage(4, 0, ())}
    monkeypatch.setattr(world.lives[4].node, "leader", lambda each: leads[each])
    topic = world.lives[4].node.topics()[TOPIC]
    other = topic.partitions[0]._replace(partition=1, group=group + 1)
    two = {TOPIC: topic._replace(partitions=(*topic.partitions, other))}
    monkeypatch.setattr(world.lives[4].node, "topics", lambda: two)
    consumer.view.told_by = told_by
    monkeypatch.setattr(consumer, "reached", lambda: reached)
    assert bool(lost(world, consumer, 0, CORE)) is excused


def test_one_that_hears_a_majority_need_not_hear_of_a_leader_that_was_not_healed(monkeypatch):
    """Seed 14014895: node 3 heard a majority, of which nobody heard the leader, and it kept its
    client."""
    world, consumer = cut_off(together=False)
    leader = world.leader(0)
    assert leader is not None
    asked = next(each for each in CORE if each != leader.node_id)
    monkeypatch.setattr(world.lives[asked].node, "leader", lambda _: LeaderImage(0, 0, ()))
    consumer.view.told_by = asked
    monkeypatch.setattr(consumer, "reached", lambda: (asked,))
    healed = [each for each in CORE if each != asked]
    assert lost(world, consumer, 0, healed) == "", "one that was healed tells of it"
    healed.remove(leader.node_id)
    assert "knows no leader of this" in lost(world, consumer, 0, healed)
