"""What a program of the nemesis says it does is what becomes of the nodes.

A hand on a tape strikes a played script, so each choice of a program is told; or a run has one
program alone.
"""

from __future__ import annotations

import pytest

from ottla.broker.controller.controller import CONTROLLER_GROUP
from ottla.broker.errors import ConfigError
from ottla.sim.chance.choices import Replayed, Tape
from ottla.sim.clients.workload import make_clients
from ottla.sim.coverage.cover import reached_by
from ottla.sim.nemesis.fault_context import FaultContext
from ottla.sim.nemesis.nemesis import named
from ottla.sim.run import Verdict, run, run_choices
from ottla.sim.scenarios.script import Script
from ottla.sim.settings.settings import RunConfig
from ottla.sim.settings.settings_file import from_toml
from ottla.sim.world.world import SECOND, World

ANOTHER = Tape({"nemesis": dict.fromkeys(range(8), 1)})
"""Whoever is picked at random is not node 1, which leads."""


class Played(Script):
    """A script that keeps its world."""

    def make_world(self, config):
        self.made = super().make_world(config)
        return self.made


@pytest.mark.parametrize("program", ["crash-loop", "win-and-go"])
def test_the_leader_that_dies_for_an_election_comes_back(program):
    """Some node was started in its place, which was up most of the time, and it stayed away."""
    script = Played()
    script.play("> nodes 3\n> producers P=7\n> send P A to 1 seq 0\n> until answered")
    world = script.made
    leader = world.leader()
    assert leader is not None
    dead = leader.node_id
    named(program).run(FaultContext(world, Replayed(ANOTHER).stream("nemesis")))
    assert world.lives.get(dead) is None
    script.play("> run 20s")
    assert dead in world.lives


def test_a_crash_loop_ends():
    """Each trap but the first waited for whoever won an election later, for as long as the run."""
    script = Played()
    script.play("> nodes 3\n")
    world = script.made
    named("crash-loop").run(
        FaultContext(world, Replayed(Tape({"nemesis": {0: 3}})).stream("nemesis"))
    )
    script.play("> run 700ms\n")
    died = [row.code for row in world.history.rows if row.kind == "crash"]
    assert "its first append as leader" in died
    assert world.points.armed, "it goes on"
    for _ in range(20):  # nobody wins an election meanwhile
        for node in tuple(world.lives):
            world.crash(node)
        script.play("> run 100ms\n")
    assert not world.points.armed


OFTEN = RunConfig(load_ms=1_000, records=5, fault_every_ms=100)


@pytest.mark.parametrize("program", ["one-link", "slow-link", "swizzle", "stuck-disk", "bridge"])
def test_a_program_that_needs_more_nodes_than_were_told_is_refused(program):
    """Some ended the run with a traceback, others did nothing and said nothing."""
    config = OFTEN.with_(nodes=1, replicas=1, faults=f"kill {program}")
    least = named(program).nodes
    with pytest.raises(ConfigError) as refused:
        run(1, config)
    assert str(refused.value) == (
        f"nodes is 1, but {program} needs {least}: set more, or leave that fault out"
    )


def test_the_number_of_nodes_may_be_told_by_its_default():
    with pytest.raises(ConfigError, match="nodes is 3, but ring needs 4"):
        run(1, from_toml('faults = "ring"\nnodes = 3\n'))


@pytest.mark.slow
def test_a_seed_that_draws_fewer_nodes_does_without_the_program():
    """Among three nodes each hears its two neighbours anyhow, and a ring was told of."""
    seen = set()
    for seed in range(6):
        outcome = run(seed, OFTEN.with_(faults="ring kill"))
        codes = {row.code for row in outcome.rows if row.kind == "fault"}
        seen.add((outcome.config.nodes, "program ring" in codes))
    assert seen == {(3, False), (5, True)}


def test_a_tape_is_run_without_what_does_not_fit_it():
    """A smaller run of the same tape, as `shrink` looks for."""
    config = OFTEN.with_(nodes=1, replicas=1, faults="one-link swizzle")
    struck = Tape({"nemesis": dict.fromkeys(range(40), 1)})
    outcome = run_choices(Replayed(struck), config, swarm=False)
    assert outcome.verdict is Verdict.OK


@pytest.mark.parametrize("leads", ["the controller", "partition 0"])
def test_who_hands_over_leadership_says_of_what(leads):
    """It said the number of the Raft group, which nothing else speaks of."""
    script = Script()
    script.play("> nodes 3")
    world = script.world
    life = world.leader(0)
    assert life is not None
    if leads != "the controller":
        controller = life.node.runner.hosted_replicas.pop(CONTROLLER_GROUP)
        assert controller.replica.leading
    named("transfer").run(FaultContext(world, Replayed(Tape()).stream("nemesis")))
    (told,) = (row.code for row in world.history.rows if row.kind == "fault")
    assert told == f"hands {leads} to node 2"


BEGUN = "> nodes 3\n> producers P=7\n> send P A to 1 seq 0\n> until answered\n"
MORE = "> send P B to 1 seq 1\n> until answered\n"
NOBODY_MORE, FOLLOWER_DIES, LEADER_DIES, SECOND_SNAPSHOT = range(4)


def overtaken(how, *, power=0, then=""):
    """A script in which node 2 is overtaken: what there is to see of snapshots, and of deaths."""
    script = Played()
    script.play(BEGUN)
    world = script.made
    picks = {2: 0, 4: power, 5: how}
    stream = Replayed(Tape({"nemesis": picks})).stream("nemesis")
    named("overtaken").run(FaultContext(world, stream))
    script.play(f"> run 300ms\n{MORE}{then}> run 20s\n")
    rows = world.history.rows
    told = [(row.kind, row.node, row.code) for row in rows if row.kind in ("snapshot", "crash")]
    return told, world


@pytest.mark.parametrize("power", [0, 1, 2])
def test_a_follower_that_is_overtaken_installs_a_snapshot(power):
    """It is cut off, without power, or killed."""
    told, world = overtaken(NOBODY_MORE, power=power)
    assert ("snapshot", 2, "installed") in told
    assert ("snapshot", 1, "taken") in told
    assert world.high_watermark(0, -1) == 2
    died = [each for each in told if each[0] == "crash"]
    assert {code for _, _, code in died} <= {"to be overtaken"}
    assert bool(died) == bool(power)


def test_it_may_die_when_it_has_written_the_snapshot():
    told, _ = overtaken(FOLLOWER_DIES)
    assert ("crash", 2, "a snapshot installed") in told
    after = told[told.index(("crash", 2, "a snapshot installed")) :]
    assert ("snapshot", 2, "installed") in after, "the next life installs it"


def test_its_leader_may_die_when_it_has_written_the_snapshot():
    told, _ = overtaken(LEADER_DIES)
    assert ("crash", 1, "a snapshot taken") in told
    assert ("snapshot", 2, "installed") in told


def test_a_snapshot_may_be_overtaken_by_another():
    """Both arrive at once, and the follower comes to the newer one."""
    told, world = overtaken(SECOND_SNAPSHOT, then="> run 1200ms\n> send P C to 1 seq 2\n")
    codes = [row.code for row in world.history.rows if row.kind == "fault" and row.node == 1]
    held_up = codes.index("its snapshot for node 2 is held up")
    assert codes[held_up + 1 :] == ["records of partition 0 below 3 deleted"]
    snapshots = [row for row in world.history.rows if row.kind == "snapshot"]
    first, second = [row.log_index for row in snapshots if row.node == 1]
    installed = [row.log_index for row in snapshots if row.node == 2]
    assert first < second == installed[-1]
    assert told[-1] == ("snapshot", 2, "installed")


def test_a_producer_dies_when_what_it_asked_for_is_stored():
    """And never hears of it; who takes over has another id."""
    world = World(RunConfig(records=10, load_ms=2_000, producers=1), Replayed(Tape()))
    clients = make_clients(world)
    world.boot()
    named("die-asking").run(FaultContext(world, Replayed(Tape()).stream("nemesis")))
    (first,) = clients.producers
    clients.start()
    world.kernel.run(world.kernel.now + 5 * SECOND)
    rows = world.history.rows
    (asked,) = [row for row in rows if row.kind == "info"]
    assert (asked.client, asked.code) == (first.number, "CRASHED")
    stored = [row for row in rows if row.kind == "answer" and row.client == first.number]
    assert [row.code for row in stored] == ["NONE"]
    assert not [row for row in rows if row.kind == "ok" and row.client == first.number]
    (second,) = clients.producers
    assert second.number != first.number
    ids = {row.client: row.pid for row in rows if row.kind == "send"}
    assert ids[first.number] != ids[second.number]


def test_nobody_dies_asking_when_faults_have_ended():
    world = World(RunConfig(producers=1), Replayed(Tape()))
    clients = make_clients(world)
    clients.stop_faults()
    (first,) = clients.producers
    world.client_dies(first.number)
    world.client_dies(999)
    assert clients.producers == [first]


@pytest.mark.parametrize("name", ["misdirected-write", "read-error", "full-disk"])
def test_faults_below_the_store_are_refused_by_name(name):
    with pytest.raises(ConfigError, match=f"no such fault: {name}"):
        named(name)


@pytest.mark.slow
def test_a_decision_to_forget_that_nobody_heard_of_is_replaced_and_its_leader_leads_again():
    config = RunConfig(
        nodes=3,
        producers=3,
        records=15,
        load_ms=5_000,
        arrivals="even",
        producer_expiry_ms=300,
        faults="lose-decision",
        fault_every_ms=1_000,
    )
    for seed in (5, 10):
        rows = run(seed, config).rows
        cut = {row.node: row.eid for row in rows if row.kind == "truncate"}
        led = {row.node: row.eid for row in rows if row.kind == "leader" and row.partition == 0}
        assert any(led.get(node, 0) > eid for node, eid in cut.items())


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["flush", "flushed"])
def test_a_node_dies_while_it_replaces_entries(stage):
    """Coverage had 0 for both in 1,000 seeds."""
    config = RunConfig(load_ms=4_000, records=80, faults="held-truncation", fault_every_ms=400)
    config = config.with_(nodes=3, replicas=3, partitions=1)
    reached = [reached_by(seed, config).steps for seed in range(6)]
    assert sum(steps.get((f"truncation: {stage}", "crash"), 0) for steps in reached)
