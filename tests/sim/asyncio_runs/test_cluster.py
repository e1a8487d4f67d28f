"""The real broker and real clients on the deterministic loop: right, and the same every time.

The program under all of these is `tests/lib/sim_asyncio_cluster.py`, whose records must stand once
and in order whatever is done to the cluster.
"""

import json

import pytest

from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.sim.asyncio_runs.clockwork import LoopClockwork, LoopPort
from ottla.sim.asyncio_runs.engine import RunFailedError
from ottla.sim.asyncio_runs.outside import PATCHES
from ottla.sim.asyncio_runs.policies import fifo, pct, shuffled, starving
from ottla.sim.asyncio_runs.run import run
from ottla.sim.asyncio_runs.steps import first_difference
from ottla.sim.chance.choices import Drawn, Replayed, Tape
from sim_asyncio_cluster import (
    cut_the_leader_off,
    exactly_once_in_order,
    kill_the_leader,
    nothing,
    reset_connections,
    simulate,
)
from sim_pythons import fresh

POLICIES = {"fifo": fifo, "shuffled": shuffled, "pct": pct(3, 5000), "starving": starving}
FAULTS = (kill_the_leader, cut_the_leader_off, reset_connections)
SCRIPT = ["-m", "sim_asyncio_cluster"]


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_records_stand_once_and_in_order_though_leaders_are_killed(policy):
    world = simulate(1, kill_the_leader, policy=POLICIES[policy]).result
    exactly_once_in_order(world)
    assert len(world.story) == 2
    for leader, before, successor in world.story:
        assert successor != leader
        assert 0 < before < world.records


@pytest.mark.slow
@pytest.mark.parametrize("fault", [cut_the_leader_off, reset_connections, nothing])
def test_records_stand_once_and_in_order_on_a_bad_network(fault):
    world = simulate(2, fault).result
    exactly_once_in_order(world)
    if fault is cut_the_leader_off:
        assert [turned for _, turned, _ in world.story] == [False, True]
    if fault is reset_connections:
        assert sum(world.story) >= 9


@pytest.mark.slow
def test_nodes_on_lmdb_run_on_the_loop_as_well(tmp_path):
    outcomes = [simulate(3, records=200, data_dir=tmp_path / name) for name in ("one", "another")]
    for each in outcomes:
        exactly_once_in_order(each.result)
    assert outcomes[0].digest == outcomes[1].digest


def test_a_second_run_on_the_same_disk_is_another_life(tmp_path):
    """Its clock begins at 0 again: the controller took its first command for that of the first run,
    answered what had come of it, and made no topic."""

    async def made(loop, topic):
        cluster = AsyncCluster(
            1,
            seed=1,
            data_dir=tmp_path,
            clockwork=lambda _: LoopClockwork(loop),
            open_port=LoopPort,
        )
        await cluster.start()
        await cluster.create_topic(topic)
        found = sorted(cluster.describe().topics)
        await cluster.stop()
        return found

    assert run(lambda loop: made(loop, "t")).result == ["t"]
    assert run(lambda loop: made(loop, "u")).result == ["t", "u"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_digest_in_any_process_and_another_seed_another():
    found = [json.loads(fresh([*SCRIPT, "4"], hash_seed=each)) for each in ("1", "random")]
    assert found[0] == found[1]
    here = simulate(4)
    assert here.digest == found[0]["digest"]
    assert simulate(5).digest != here.digest


@pytest.mark.slow
def test_a_run_is_done_again_from_its_tape_and_runs_from_an_empty_one():
    drawn = Drawn(8)
    first = simulate(drawn, records=200)
    assert simulate(Replayed(drawn.tape), records=200).digest == first.digest
    assert len(drawn.tape) > 100
    exactly_once_in_order(simulate(Replayed(Tape()), records=200).result)


@pytest.mark.slow
def test_two_seeds_part_at_a_step_that_can_be_named():
    one, other, again = (simulate(seed, records=50, keep_trace=True) for seed in (6, 7, 6))
    assert first_difference(one.rows, again.rows) is None
    found = first_difference(one.rows, other.rows)
    assert "ottla." in str(found) or "Task-" in str(found) or "bytes at" in str(found)


@pytest.mark.slow
def test_without_sets_in_order_processes_part_ways():
    """What the table is for, and that the tests above can fail."""
    digests = {fresh([*SCRIPT, "4", "--without", "set,frozenset"]) for _ in range(6)}
    assert len(digests) > 1


def test_records_are_stamped_with_virtual_time():
    """aiokafka's C module reads the clock: the broker refuses what comes from the future."""
    left = [each for each in PATCHES if each.name != "DefaultRecordBatchBuilder"]
    with pytest.raises(RunFailedError) as failed:
        simulate(4, patches=left)
    assert failed.value.failures
    # The program may have ended by then, or end in the shutdown that follows.
    told = [*getattr(failed.value, "__notes__", ()), repr(failed.value.__cause__)]
    assert "InvalidTimestampError" in "".join(told)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_seeds_end_well_under_every_policy(seed):
    for place, policy in enumerate(POLICIES.values(), seed):
        fault = FAULTS[place % len(FAULTS)]
        exactly_once_in_order(simulate(seed, fault, records=60, policy=policy).result)


@pytest.mark.parametrize(
    "seed",
    [
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 103)),
        *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(103, 110)),
    ],
)
def test_many_seeds_end_well(seed):
    for fault in FAULTS:
        for policy in POLICIES.values():
            exactly_once_in_order(simulate(seed, fault, records=300, policy=policy).result)
