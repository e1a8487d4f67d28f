"""Two activities overlap when both are under way, in one group or on one replica, and count once
for each time that this begins."""

from __future__ import annotations

import pytest

from ottla.sim.coverage.overlaps import ACTIVITIES, GROUP, OVERLAPS, REPLICA, Overlaps, mask_of


def seen(*moments):
    """What is counted after these moments of one group: activities by node."""
    overlaps = Overlaps()
    for moment in moments:
        overlaps.see(7, {node: mask_of(each.split()) for node, each in moment.items()})
    return {
        (one, other, place): times
        for (one, other, place), times in overlaps.counts.items()
        if one != other
    }


@pytest.mark.parametrize(
    ("moments", "counted"),
    [
        ([{1: "barrier"}, {1: ""}, {1: "transfer"}], {}),
        ([{1: "barrier"}, {1: "barrier", 2: "election"}], {("barrier", "election", GROUP): 1}),
        (
            [{1: "election flush"}],
            {("election", "flush", GROUP): 1, ("election", "flush", REPLICA): 1},
        ),
        # it goes on: that is one time, also if it goes on elsewhere
        ([{1: "flush", 2: "election"}] * 3, {("election", "flush", GROUP): 1}),
        (
            [{1: "flush", 2: "election"}, {1: "election", 2: "flush"}],
            {("election", "flush", GROUP): 1},
        ),
        # it ends and begins again
        (
            [{1: "flush", 2: "election"}, {1: "", 2: "election"}, {1: "flush", 2: "election"}],
            {("election", "flush", GROUP): 2},
        ),
        # on one replica only later
        (
            [{1: "flush", 2: "election"}, {1: "flush election", 2: ""}],
            {("election", "flush", GROUP): 1, ("election", "flush", REPLICA): 1},
        ),
        # a node that died is under way with nothing
        ([{1: "flush", 2: "election"}, {1: "flush"}, {1: "flush", 3: "barrier"}], None),
    ],
)
def test_an_overlap_counts_once_each_time_it_begins(moments, counted):
    if counted is None:
        counted = {("election", "flush", GROUP): 1, ("barrier", "flush", GROUP): 1}
    assert seen(*moments) == counted


def test_groups_are_counted_by_themselves():
    overlaps = Overlaps()
    overlaps.see(1, {1: mask_of(["flush"])})
    overlaps.see(2, {1: mask_of(["election"])})
    assert overlaps.counts == {("flush", "flush", GROUP): 1, ("election", "election", GROUP): 1}
    overlaps.see(2, {1: mask_of(["election", "flush"])})
    assert overlaps.counts["election", "flush", REPLICA] == 1


def test_three_at_once_are_three_pairs():
    assert len(seen({1: "snapshot", 2: "compaction", 3: "expiry"})) == 3


def test_the_table_has_each_pair_once():
    pairs = len(ACTIVITIES) * (len(ACTIVITIES) - 1) // 2
    assert len(OVERLAPS) == len(set(OVERLAPS)) == 2 * pairs + len(ACTIVITIES)
