"""Progress in the end: what counts as a record that was stored, and who is excused.

With a probe that counted the watermark of a leader that only just learned it, a partition that
could store nothing passed; with every leader from outside excused, so did one that was deaf.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.broker.controller.controller import CONTROLLER_GROUP
from ottla.broker.images import LeaderImage
from ottla.sim.chance.choices import Drawn
from ottla.sim.ending.probes import Probes
from ottla.sim.mutants.catalogue import BY_ID
from ottla.sim.nemesis.programs import PROGRAMS
from ottla.sim.run import Verdict, run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.settings.swarm import draw
from ottla.sim.sweeps.kills import settings_of
from sim_begun import MS, begun, cut_off
from sim_draws import draw_as_before

SHORT = RunConfig(load_ms=1_000, records=12)


def probed(world, clients, core):
    return Probes(world, clients, core, [0], len(world.history.rows))


def test_the_swarm_asks_most_runs_for_progress_unless_it_is_told_otherwise():
    """Where nothing more is stored in the end, what is stored must be shown all the same."""
    drawn = [draw(Drawn(seed), RunConfig()).probes for seed in range(40)]
    assert 20 < sum(drawn) < 40
    for asked in (True, False):
        told = RunConfig(probes=asked, said=frozenset({"probes"}))
        assert {draw(Drawn(seed), told).probes for seed in range(10)} == {asked}


def test_a_run_stores_one_record_more_for_each_partition():
    outcome = run(5, SHORT.with_(partitions=3))
    assert outcome.verdict is Verdict.OK, outcome.reason
    told = {row.code: row.eid for row in outcome.rows if row.kind == "phase"}
    probed = [row.op for row in outcome.rows if row.kind == "inv" and row.eid < told["settle"]]
    assert probed[-3:] == [12, 13, 14]
    rested = [row.op for row in outcome.rows if row.kind == "inv" and row.eid > told["settle"]]
    # One of each at the end of the rest, one while leadership is handed over, and in some runs one
    # while a follower is out of sync.
    assert rested == [*range(15, 15 + len(rested))]
    assert len(rested) in ((6, 7, 8, 9) if "rested" in told else (0,))


@pytest.mark.slow
def test_one_run_in_three_rests_and_uses_each_partition_then():
    rested = 0
    for seed in range(9):
        outcome = run(seed, SHORT.with_(partitions=2))
        codes = [row.code for row in outcome.rows if row.kind == "phase"]
        rested += "rest" in codes
        assert ("rest" in codes) == ("rested" in codes)
        begins = [row.eid for row in outcome.rows if row.code == "rest" and row.kind == "phase"]
        asked = [row for row in outcome.rows if begins and row.kind == "ok" and row.eid > begins[0]]
        used = begins and outcome.config.probes and not outcome.unavoidable
        assert {row.partition for row in asked} == ({0, 1} if used else set())
    assert 0 < rested < 9


def test_what_was_there_before_does_not_count_as_stored():
    world, clients = begun(RunConfig(producers=1, consumers=0, records=4, load_ms=100))
    world.until(clients.idle, 5_000 * MS, "four records")
    leader = world.leader(0)
    assert leader is not None
    assert world.high_watermark(0, -1) == 4
    world.crash(leader.node_id, power=False)  # nobody leads, and who does has to learn it anew
    probes = probed(world, clients, world.nodes)
    assert not probes.stored()
    world.until(lambda: world.high_watermark(0, -1) >= 4, 10_000 * MS, "the watermark, learned")
    world.until(probes.stored, 30_000 * MS, "a record stored")
    assert world.high_watermark(0, -1) == 5


@pytest.mark.slow
def test_a_probe_that_was_given_up_is_asked_for_again():
    config = RunConfig(producers=1, consumers=0, records=0, delivery_timeout_ms=3_000)
    world, clients = begun(config)
    for node in world.nodes:
        world.network.isolate(node)
    world.until(lambda: world.leader(0) is None, 10_000 * MS, "no leader")
    probes = probed(world, clients, world.nodes)
    world.until(
        lambda: probes.stored() or [row.kind for row in world.history.rows].count("inv") > 2,
        20_000 * MS,
        "two probes given up",
    )
    assert probes.left == [0]
    assert probes.excuse(0) == ""
    world.network.mend(world.nodes)
    world.until(probes.stored, 30_000 * MS, "a record stored")


@pytest.mark.slow
def test_records_that_the_topic_does_not_take_are_no_matter_of_progress():
    settings = {"max_message_bytes": 150, "record_bytes": 200, "producers": 1, "partitions": 1}
    settings |= {"probes": True}
    outcome = run(1, SHORT.with_(**settings))
    assert outcome.verdict is Verdict.OK, outcome.reason
    assert any("records are larger than 150 bytes" in each for each in outcome.unavoidable)


@pytest.mark.slow
@pytest.mark.parametrize("probes", [True, False])
def test_records_that_no_topic_takes_are_no_matter_of_progress_without_faults(probes):
    settings = {"max_message_bytes": 150, "record_bytes": 200, "probes": probes}
    for seed in range(3):
        outcome = run(seed, SHORT.with_(**settings))
        assert outcome.verdict is Verdict.OK, outcome.reason


@pytest.mark.slow
def test_who_calls_a_record_too_large_that_the_topic_takes_is_not_excused(monkeypatch):
    """Every refusal of this name was taken for right."""
    limits = RunConfig.cluster_config
    monkeypatch.setattr(
        RunConfig, "cluster_config", lambda self: replace(limits(self), max_message_bytes=50)
    )
    outcome = run(1, SHORT.with_(probes=True))
    assert [each.invariant for each in outcome.anomalies] == ["sim-I31"]


@pytest.mark.slow
@pytest.mark.parametrize(("mutant", "seed"), [("M15", 3), ("M29", 59)])
def test_a_leader_that_was_not_healed_and_answers_nothing_is_not_excused(mutant, seed):
    outcome = run(seed, settings_of(BY_ID[mutant]))
    assert [each.invariant for each in outcome.anomalies] == ["sim-I31"]


@pytest.fixture
def drawn_as_found(monkeypatch):
    """The swarm draws what it drew when these seeds were found, and nobody asks for topics."""
    draw_as_before(monkeypatch)


NEWER = ("overtaken", "die-asking", "die-deciding", "repeat-late")


@pytest.fixture
def as_found(monkeypatch):
    """Without the programs of the nemesis that are newer than the seeds below: one in 60,000 shows
    what they show, and each draws from all programs that there are."""
    known = [each for each in PROGRAMS if each.name not in NEWER]
    monkeypatch.setattr("ottla.sim.nemesis.nemesis.PROGRAMS", tuple(known))


@pytest.mark.usefixtures("as_found", "drawn_as_found")
def test_a_probe_that_is_stored_and_not_acknowledged_is_asked_for_again():
    """It had expired at its client by then, and sim-I31 called the run stuck."""
    outcome = run(8_005_920, RunConfig(load_ms=1_000, records=12, fault_every_ms=250))
    assert outcome.verdict is Verdict.OK, outcome.reason


@pytest.mark.usefixtures("as_found", "drawn_as_found")
@pytest.mark.parametrize(
    ("seed", "config"),
    [
        (8_010_399, RunConfig(load_ms=1_000, records=12, fault_every_ms=250)),
        (10_081_453, RunConfig(load_ms=1_000, records=12, fault_every_ms=250)),
        (909, RunConfig(load_ms=1_500, records=24, fault_every_ms=300)),
    ],
)
def test_a_cut_between_the_asked_node_and_the_leader_needs_no_excuse(seed, config):
    """That node was not healed, heard a majority, and did not hear the leader: it named itself, and
    no leader, and its client asked it for ever. All three were excused until a node that hears both
    passed on who leads (sim-S68)."""
    outcome = run(seed, config)
    assert outcome.verdict is Verdict.OK, outcome.reason
    assert not any("which is not healed" in each for each in outcome.unavoidable)


CUTS = "isolate deaf mute one-link bridge halves ring controller kill"
GONE = "freeze isolate power stuck-disk kill"


@pytest.mark.usefixtures("drawn_as_found")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "settings", "said"),
    [
        (
            133,
            {"min_insync": 3, "faults": "power freeze kill"},
            "acks=all needs 3 replicas in sync",
        ),
        (
            384,
            {"nodes": 5, "partitions": 4, "client_model": "java", "faults": CUTS},
            "its producer asks node",
        ),
        (
            105,
            {"delivery_timeout_ms": 2_000, "request_timeout_ms": 5_000, "faults": GONE},
            "the others would hear it from the controller's leader, which was not healed",
        ),
    ],
    ids=["in sync", "asker", "unknown"],
)
def test_each_excuse_has_a_seed_that_needs_it(seed, settings, said):
    """Without its excuse each of these sound runs is an alarm (docs/decisions/0042)."""
    config = RunConfig(load_ms=1_000, records=12, fault_every_ms=250)
    outcome = run(seed, config.with_(**settings))
    assert outcome.verdict is Verdict.OK, outcome.reason
    assert any(said in each for each in outcome.unavoidable)


@pytest.mark.slow
@pytest.mark.usefixtures("as_found", "drawn_as_found")
def test_who_is_alone_and_leads_another_partition_keeps_its_clients():
    """Node 2 had been cut off before it heard that node 1 led partition 0, and went on to lead
    partition 1, whose only replica it is. A Java client without another connection asks it on, as
    it would a broker of Kafka's (until KIP-1102 has it begin anew)."""
    outcome = run(8_058_384, RunConfig(load_ms=1_000, records=12, fault_every_ms=250))
    assert outcome.verdict is Verdict.OK, outcome.reason
    assert any("asks node 2, which is not healed" in each for each in outcome.unavoidable)


@pytest.mark.slow
@pytest.mark.usefixtures("as_found", "drawn_as_found")
def test_a_consumer_that_two_lost_nodes_send_to_each_other_is_excused():
    """Nodes 1 and 4 were cut off, each by itself; a Java client was connected to both and to nobody
    else, and asked them in turn."""
    outcome = run(8_027_330, RunConfig(load_ms=1_000, records=12, fault_every_ms=250))
    assert outcome.verdict is Verdict.OK, outcome.reason
    assert any("asks the nodes [1, 4] in turn" in each for each in outcome.unavoidable)


@pytest.mark.slow
@pytest.mark.usefixtures("as_found", "drawn_as_found")
def test_a_leader_from_outside_that_resigns_leaves_nobody_who_knows_that_there_is_a_partition():
    """Node 2 led both groups from outside when clients were at rest, and then the partition no
    more. Of its replicas in the core, 1 and 3, the first had started anew and was told of nothing:
    it hears nothing of node 2, which 4 and 5 hear. That nobody could lead was an alarm."""
    asked = RunConfig(profile="reference-strict", load_ms=2000, records=30, fault_every_ms=300)
    outcome = run(2957, asked)
    assert outcome.verdict is Verdict.OK, outcome.reason
    assert any("only [3] know that they have one" in each for each in outcome.unavoidable)


@pytest.mark.slow
@pytest.mark.usefixtures("as_found", "drawn_as_found")
@pytest.mark.parametrize("seed", [78, 658])
def test_a_node_that_does_not_know_the_topics_yet_does_not_keep_its_clients(seed):
    """Seed 658: that node had started anew, did not hear the controller, and named itself and no
    leader; librdkafka has no reason to ask another node then. Seed 78: it named the only other one
    that it heard of three, which was not healed when it had died, and clients knew no third."""
    outcome = run(seed)
    assert outcome.verdict is Verdict.OK, outcome.reason
    assert outcome.unavoidable == []


@pytest.fixture
def misled(monkeypatch):
    """A world, its leader, and the probes of a producer that asks a node that was not healed, hears
    no majority, leads another partition, and knows no leader of this: it names itself, and is asked
    again."""
    world, clients = begun(
        RunConfig(partitions=2, producers=1, consumers=0, records=4, load_ms=100)
    )
    world.until(clients.idle, 5_000 * MS, "four records")
    leader = world.leader(0)
    assert leader is not None
    asked = next(each for each in world.nodes if each != leader.node_id)
    probes = probed(world, clients, [each for each in world.nodes if each != asked])
    clients.producers[0].view.told_by = asked
    assert probes.excuse(0) == ""
    led = [
        group
        for group in world.lives[asked].node.runner.hosted_replicas
        if group != CONTROLLER_GROUP
    ]
    monkeypatch.setattr(
        world.lives[asked].node,
        "leader",
        lambda group: LeaderImage(0 if group == led[0] else asked, 0, ()),
    )
    cut_off(monkeypatch, world, asked)
    return world, leader.node_id, probes


def test_a_client_that_asks_a_node_that_leads_another_partition_is_excused(misled):
    world, _, probes = misled
    assert "knows no leader of this" in probes.excuse(0)
    probes.core = world.nodes
    assert probes.excuse(0) == ""


def test_a_leader_that_was_not_healed_is_reached_by_every_client_and_excuses_none():
    """All ways of clients are mended when a core is healed, so that one is asked like any other."""
    world, clients = begun(RunConfig(producers=1, consumers=0, records=4, load_ms=100))
    world.until(clients.idle, 5_000 * MS, "four records")
    leader = world.leader(0)
    assert leader is not None
    world.clients.cut([leader.node_id])
    core = [each for each in world.nodes if each != leader.node_id]
    world.heal(core)
    probes = probed(world, clients, core)
    assert probes.excuse(0) == ""
    world.until(probes.stored, 30_000 * MS, "a record stored")


def test_what_met_a_reset_did_not_ask_the_leader(misled):
    """Seed 10081453: it had lost its power, and told nobody. What its client sent on the connection
    that it still had went to an earlier life."""
    world, leader, probes = misled
    client = probes.clients.asker(0).number
    world.history.add("send", node=leader, client=client, partition=0)
    world.history.add("close", node=leader, client=client, code="reset")
    assert "knows no leader of this" in probes.excuse(0)
    world.history.add("send", node=leader, client=client, partition=0)
    world.history.add("ok", node=leader, client=client, partition=0)
    assert probes.excuse(0) == ""


def test_a_node_that_names_the_leader_excuses_no_client():
    """It does not hear the leader, whom others hear."""
    world, clients = begun(RunConfig(producers=1, consumers=0, records=4, load_ms=100))
    world.until(clients.idle, 5_000 * MS, "four records")
    leader = world.leader(0)
    assert leader is not None
    by = next(each for each in world.nodes if each != leader.node_id)
    for link in ((by, leader.node_id), (leader.node_id, by)):
        world.network.links[link].cut = True
    world.kernel.run(world.kernel.now + 5_000 * MS)
    assert world.leader(0) is leader
    probes = probed(world, clients, [each for each in world.nodes if each != by])
    assert clients.asker(0).view.told_by in world.nodes
    clients.producers[0].view.told_by = by
    assert probes.excuse(0) == ""
