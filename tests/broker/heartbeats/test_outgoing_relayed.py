"""Who leads, passed on to who does not hear it: for clients, so that a cut between two nodes keeps
none of theirs (sim-S68).

Three nodes or more, every beat and ack carried by hand. A book tells what was passed on to it for
as long as who said so is heard, and cores never come to know of it.
"""

import pytest

from broker_beat_pair import INTERVAL, always, book
from ottla.broker.heartbeats import outgoing as beats_out
from ottla.broker.heartbeats.heartbeats import LATELY
from ottla.broker.heartbeats.messages import Claim

GROUP = 7
WITHIN = 20 * INTERVAL
NODES = (1, 2, 3)


class Nodes:
    """Books of some nodes without cores, and the links between them."""

    def __init__(self, nodes=NODES):
        self.now = 0
        self.books = {node: book(node, peers=nodes) for node in nodes}
        self.cut = set()

    def separate(self, here, there):
        self.cut |= {(here, there), (there, here)}

    def run(self, intervals=LATELY + 3):
        """Everybody's beats and acks, so many times."""
        for _ in range(intervals):
            self.now += INTERVAL
            beats = [beat for each in self.books.values() for beat in each.due(self.now)]
            for beat in beats:
                if (beat.sender, beat.to) not in self.cut:
                    ack, _ = self.books[beat.to].on_beat(beat, self.now, always(None))
                    if (beat.to, beat.sender) not in self.cut:
                        self.books[beat.sender].on_ack(ack, self.now)

    def lead(self, node, term):
        self.books[node].leading(GROUP, term, (), 0)

    def told(self, node):
        """Whom others say to lead, to this node."""
        return self.books[node].relayed(GROUP, self.now, WITHIN)


def test_nothing_is_passed_on_where_all_hear_all():
    nodes = Nodes()
    nodes.lead(2, 3)
    nodes.run()
    assert [nodes.told(each) for each in NODES] == [None, None, None]


def test_who_does_not_hear_the_leader_is_told_by_who_hears_both():
    nodes = Nodes()
    nodes.separate(1, 2)
    nodes.lead(2, 3)
    nodes.run()
    assert nodes.told(1) == Claim(3, 2)
    assert nodes.told(3) is None
    assert nodes.books[1].leader_of(GROUP) is None, "no core may come to follow by it"
    assert nodes.books[1].vouched(GROUP) is None


def test_so_is_who_is_heard_by_nobody():
    """Node 1 still said last that it hears node 2, when its beats got through no more."""
    nodes = Nodes()
    nodes.run()
    nodes.cut |= {(1, 2), (2, 1), (1, 3)}
    nodes.lead(2, 3)
    nodes.run()
    assert nodes.told(1) == Claim(3, 2)


def test_a_claim_that_is_withdrawn_is_passed_on_no_more():
    nodes = Nodes()
    nodes.separate(1, 2)
    nodes.lead(2, 3)
    nodes.run()
    nodes.books[2].not_leading(GROUP)
    nodes.run()
    assert nodes.told(1) is None


def test_nor_is_that_of_a_node_that_is_heard_no_more():
    nodes = Nodes()
    nodes.separate(1, 2)
    nodes.lead(2, 3)
    nodes.run()
    nodes.separate(2, 3)
    nodes.run()
    assert nodes.told(1) is None


def test_nor_is_anything_believed_of_who_fell_silent():
    nodes = Nodes()
    nodes.separate(1, 2)
    nodes.lead(2, 3)
    nodes.run()
    nodes.separate(1, 3)
    nodes.run(WITHIN // INTERVAL)
    assert nodes.told(1) == Claim(3, 2)
    nodes.run(1)
    assert nodes.told(1) is None


@pytest.mark.parametrize("leaders", [{2: 3, 4: 5}, {2: 5, 4: 3}])
def test_of_two_who_claim_a_group_the_newer_is_passed_on(leaders):
    nodes = Nodes((1, 2, 3, 4))
    for node, term in leaders.items():
        nodes.separate(1, node)
        nodes.lead(node, term)
    nodes.run()
    newest = max(leaders, key=lambda each: leaders[each])
    assert nodes.told(1) == Claim(5, newest)


def test_of_two_who_say_otherwise_the_newer_is_believed():
    """Nodes 3 and 5 hear one of the two each."""
    nodes = Nodes((1, 2, 3, 4, 5))
    for node, term in ((2, 3), (4, 5)):
        nodes.separate(1, node)
        nodes.lead(node, term)
    nodes.separate(3, 4)
    nodes.separate(5, 2)
    nodes.run()
    assert nodes.told(1) == Claim(5, 4)


def test_who_begins_anew_and_is_not_heard_is_told_of_everything():
    """Seed 0 with `partitions=40`: its beats no longer got through to the leader, which went on
    from what its former life had acknowledged (sim-S72)."""
    nodes = Nodes()
    nodes.lead(2, 3)
    nodes.run()
    assert nodes.books[3].leader_of(GROUP) == (2, 3)
    nodes.cut.add((3, 2))
    nodes.books[3] = book(3, peers=NODES, incarnation=2)
    nodes.run()
    assert nodes.books[3].leader_of(GROUP) == (2, 3)
    nodes.books[2].not_leading(GROUP)
    nodes.run(1)
    assert nodes.books[3].leader_of(GROUP) is None
    nodes.cut.clear()
    nodes.run()
    assert not any(beat.full for beat in nodes.books[2].due(nodes.now + INTERVAL))


def test_who_comes_back_is_told_of_everything_at_once():
    """It waited for the next interval, because all claims were on their way to it all the time: the
    loss table of `acks` showed it."""
    nodes = Nodes()
    nodes.lead(2, 3)
    nodes.run()
    nodes.separate(2, 3)
    nodes.run()
    again = book(3, peers=NODES, incarnation=2)
    (beat,) = (each for each in again.due(nodes.now) if each.to == 2)
    nodes.books[2].on_beat(beat, nodes.now, always(None))
    (answer,) = nodes.books[2].due(nodes.now)
    assert (answer.to, answer.full, len(answer.items)) == (3, True, 1)


def test_a_dead_peer_costs_no_look_at_claims_once_it_was_relayed_to(monkeypatch):
    """All claims were copied for it, each interval, for as long as it was dead."""
    nodes = Nodes()
    nodes.lead(2, 3)
    for other in (2, 3):
        nodes.separate(1, other)
    nodes.run()
    looked: list[int] = []

    def newest(of):
        looked.append(len(of))
        return {}

    monkeypatch.setattr(beats_out, "newest", newest)
    nodes.run(20)
    assert looked == []
    nodes.books[2].leading(GROUP, 4, (), 0)
    nodes.run(3)
    assert looked == [1]
