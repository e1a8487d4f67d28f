"""What is counted as reached was reached: each predicate knows its own scenario, and a calm run
reaches none that needs a fault. Seeds give the same cover in any number of processes.

A scenario is played from its script; one that is a program of the nemesis is brought about by that.
"""

from __future__ import annotations

import pytest

from ottla.sim.chance.choices import Replayed, Tape
from ottla.sim.coverage.cover import Cover, Reached, cover, reached_by
from ottla.sim.coverage.facts import Facts
from ottla.sim.coverage.predicates import PREDICATES
from ottla.sim.coverage.states import states_of
from ottla.sim.history.history import Event
from ottla.sim.nemesis.fault_context import FaultContext
from ottla.sim.nemesis.nemesis import named
from ottla.sim.run import run_choices, undisturbed
from ottla.sim.scenarios.files import files
from ottla.sim.scenarios.script import Script
from ottla.sim.settings.settings import RunConfig

SHORT = RunConfig(profile="reference-strict", load_ms=2_000, records=30, fault_every_ms=300)
BY_ID = {row.id: row for row in PREDICATES}
OTHERWISE = {"S13", "S30", "S36", "S37", "S38", "S39", "S41", "S42", "S51", "S52", "S60"}
"""A script does these by other means than the nemesis, or brings about another shape of them.
Those that are a program of the nemesis are known by that."""
LEADER, FOLLOWER = (), (2,)
"""What `FaultContext.somebody` picks from, by its first choice."""
CALM = {"sim-S01", "sim-S57"}
"""What a run without faults may reach."""


class Played(Script):
    """A script that keeps its worlds."""

    def __init__(self):
        super().__init__()
        self.worlds = []

    def make_world(self, config):
        world = super().make_world(config)
        self.worlds.append(world)
        return world


def booted():
    """Three nodes, of which node 1 leads."""
    script = Played()
    script.play("> nodes 3")
    (world,) = script.worlds
    return world


def strike(world, program, *picks):
    """The nemesis does this, with these choices and the plain ones behind them."""
    stream = Replayed(Tape({"nemesis": dict(enumerate(picks))})).stream("nemesis")
    named(program).run(FaultContext(world, stream))


def known(path):
    number = f"S{path.stem[1:3]}"
    return f"sim-{number}" in BY_ID and number not in OTHERWISE


@pytest.mark.parametrize("path", list(filter(known, files())), ids=lambda path: path.stem)
def test_a_predicate_knows_its_scenario(path):
    script = Played()
    lines = path.read_text(encoding="utf-8").splitlines()
    with undisturbed():
        script.play("\n".join(line for line in lines if not line.startswith("> mutant")))
    holds = BY_ID[f"sim-S{path.stem[1:3]}"].holds
    assert any(holds(Facts(world.history.rows)) for world in script.worlds)


@pytest.mark.parametrize(
    ("program", "picks", "number", "reached"),
    [
        ("isolate", LEADER, "S36", True),
        ("isolate", FOLLOWER, "S36", False),
        ("deaf", LEADER, "S37", True),
        ("deaf", FOLLOWER, "S37", False),
        ("mute", LEADER, "S37", False),
        ("deaf", FOLLOWER, "S38", True),
        ("deaf", LEADER, "S38", False),
        ("mute", FOLLOWER, "S38", False),
        ("bridge", (), "S39", True),
        ("halves", (), "S39", False),
        ("jump-clock", (), "S41", True),
        ("step-wall-clock", (), "S41", False),
        ("drift", (), "S41", False),
        ("transfer", (), "S42", True),
        ("kill", (), "S42", False),
    ],
)
def test_a_predicate_knows_the_fault_of_the_nemesis(program, picks, number, reached):
    world = booted()
    strike(world, program, *picks)
    assert BY_ID[f"sim-{number}"].holds(Facts(world.history.rows)) is reached


def test_a_node_that_is_down_sends_nothing_whoever_it_would_hear():
    world = booted()
    world.crash(2)
    strike(world, "deaf", *FOLLOWER)
    facts = Facts(world.history.rows)
    assert [row.node for row in facts.faults("hears nobody")] == [2]
    assert not BY_ID["sim-S38"].holds(facts)


def test_a_calm_run_reaches_nothing_that_needs_a_fault():
    calm = run_choices(Replayed(Tape()), SHORT.with_(fault_every_ms=0), swarm=False)
    facts = Facts(calm.rows)
    assert {row.id for row in PREDICATES if row.holds(facts)} <= CALM
    assert 0 < len(states_of(calm.rows, 1)) < 60


def waited_for(*rows):
    """What the last row's state says of batches that clients wait for."""
    told = [
        Event(eid, eid, kind, client=1, partition=0, op=op, **more)
        for eid, (kind, op, more) in enumerate(rows)
    ]
    return states_of([*told, Event(len(told), len(told), "pause", node=1)], 1)[-1][6]


SENT = ("send", 3, {"node": 1, "pid": 7, "epoch": 0, "seq": 0, "seq_last": 1, "aux": 1})
ANSWERED = ("answer", None, {"node": 1, "pid": 7, "epoch": 0, "seq": 0, "seq_last": 1})


@pytest.mark.parametrize(
    ("behind", "waits"),
    [
        ((), 1),
        ((ANSWERED,), 1),  # the answer may be lost
        ((("ok", 3, {}), ("ok", 4, {})), 0),
        ((("error", 3, {}),), 0),
        ((("error", 3, {}), SENT), 1),
        ((("fail", 3, {}), ("fail", 4, {})), 0),
        ((("info", 3, {}), ("info", 4, {})), 0),
        ((("send", 5, {"node": 1, "aux": 1}),), 2),
        ((("send", 5, {"node": 1, "aux": 1}), ("send", 6, {"node": 1, "aux": 1})), 2),
    ],
)
def test_a_batch_is_in_flight_for_as_long_as_its_client_waits(behind, waits):
    assert waited_for(SENT, *behind) == waits


@pytest.mark.parametrize("settings", [{"acks": 0}, {"acks": 1}, {"idempotent": False}], ids=str)
def test_what_plain_producers_send_is_no_batch_that_anybody_could_know_again(settings):
    """It has no numbers: its rows were taken for one batch, and could not be brought in order."""
    faulty = run_choices(Replayed(Tape()), SHORT.with_(faults="kill", **settings), swarm=False)
    facts = Facts(faulty.rows)
    assert facts.batches == {}
    assert {row.id for row in PREDICATES if row.holds(facts)} < set(BY_ID)


@pytest.mark.slow
def test_processes_change_nothing():
    alone = list(cover(range(4), SHORT.told(), 1))
    assert [each.seed for each in alone] == [0, 1, 2, 3]
    assert alone[2] == reached_by(2, SHORT)
    assert all(each.states and "NONE" in each.answers for each in alone)
    assert any("next" in each.rules for each in alone)


def test_counts_add_up():
    found = Cover.of(SHORT)
    found.add(Reached(7, ("sim-S02",), ("next",), ("NONE",), ((1,), (2,))))
    found.add(Reached(8, ("sim-S02", "sim-S03"), ("next", "gap"), ("NONE",), ((2,), (3,))))
    assert found.predicates["sim-S02"] == (2, 7)
    assert found.predicates["sim-S03"] == (1, 8)
    assert found.predicates["sim-S04"] == (0, None)
    assert found.rules["gap"] == (1, 8)
    assert found.rules["duplicate"].first is None
    assert found.growth == [2, 3]
    assert found.newcomers == 1
