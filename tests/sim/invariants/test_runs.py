"""The judge on real runs: the same verdict in Python and in SQL, and every loss explained.

Runs that mutants broke go on behind their first anomaly here, so that there is much to disagree on.
And what no mutant stands for, a guard that is taken away here, is seen in a scenario.
"""

import duckdb
import pytest

from ottla.raft import snapshot
from ottla.raft.following import hear_leader
from ottla.raft.raft_log import RaftLog
from ottla.sim.chance.choices import Drawn
from ottla.sim.clients.questions import Questions
from ottla.sim.clients.workload import make_clients
from ottla.sim.ending.ending import MS, Ending, NotLive
from ottla.sim.invariants import statements
from ottla.sim.invariants.judge import judge
from ottla.sim.nemesis.nemesis import Nemesis
from ottla.sim.run import undisturbed
from ottla.sim.scenarios.files import files
from ottla.sim.scenarios.script import Script
from ottla.sim.settings.settings import RunConfig
from ottla.sim.settings.swarm import draw
from ottla.sim.world.world import BrokerBug, World
from sim_sql import sql_losses, sql_verdicts

STRICT = RunConfig(profile="reference-strict", load_ms=1_500, records=40, fault_every_ms=400)
PLAIN = STRICT.with_(idempotent=False, in_flight=3)
CLEAN = [(STRICT.with_(partitions=2), seed) for seed in range(3)]
FORGETFUL = [
    (STRICT.with_(max_producers=1, producers=3, load_ms=3_000, records=120), seed)
    for seed in (0, 5, 12)
]
"""Producers are forgotten and store copies, leave records out, and hand these in later."""
BROKEN = [(STRICT.with_(mutants=each), seed) for each in ("M03", "M06", "M07") for seed in (1, 2)]
WEAK = [(PLAIN.with_(acks=acks), seed) for acks in (0, 1) for seed in range(4)]
RUNS = [*CLEAN, *FORGETFUL, *BROKEN, *WEAK]


def whole(config, seed):
    """Every row of a run, whatever is wrong in it."""
    choices = Drawn(seed)
    world = World(draw(choices, config), choices)
    ending = Ending(world, make_clients(world))
    try:
        world.boot()
        nemesis = Nemesis(world)
        nemesis.start()
        Questions(world).start()
        ending.clients.start()
        world.kernel.run(world.kernel.now + world.config.load_ms * MS)
        nemesis.stop()
        ending.settle()
        ending.finish()
    except (BrokerBug, NotLive):
        assert config.mutants, "only a broken broker may do that"
    world.note_final()
    return world.history.rows


@pytest.fixture(scope="module")
def runs():
    return [whole(config, seed) for config, seed in RUNS]


@pytest.fixture(scope="module")
def verdicts(runs):
    return [judge(each) for each in runs]


@pytest.mark.slow
def test_sql_agrees_with_python(runs, verdicts):
    database = duckdb.connect()
    statements.load(database, runs)
    found = sql_verdicts(database)
    assert [found.get(number, frozenset()) for number in range(len(runs))] == [
        each.broken for each in verdicts
    ]
    losses = sql_losses(database)
    for number, verdict in enumerate(verdicts):
        for row in verdict.losses:
            assert losses[number, row.acks] == (row.acknowledged, row.lost)


def test_nothing_is_found_where_nothing_is_broken(verdicts):
    for (config, seed), verdict in zip(RUNS, verdicts, strict=True):
        if not config.mutants:
            assert verdict.anomalies == (), (config.acks, seed)


def test_what_is_broken_is_found(verdicts):
    found: dict[str, set[str]] = {"M03": set(), "M06": set(), "M07": set()}
    for (config, _), verdict in zip(RUNS, verdicts, strict=True):
        if config.mutants:
            found[config.mutants] |= verdict.broken
    assert "sim-I25" in found["M03"]
    assert "sim-I09" in found["M06"]
    assert "sim-I24" in found["M07"]


def test_every_loss_is_explained(verdicts):
    rows = [row for verdict in verdicts[-len(WEAK) :] for row in verdict.losses]
    assert {row.acks for row in rows} == {0, 1}
    assert any(row.lost for row in rows)
    assert [row for row in rows if row.unexplained] == []


@pytest.fixture
def unguarded(monkeypatch) -> None:
    """Who is sent a snapshot looks neither at what it knows committed nor at what its log has."""
    term_at, asking = RaftLog.term_at, []

    def hears(state, sender, at):
        follower = hear_leader(state, sender, at)
        state.commit = 0
        asking.append(sender)
        return follower

    def blind(log, index):
        return None if asking and asking.pop() else term_at(log, index)

    monkeypatch.setattr(snapshot, "hear_leader", hears)
    monkeypatch.setattr(RaftLog, "term_at", blind)


@pytest.mark.usefixtures("unguarded")
def test_a_log_that_goes_back_to_a_late_snapshot_breaks_safety():
    """Only sim-I31 saw it, in the end, and where the log had not been filled up again by then."""
    (path,) = (each for each in files() if each.stem.startswith("s47"))
    script, text = Script(), path.read_text(encoding="utf-8")
    with undisturbed():
        script.play(text.partition("> judge")[0])
    assert set(script.online.first) == {"sim-I22"}
