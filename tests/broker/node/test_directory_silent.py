"""Which nodes count as silent, from their beats, where something new is to be placed; and which of
them a node that does not know all topics names to clients."""

from typing import cast

import pytest

from ottla.broker.driver.runner import Runner
from ottla.broker.heartbeats.heartbeats import Beat, Heartbeats
from ottla.broker.node.directory import Directory
from ottla.raft.quorum import majority

TIMEOUT = 1000
NOBODY = cast(Runner, None)
"""Who leads what is not asked here."""


class Listener:
    """Node 1 of so many, up for long; `hear` takes a beat of another one."""

    def __init__(self, nodes):
        self.now = 50_000
        self.count = 0
        everybody = range(1, nodes + 1)
        self.beats = Heartbeats(1, everybody[1:], 100, incarnation=1, now=self.now)
        self.directory = Directory(1, everybody, NOBODY, self.beats, 2 * TIMEOUT)
        self.directory.begin(self.now)
        self.now += 10 * TIMEOUT

    def hear(self, *senders):
        self.count += 1
        for sender in senders:
            beat = Beat(sender, 1, 1, self.count, 1, 0, full=True, items=(), sent_at=self.now)
            self.beats.on_beat(beat, self.now, lambda _: None)

    def silent(self):
        return list(self.directory.silent(self.now))

    def named(self, informed):
        return list(self.directory.named((), self.now, informed=informed))


def test_who_has_just_begun_takes_nobody_for_silent():
    node = Listener(3)
    node.directory.begin(node.now)
    node.now += 2 * TIMEOUT - 1
    node.hear(2)
    assert node.silent() == []
    node.now += 1
    assert node.silent() == [3]


def test_silence_lasts_an_election_timeout():
    node = Listener(3)
    node.hear(2, 3)
    node.now += TIMEOUT
    node.hear(2)
    assert node.silent() == []
    node.now += 1
    assert node.silent() == [3]


@pytest.mark.parametrize(("nodes", "others"), [(3, []), (4, [2]), (5, [2])])
def test_a_node_that_hears_of_no_majority_judges_nobody(nodes, others):
    node = Listener(nodes)
    node.hear(*others)
    assert node.silent() == []


@pytest.mark.parametrize(
    ("nodes", "others", "named"),
    [
        (3, [2, 3], [2, 3]),
        (3, [2], [1, 2]),
        (4, [2, 3], [2, 3]),
        (5, [2, 3, 4], [2, 3, 4]),
        (5, [2, 3], [1, 2, 3]),
    ],
)
def test_who_does_not_know_all_topics_leaves_itself_out_where_half_of_all_remain(
    nodes, others, named
):
    """Fewer may all be gone for good while a majority is well, and a client has forgotten it."""
    node = Listener(nodes)
    node.hear(*others)
    assert node.named(informed=True) == [1, *others]
    assert node.named(informed=False) == named


@pytest.mark.parametrize("informed", [True, False])
@pytest.mark.parametrize("nodes", range(1, 7))
def test_every_majority_has_one_of_those_that_a_node_names(nodes, informed):
    """Whichever it hears, and whether it hears a majority or none."""
    for heard in range(nodes):
        node = Listener(nodes)
        node.hear(*range(2, 2 + heard))
        assert nodes - len(node.named(informed)) < majority(nodes), f"{heard} others heard"
