"""Two drivers, one truth: what replicas drain decides what they come to, whoever drives them.

Tapes come from runs of the kernel, with crashes, snapshots and lost disks' tails, and from the real
asyncio cluster with a real client while its leader is killed. Each is played under both drivers.
"""

from contextlib import ExitStack
from dataclasses import replace as changed

import pytest

import ottla.broker.node.node_factory
from ottla.broker.config import ClusterConfig
from ottla.broker.controller.controller import CONTROLLER_GROUP
from ottla.sim.asyncio_runs.drivers.player import (
    DriversDifferError,
    difference,
    on_the_kernel,
    on_the_loop,
    tape_of,
)
from ottla.sim.asyncio_runs.drivers.turn_tape import Recorder, taped
from ottla.sim.asyncio_runs.policies import shuffled
from ottla.sim.asyncio_runs.run import run as run_program
from ottla.sim.chance.outside import replace
from ottla.sim.settings.settings import RunConfig
from sim_asyncio_cluster import exactly_once_in_order, kill_the_leader, program

CONFIG = RunConfig(profile="reference-strict", load_ms=5_000, records=100)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_turns_of_the_kernel_come_to_the_same_under_both(seed):
    assert difference(seed, CONFIG) is None


@pytest.mark.slow
def test_who_the_nemesis_has_stand_for_election_stands_again():
    """Its call passes the replica by, and was not on the tape: such seeds were a difference."""
    often = CONFIG.with_(load_ms=3_000, records=40, fault_every_ms=200, faults="rivals")
    tape, config = tape_of(1, often)
    assert any(step.call == "campaign" for step in tape.steps)
    assert on_the_kernel(tape, config) == on_the_loop(tape, config) == tape.ends


@pytest.mark.slow
def test_lives_begin_with_what_their_disk_held():
    tape, config = tape_of(1, CONFIG)
    assert any(line.hard_state is not None and line.kept for line in tape.lines)
    assert on_the_kernel(tape, config) == on_the_loop(tape, config) == tape.ends


@pytest.mark.slow
def test_what_the_controller_decides_is_compared_too():
    tape, config = tape_of(1, CONFIG)
    where = next((node, group) for node, group in tape.ends if group == CONTROLLER_GROUP)
    assert len(tape.ends[where].log) > 1
    tape.ends[where] = tape.ends[where]._replace(producers=0)
    with pytest.raises(DriversDifferError, match=f"node {where[0]}, group {where[1]} ends with"):
        on_the_kernel(tape, config)


@pytest.mark.slow
def test_where_the_controller_was_told_otherwise_it_places_otherwise():
    tape, config = tape_of(0, CONFIG)
    asked = next(line for line in tape.lines if line.unheard)
    asked.unheard[0] = tuple(asked.replicas[:2])
    with pytest.raises(DriversDifferError, match=f"group {CONTROLLER_GROUP}"):
        on_the_kernel(tape, config)


@pytest.mark.slow
def test_turns_of_the_real_cluster_come_to_the_same_in_the_kernel():
    with ExitStack() as stack:
        made = []

        def main(loop):
            made.append(Recorder(loop.now))
            replace(stack, ottla.broker.node.node_factory, "ReplicaFactory", taped(made[0]))
            return program(kill_the_leader, 300)(loop)

        outcome = run_program(main, seed=7, policy=shuffled, jitter=200, chop_ppm=50_000)
        exactly_once_in_order(outcome.result)
        tape = made[0].finish((1, 2, 3))
    assert len({line.node for line in tape.lines}) == 3
    assert len(tape.lines) > 6, "a node was killed and came back"
    assert any(step.call == "turn" and len(step.arguments[1]) > 1 for step in tape.steps)
    assert on_the_kernel(tape, CLUSTER) == on_the_loop(tape, CLUSTER) == tape.ends


CLUSTER = ClusterConfig(link_delay_ms=1)


@pytest.mark.slow
def test_a_drain_that_differs_is_seen_where_it_differs():
    tape, config = tape_of(1, CONFIG)
    place, step = next(
        (place, step)
        for place, step in enumerate(tape.steps)
        if step.call == "turn" and step.arguments[1] and step.came[1]
    )
    now, _ = step.arguments
    tape.steps[place] = step._replace(arguments=(now, ()))
    with pytest.raises(DriversDifferError, match=f"at {step.at} us node .*, turn"):
        on_the_kernel(tape, config)


@pytest.mark.slow
def test_ends_are_compared():
    tape, config = tape_of(1, CONFIG)
    where, end = next(iter(tape.ends.items()))
    tape.ends[where] = end._replace(producers=end.producers ^ 1)
    with pytest.raises(DriversDifferError, match=f"node {where[0]}, group {where[1]} ends with"):
        on_the_loop(tape, config)


@pytest.mark.slow
def test_another_election_timeout_is_another_tape():
    tape, config = tape_of(3, CONFIG)
    tape.lines[0] = changed(tape.lines[0], drawn=[])
    with pytest.raises(DriversDifferError, match="election timeout"):
        on_the_kernel(tape, config)
