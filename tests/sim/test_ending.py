"""How a run ends: what the judge asks of its end is what the end waits for, and what nobody could
bring about is explained instead. So is what clients gave up before they were served: they come to
rest by that, too, which shows nothing.
"""

from __future__ import annotations

from ottla.sim.choices import Tape
from ottla.sim.ending import MS, Ending
from ottla.sim.invariants.judge import judge
from ottla.sim.settings import RunConfig
from sim_begun import LATE, begun


def test_the_end_waits_for_a_controller_too():
    """Seed 0 of M01 ended between two controllers and was blamed for it by sim-I31:
    the partition had its leader, and nobody waited for the other group."""
    tape = Tape({f"election {node}": LATE for node in (2, 3)})
    world, clients = begun(RunConfig(producers=0, consumers=0), tape)
    controller = world.controller()
    assert controller is not None
    seat = world.seats(0)[controller.node_id]
    assert seat.replica.core.transfer(2, controller.node.now())
    controller.node.runner.wake(seat)
    world.until(lambda: world.leader(0) is world.lives[2], 10_000 * MS, "another leader")
    world.network.isolate(controller.node_id)
    world.until(lambda: world.controller() is None, 10_000 * MS, "no controller")
    ending = Ending(world, clients)
    ending.settle()
    ending.finish()
    world.observer.final(world)
    assert world.controller() is not None
    assert judge(world.history.rows).anomalies == ()


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
    seat = world.lives[back].node.runner.seats[0]
    assert seat.replica.transfer(2, controller.node.now())
    controller.node.runner.wake(seat)
    world.until(lambda: world.controller() is world.lives[2], 10_000 * MS, "another controller")
    world.crash(back, power=True)
    # Partition 3 is on nodes 5, 1 and 2: in the core only 5 knows.
    world.network.cut([(2, back), (back, 2), (2, 5), (5, 2)])
    world.until(lambda: world.leader(3) is None, 10_000 * MS, "no leader")
    ending = Ending(world, clients)
    ending.settle()
    assert ending.core == (1, 4, 5)
    assert any("the controller leads from outside" in each for each in ending.unavoidable)
    ending.finish()
    world.observer.final(world)
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
    assert told.startswith("nothing was stored in partition 0 once a majority was healed: ")
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
    world.observer.final(world)
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
