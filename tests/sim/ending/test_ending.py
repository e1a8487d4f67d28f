"""How a run ends: what the judge asks of its end is what the end waits for, and what nobody could
bring about is explained instead. So is what clients gave up before they were served: they come to
rest by that, too, which shows nothing.
"""

from __future__ import annotations

import pytest

from ottla.broker.controller.controller import CONTROLLER_GROUP
from ottla.broker.images import LeaderImage
from ottla.broker.node.handover import hand_over
from ottla.sim.chance.choices import Tape
from ottla.sim.ending.ending import MS, Ending, NotLive
from ottla.sim.ending.rest import is_calm
from ottla.sim.invariants.judge import judge
from ottla.sim.run import Verdict, run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.frames import TOPIC
from sim_begun import LATE, begun, cut_off


def test_the_end_waits_for_a_controller_too():
    """Seed 0 of M01 ended between two controllers and was blamed for it by sim-I31:
    the partition had its leader, and nobody waited for the other group."""
    tape = Tape({f"election {node}": LATE for node in (2, 3)})
    world, clients = begun(RunConfig(producers=0, consumers=0), tape)
    controller = world.controller()
    assert controller is not None
    assert hand_over(controller.node, world.replicas(0)[controller.node_id].group, 2)
    world.until(lambda: world.leader(0) is world.lives[2], 10_000 * MS, "another leader")
    world.network.isolate(controller.node_id)
    world.until(lambda: world.controller() is None, 10_000 * MS, "no controller")
    ending = Ending(world, clients)
    ending.settle()
    ending.finish()
    world.note_final()
    assert world.controller() is not None
    assert judge(world.history.rows).anomalies == ()


@pytest.mark.slow
def test_who_cannot_hear_the_controller_is_not_asked_to_lead():
    """Seed 30252: two replicas of three came back in the core, one of them cut off from the
    controller's leader, which led from outside; it never learned what it hosted."""
    # Nodes 2 and 3 of five stay outside of the core.
    tape = Tape({"ending": {0: 2, 1: 1, 2: 1}})
    world, clients = begun(RunConfig(nodes=5, partitions=5, producers=0, consumers=0), tape)
    back = 1
    controller = world.controller()
    assert controller is not None
    assert controller.node_id == back
    assert hand_over(controller.node, CONTROLLER_GROUP, 2)
    world.until(lambda: world.controller() is world.lives[2], 10_000 * MS, "another controller")
    world.crash(back, power=True)
    # Partition 3 is on nodes 5, 1 and 2: in the core only 5 knows.
    world.network.cut([(2, back), (back, 2), (2, 5), (5, 2)])
    world.until(lambda: world.leader(3) is None, 10_000 * MS, "no leader")
    ending = Ending(world, clients)
    ending.settle()
    assert ending.core == (1, 4, 5)
    assert any("controller's leader, which was not healed" in each for each in ending.unavoidable)
    ending.finish()
    world.note_final()
    assert judge(world.history.rows).anomalies == ()


def test_clients_that_gave_up_before_they_were_served_are_told_of(monkeypatch):
    """They come to rest as well, and the run was called good without a word."""
    world, clients = begun(RunConfig(producers=1, consumers=0, records=0), Tape())

    def gives_up():
        world.history.add("info", client=1, partition=0, code="EXPIRED", acks=-1)

    monkeypatch.setattr(clients, "stop_faults", gives_up)
    ending = Ending(world, clients)
    ending.settle()
    (told,) = ending.unavoidable
    assert told.startswith("nothing was stored in partition 0 after a majority was healed: ")
    assert "(1 EXPIRED)" in told


def test_a_leader_that_is_left_out_stays_as_broken_as_it_is_and_the_others_store_a_record():
    config = RunConfig(producers=1, consumers=0, records=0, leader_left_out=True, probes=True)
    world, clients = begun(config)
    leader = world.leader(0)
    assert leader is not None
    world.network.isolate(leader.node_id)
    ending = Ending(world, clients)
    ending.settle()
    assert leader.node_id not in ending.core
    assert [row.kind for row in world.history.rows].count("ok") == 1
    ending.finish()
    world.note_final()
    assert judge(world.history.rows).anomalies == ()


def test_a_frozen_leader_is_none_that_the_end_may_wait_for():
    """It counted as the leader, so a core that never elected anybody passed for live."""
    config = RunConfig(producers=0, consumers=0, leader_left_out=True)
    world, clients = begun(config)
    frozen = world.leader(0)
    assert frozen is not None
    world.freeze(frozen.node_id)
    ending = Ending(world, clients)
    ending.settle()
    assert frozen.node_id not in ending.core
    leader = world.leader(0)
    assert leader is not None
    assert leader.node_id in ending.core


def test_the_controller_is_who_leads_in_the_latest_term():
    """A frozen one of an older term was asked first, for its number was lower."""
    world, _ = begun(RunConfig(producers=0, consumers=0))
    first = world.controller()
    assert first is world.lives[1]
    world.freeze(1)
    world.until(lambda: world.controller() is world.lives[2], 10_000 * MS, "another controller")
    world.thaw(1)
    world.until(lambda: world.controller() is world.lives[2], 10_000 * MS, "the same one")


def led_by_two_and_controlled_from_outside(**settings):
    """Node 2 leads the partition, node 1 is the controller's leader, and will not be healed."""
    tape = Tape({"ending": {0: 1, 1: 0}} | {f"election {node}": LATE for node in (2, 3)})
    world, clients = begun(RunConfig(producers=0, **settings), tape)
    controller = world.controller()
    assert controller is world.lives[1]
    assert hand_over(controller.node, world.replicas(0)[1].group, 2)
    world.until(lambda: world.leader(0) is world.lives[2], 10_000 * MS, "another leader")
    return world, clients


def test_what_the_core_leads_is_asked_for_also_where_the_controller_is_outside(monkeypatch):
    """Nothing was: neither that replicas agree, nor, anywhere, that consumers get on."""
    world, clients = led_by_two_and_controlled_from_outside(consumers=1)
    asked = []

    def behind(partitions):
        asked.append(list(partitions))
        return []

    monkeypatch.setattr(clients, "behind", behind)
    ending = Ending(world, clients)
    ending.settle()
    assert ending.core == (2, 3)
    assert world.controller() is world.lives[1]
    assert asked == [[0]]


def test_a_consumer_that_gets_no_further_is_one_that_is_stuck(monkeypatch):
    world, clients = led_by_two_and_controlled_from_outside(consumers=1)
    (consumer,) = clients.consumers
    monkeypatch.setattr(clients, "behind", lambda _: [(0, consumer)])
    with pytest.raises(NotLive, match="consumers at the end of what is led"):
        Ending(world, clients).settle()


@pytest.mark.slow
@pytest.mark.parametrize("leads_another", [True, False])
def test_a_consumer_is_excused_by_a_node_outside_that_leads_another_partition_alone(
    monkeypatch, leads_another
):
    world, clients = led_by_two_and_controlled_from_outside(consumers=1, partitions=2)
    (consumer,) = clients.consumers

    def behind(partitions):
        consumer.view.told_by = 1
        return [(0, consumer)] if 0 in partitions else []

    monkeypatch.setattr(clients, "behind", behind)
    ending = Ending(world, clients)
    if not leads_another:
        with pytest.raises(NotLive):
            ending.settle()
        assert ending.unavoidable == []
        return
    first, second = (each.group for each in world.lives[1].node.topics()[TOPIC].partitions)
    leads = {first: LeaderImage(0, 0, ()), second: LeaderImage(1, 0, ())}
    monkeypatch.setattr(world.lives[1].node, "leader", leads.__getitem__)
    cut_off(monkeypatch, world, 1)
    ending.settle()
    told = ending.unavoidable[0]
    assert told.startswith("whether partition 0 can be read to its end was not checked: ")


@pytest.mark.parametrize(("links", "core"), [("1-2:600000", (1, 2, 3)), ("1-2:400000", (1, 2))])
def test_only_nodes_among_which_a_leader_can_stay_are_left_to_themselves(links, core):
    """Two of three that are too far apart for an election timeout elected one another in turn."""
    tape = Tape({"ending": {0: 1, 1: 2}, "election 3": LATE})
    world, clients = begun(RunConfig(producers=0, consumers=0, links=links), tape)
    ending = Ending(world, clients)
    ending.settle()
    assert ending.core == core


def test_a_partition_that_is_led_from_outside_is_told_of():
    world, clients = begun(
        RunConfig(producers=0), Tape({"ending": {0: 1, 1: 0}, "election 3": LATE})
    )
    assert world.leader(0) is world.lives[1]
    ending = Ending(world, clients)
    ending.settle()
    assert ending.core == (2, 3)
    (told,) = ending.unavoidable
    assert told.endswith("node 1, which still leads it, was not healed")


@pytest.mark.parametrize("within", [True, False])
def test_clients_of_a_partition_that_is_excused_must_give_up_where_they_do_within_the_bound(
    monkeypatch, within
):
    """Nobody asked whether any client came to rest, where one partition could not be served."""
    config = RunConfig(nodes=3, partitions=2, replicas=1, consumers=0, settle_ms=20_000)
    config = config.with_(delivery_timeout_ms=10_000 if within else 30_000)
    world, clients = begun(config, Tape({"ending": {0: 1, 1: 0}}))
    monkeypatch.setattr(clients, "idle", lambda: False)
    ending = Ending(world, clients)
    if within:
        with pytest.raises(NotLive, match="answers for all that clients wait for"):
            ending.settle()
    else:
        ending.settle()
    assert any("did not check partition" in each for each in ending.unavoidable)


def test_what_lost_its_leader_since_clients_were_at_rest_does_not_agree(monkeypatch):
    """Nobody led any partition, so that there was none of which anything was asked."""
    config = RunConfig(producers=0, consumers=0, settle_ms=10_000)
    world, clients = begun(config)

    def at_rest():
        for node in world.nodes:
            world.network.isolate(node)
        world.until(lambda: world.leader(0) is None, 10_000 * MS, "no leader")
        return True

    monkeypatch.setattr(clients, "idle", at_rest)
    with pytest.raises(NotLive, match="agreement of the core"):
        Ending(world, clients).settle()


@pytest.mark.slow
def test_nobody_is_said_to_agree_before_there_is_a_controller(monkeypatch):
    """Seeds 9023643 and 9088496: it was elected later, told a node that came back what that one
    hosts, and the run was over before the node had it."""
    world, clients = begun(RunConfig(producers=0, consumers=0))
    ending = Ending(world, clients)
    ending.settle()
    controlled = []

    def at_rest():
        controller = world.controller()
        assert controller is not None
        world.network.isolate(controller.node_id)
        world.until(lambda: world.controller() is None, 10_000 * MS, "no controller")
        return True

    def behind(_):
        controlled.append(world.controller() is not None)
        return []

    monkeypatch.setattr(clients, "idle", at_rest)
    monkeypatch.setattr(clients, "behind", behind)
    with pytest.raises(NotLive, match="agreement of all"):
        ending.finish()
    world.heal(world.nodes)
    monkeypatch.setattr(clients, "idle", lambda: True)
    ending.finish()
    assert all(controlled)


def test_the_end_is_when_everything_is_right_at_once(monkeypatch):
    """What was right before a leader was deposed was taken for granted when there was another."""
    world, clients = begun(RunConfig(producers=0, consumers=1))
    ending = Ending(world, clients)
    ending.settle()
    (consumer,) = clients.consumers
    answers = [[], [(0, consumer)], [(0, consumer)], []]
    monkeypatch.setattr(clients, "behind", lambda _: answers.pop(0))
    ending.finish()
    assert answers == []


def test_leaders_are_awaited_once_more_when_the_topics_have_come_right():
    """The controller's leader, just healed, resigned while topics were waited for (203576)."""
    outcome = run(203576, RunConfig(load_ms=1_000, records=12, fault_every_ms=250))
    assert outcome.verdict is Verdict.OK, outcome.reason


@pytest.mark.parametrize("slow", [False, True])
def test_a_run_does_not_rest_while_a_sync_is_held_up(slow):
    """Seeds 200160 and 201402 (`load_ms=1000 records=12 fault_every_ms=250`): a sync began before
    the faults ended, it ended long after, and meanwhile a leader resigned in the rest."""
    config = RunConfig(producers=0, consumers=0, slow_sync_ppm=1_000_000 if slow else 0)
    world, _ = begun(config)
    disk = world.disks[2]
    ended: list[int] = []
    if not slow:
        disk.stall(50 * MS)
    disk.sync(lambda: ended.append(world.kernel.now))
    world.heal(world.able)
    assert not disk.stalls
    assert not is_calm(world)
    world.kernel.run(world.kernel.now + 100 * MS)
    assert ended
    assert is_calm(world)


def test_a_run_does_not_rest_while_a_leader_hands_over():
    """Seed 202475, with the same settings: the transfer began before the faults ended, and its
    target was to catch up first."""
    world, _ = begun(RunConfig(producers=0, consumers=0))
    world.until(lambda: world.leader(0) is not None, 10_000 * MS, "a leader")
    leader = world.leader(0)
    assert leader is not None
    assert is_calm(world)
    target = next(node for node in world.replicas(0) if node != leader.node_id)
    assert hand_over(leader.node, world.replicas(0)[leader.node_id].group, target)
    assert not is_calm(world)
    world.until(lambda: world.leader(0) is world.lives[target], 10_000 * MS, "another leader")
    world.kernel.run(world.kernel.now + 1_000 * MS)
    assert is_calm(world)
