"""The order in which things happen on the deterministic loop is the same in every process."""

import json

import pytest

from ottla.sim.machine.pythons import pythons
from sim_asyncio_orders import GENERATORS, POLICIES, PROGRAMS, TASKS, order
from sim_pythons import fresh

SCRIPT = ["-m", "sim_asyncio_orders"]


@pytest.mark.slow
def test_orders_are_equal_in_fresh_perturbed_and_warmed_processes_whatever_the_hash_seed():
    found = {
        "fresh": fresh(SCRIPT, hash_seed="0"),
        "perturbed heap": fresh([*SCRIPT, "--perturb"], hash_seed="1"),
        "warmed": fresh([*SCRIPT, "--warm"]),
    }
    first, *others = found.values()
    assert all(each == first for each in others), found
    assert len(json.loads(first)) == len(PROGRAMS) * len(POLICIES)


@pytest.mark.slow
def test_orders_are_equal_on_every_cpython():
    interpreters = pythons()
    if len(interpreters) < 2:
        pytest.skip(f"found only {interpreters}")
    found = {version: fresh(SCRIPT, python=each.path) for version, each in interpreters.items()}
    assert len(set(found.values())) == 1, found


@pytest.mark.slow
def test_without_their_numbers_the_same_programs_part_ways():
    """What the two tests above would say of a loop that does not number: they can fail."""
    script = [*SCRIPT, "--by-address", "--perturb"]
    one, other = json.loads(fresh(script)), json.loads(fresh(script))
    assert {name.split()[0] for name in one if one[name] != other[name]} >= {"aborted", "waited"}


@pytest.mark.slow
def test_orders_are_equal_in_this_process_twice():
    for program in ("aborted", "waited"):
        for policy in POLICIES.values():
            ran = [order(PROGRAMS[program], policy, 3) for _ in range(2)]
            assert ran[0] == ran[1]
            assert sorted(ran[0][0]) == list(range(TASKS))


@pytest.mark.parametrize("policy", POLICIES)
def test_tasks_that_are_left_are_cancelled_in_the_order_in_which_they_were_made(policy):
    heard, _ = order(PROGRAMS["left"], POLICIES["fifo"], 3)
    assert heard == list(range(TASKS))
    assert sorted(order(PROGRAMS["left"], POLICIES[policy], 3)[0]) == heard


@pytest.mark.parametrize("policy", POLICIES)
def test_generators_that_are_left_are_closed_in_the_order_in_which_they_began(policy):
    heard, _ = order(PROGRAMS["generators"], POLICIES[policy], 3)
    numbers = list(range(GENERATORS))
    assert heard == numbers[1::2] + numbers[::2]


@pytest.mark.parametrize("policy", POLICIES)
def test_tasks_in_generators_end_and_generators_that_are_left_are_closed_last(policy):
    heard, _ = order(PROGRAMS["within"], POLICIES[policy], 3)
    numbers = range(GENERATORS)
    assert sorted(each for each in heard if each < GENERATORS) == list(numbers)
    assert len(set(heard)) == len(heard)
    left = [number + GENERATORS for number in numbers[1::2]]
    assert sorted(heard[-len(left) :]) == left


@pytest.mark.parametrize("policy", POLICIES)
def test_all_tasks_are_gone_through_in_the_order_in_which_they_were_made(policy):
    heard, _ = order(PROGRAMS["all_of_them"], POLICIES[policy], 3)
    assert heard == list(range(TASKS))


@pytest.mark.parametrize("policy", ["shuffled", "pct"])
def test_another_seed_gives_another_order(policy):
    one, other = (order(PROGRAMS["gathered"], POLICIES[policy], seed)[0] for seed in (1, 2))
    assert one != other
    assert sorted(one) == sorted(other)
