"""Wall clocks go wrong, and nothing comes of it.

Who is forgotten is told by the monotonic clock of a leader and decided in the log. That it would be
seen if it were otherwise is tested as well.
"""

from __future__ import annotations

import pytest

from ottla.idempotency.table import ProducerTable
from ottla.sim.chance.choices import Replayed, Tape
from ottla.sim.nemesis.fault_context import FaultContext
from ottla.sim.nemesis.nemesis import named
from ottla.sim.run import Verdict, run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.clocks import EPOCH_MS, MILLION, NodeClock
from ottla.sim.world.witness import witnessed
from ottla.sim.world.world import SECOND, World

CONFIG = RunConfig(
    producer_expiry_ms=400,
    producers=3,
    load_ms=4_000,
    records=40,
    fault_every_ms=100,
    faults="step-wall-clock",
)
SEEDS = range(5)


def test_a_wall_clock_steps_and_goes_on():
    clock = NodeClock()
    assert clock.wall_ms(5_000_000) == EPOCH_MS + 5_000
    clock.step_wall(5_000_000, -3_000)
    assert clock.wall_ms(6_000_000) == EPOCH_MS + 3_000
    clock.step_wall(6_000_000, 0)
    assert clock.wall_ms(6_000_000) == EPOCH_MS + 6_000


def test_a_wall_clock_is_slewed_from_where_it_is():
    clock = NodeClock()
    clock.step_wall(0, 1_000)
    clock.slew_wall(1_000_000, 100_000)
    assert clock.wall_ms(1_000_000) == EPOCH_MS + 2_000
    assert clock.wall_ms(2_000_000) == EPOCH_MS + 3_100
    clock.slew_wall(2_000_000, 0)
    assert clock.wall_ms(3_000_000) == EPOCH_MS + 4_100


def test_a_wall_clock_stands_and_goes_on_behind():
    clock = NodeClock()
    clock.slew_wall(1_000_000, -MILLION)
    assert clock.wall_ms(9_000_000) == EPOCH_MS + 1_000
    clock.slew_wall(9_000_000, 0)
    assert clock.wall_ms(10_000_000) == EPOCH_MS + 2_000


def test_the_monotonic_clock_does_not_mind():
    clock = NodeClock(base=7)
    clock.step_wall(1_000, -3_600_000)
    clock.slew_wall(1_000, -MILLION)
    assert clock.read(5_000) == 5_007
    assert clock.when(5_007) == 5_000


def broken(outcome):
    return {each.invariant for each in outcome.anomalies}


def histories(monkeypatch, *, clocks_obey):
    """What happens in a few runs; wall clocks stay as they are where `clocks_obey` is false."""
    with monkeypatch.context() as patch:
        if not clocks_obey:
            for name in ("step_wall", "slew_wall"):
                patch.setattr(NodeClock, name, lambda *_: None)
        outcomes = [run(seed, CONFIG) for seed in SEEDS]
    # A broker that goes by the wall clock may forget too early (sim-I51).
    assert all(each.verdict is Verdict.OK or broken(each) == {"sim-I51"} for each in outcomes)
    return [each.rows for each in outcomes]


@pytest.mark.slow
def test_histories_are_the_same_whatever_wall_clocks_show(monkeypatch):
    upset = histories(monkeypatch, clocks_obey=True)
    assert upset == histories(monkeypatch, clocks_obey=False)
    assert not any(broken(run(seed, CONFIG)) for seed in SEEDS)
    rows = [row for each in upset for row in each]
    told = [row.code for row in rows if row.kind == "fault" and "wall clock" in (row.code or "")]
    for what in (" is off by ", " is slewed by ", " stands"):
        assert [each for each in told if what in each], f"no wall clock {what}"
    assert [row for row in rows if row.kind == "expire"], "nobody was forgotten"


@pytest.mark.slow
def test_who_went_by_the_wall_clock_would_be_seen(monkeypatch):
    """A broker that expires producers by it: with the same choices other producers go."""
    going_by_the_wall_clock(monkeypatch)
    upset = histories(monkeypatch, clocks_obey=True)
    assert upset != histories(monkeypatch, clocks_obey=False)


def going_by_the_wall_clock(monkeypatch):
    """Have producer tables note by it when they heard of a producer, and for how long they have
    not."""
    apply, idle_since = ProducerTable.apply, ProducerTable.idle_since
    nodes = {}

    def seen(mutants, on_decided, *others):
        (life,) = on_decided.args
        make = witnessed(mutants, on_decided, *others)

        def made(settings, in_sync):
            partition = make(settings, in_sync)
            nodes[partition.table] = life.clockwork
            return partition

        return made

    def shown(table):
        return 1_000 * nodes[table].wall_ms()

    def applied(table, *told, now=0, **more):
        return apply(table, *told, now=shown(table) if table in nodes else now, **more)

    def idle(table, _, count=None):
        return idle_since(table, shown(table) - 1_000 * CONFIG.producer_expiry_ms, count)

    monkeypatch.setattr("ottla.sim.world.making.witnessed", seen)
    monkeypatch.setattr(ProducerTable, "apply", applied)
    monkeypatch.setattr(ProducerTable, "idle_since", idle)


def test_a_wall_clock_that_stands_goes_on_after_a_while():
    """The later end of two that overlap."""
    world = World(RunConfig(), Replayed(Tape()))
    world.boot()
    clock, kernel = world.clocks[1], world.kernel
    stands = {2: 1, 7: 1}
    hand = FaultContext(world, Replayed(Tape({"nemesis": stands})).stream("nemesis"))
    named("step-wall-clock").run(hand)
    kernel.run(kernel.now + SECOND // 5)
    named("step-wall-clock").run(hand)
    shown = clock.wall_ms(kernel.now)
    kernel.run(kernel.now + SECOND // 5)
    assert clock.wall_ms(kernel.now) == shown
    kernel.run(kernel.now + SECOND)
    assert clock.wall_ms(kernel.now + SECOND) == clock.wall_ms(kernel.now) + 1_000
