"""Replica placement: even, distinct, and the same for the same past.

Expectations from `broker/controller/placement.py`. Nodes that nobody hears of only fill up a
factor, and what they missed they get when they are back.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.broker.controller.placement import PlacementCounts, Replicas


def spread(counts: list[int]) -> int:
    return max(counts) - min(counts)


def place(
    loads: PlacementCounts, nodes: list[int], partitions: int, factor: int
) -> tuple[Replicas, ...]:
    placed = loads.place(nodes, partitions, factor)
    for replicas in placed:
        loads.add(replicas)
    return placed


@pytest.mark.parametrize(
    ("nodes", "factor"), [(n, f) for n in range(1, 11) for f in range(1, n + 1)]
)
def test_every_number_of_partitions_leaves_leaders_and_replicas_within_one(nodes, factor):
    loads, names = PlacementCounts(), list(range(1, nodes + 1))
    for _ in range(5 * nodes):
        place(loads, names, 1, factor)
        assert spread([loads.leads(node) for node in names]) <= 1
        assert spread([loads.holds(node) for node in names]) <= 1


@pytest.mark.slow
@given(
    nodes=st.sets(st.integers(1, 1000), min_size=1, max_size=9),
    topics=st.lists(st.tuples(st.integers(1, 8), st.integers(1, 9)), max_size=12),
)
@settings(max_examples=100, deadline=None)
def test_replicas_are_distinct_and_each_factor_is_within_one(nodes, topics):
    names, loads = sorted(nodes), PlacementCounts()
    by_factor: dict[int, list[Replicas]] = {}
    for partitions, wanted in topics:
        factor = min(wanted, len(names))
        placed = place(loads, names, partitions, factor)
        assert [len(set(replicas)) for replicas in placed] == [factor] * partitions
        assert nodes.issuperset(node for replicas in placed for node in replicas)
        by_factor.setdefault(factor, []).extend(placed)
    for lists in by_factor.values():
        assert spread([sum(each[0] == node for each in lists) for node in names]) <= 1
        assert spread([sum(node in each for each in lists) for node in names]) <= 1


def test_partitions_of_one_request_are_placed_as_if_they_came_one_by_one():
    at_once, one_by_one, nodes = PlacementCounts(), PlacementCounts(), [1, 2, 3, 4, 5]
    together = place(at_once, nodes, 12, 3)
    assert together == tuple(place(one_by_one, nodes, 1, 3)[0] for _ in range(12))


def test_asking_for_a_placement_counts_nothing():
    loads = PlacementCounts()
    assert loads.place([1, 2, 3], 4, 2) == loads.place([1, 2, 3], 4, 2)
    assert [loads.holds(node) for node in (1, 2, 3)] == [0, 0, 0]


def test_what_was_removed_is_filled_first():
    loads, nodes = PlacementCounts(), [1, 2, 3]
    lists = place(loads, nodes, 6, 1)
    assert lists == ((1,), (2,), (3,), (1,), (2,), (3,))
    loads.remove((2,))
    loads.remove((2,))
    assert loads.place(nodes, 2, 1) == ((2,), (2,))


def test_the_order_in_which_nodes_are_named_does_not_matter():
    assert PlacementCounts().place([3, 1, 2], 4, 2) == PlacementCounts().place([1, 2, 3], 4, 2)


def test_more_replicas_than_nodes_is_a_broken_promise_of_the_caller():
    with pytest.raises(AssertionError, match="4 replicas on 3 nodes"):
        PlacementCounts().place([1, 2, 3], 1, 4)


@pytest.mark.slow
@given(
    nodes=st.sets(st.integers(1, 1000), min_size=2, max_size=9),
    data=st.data(),
)
@settings(max_examples=100, deadline=None)
def test_nodes_unheard_of_only_fill_up_the_factor(nodes, data):
    names = sorted(nodes)
    unheard = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=len(names) - 1))
    factor = data.draw(st.integers(1, len(names)))
    heard = len(names) - len(unheard)
    for replicas in PlacementCounts().place(names, 5, factor, unheard):
        assert replicas[0] not in unheard
        assert len(set(replicas)) == factor
        assert sum(node not in unheard for node in replicas) == min(factor, heard)


def test_a_node_heard_of_again_makes_up_for_what_it_missed():
    loads = PlacementCounts()
    for replicas in loads.place([1, 2, 3], 4, 1, [3]):
        assert replicas in {(1,), (2,)}
        loads.add(replicas)
    assert loads.place([1, 2, 3], 2, 1) == ((3,), (3,))
