"""Beats under loss, copies, reordering and restarts claim nothing that the naive model denies.

The naive model puts the full state into every beat (`broker_beat_world`). After every step, what is
vouched for is held against what the sender led when it made that beat, and what an ack is taken for
against what the receiver's core followed when it answered. Once nothing is lost any more, both
models know the same.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker_beat_world import World
from searches import examples

NODES = (1, 2, 3)
VOTERS = {10: (1, 2, 3), 11: (1, 2, 3), 12: (1, 2)}

nodes = st.sampled_from(NODES)
groups = st.sampled_from(sorted(VOTERS))
places = st.integers(0, 30)


class BeatsAgainstFullState(RuleBasedStateMachine):
    """Every step is followed by a comparison of what is believed with what was true."""

    acks_ride = False

    def __init__(self):
        super().__init__()
        self.world = World(NODES, VOTERS, acks_ride=self.acks_ride)
        self.believed = {}

    @rule(group=groups, node=nodes)
    def elect(self, group, node):
        if node in VOTERS[group]:
            self.world.elect(group, node)

    @rule(group=groups, node=nodes)
    def resign(self, group, node):
        self.world.resign(group, node)

    @rule(group=groups, node=nodes, upto=places, follower=nodes, match=places)
    def commit(self, group, node, upto, follower, match):
        self.world.commit(group, node, upto=upto, follower=follower, match=match)

    @rule(group=groups, node=nodes, by=st.integers(1, 2))
    def term_moves(self, group, node, by):
        self.world.move_term(group, node, self.world.terms[group] + by)

    @rule(group=groups, node=nodes)
    def close_or_open_replica(self, group, node):
        state = self.world.nodes[node]
        if group not in state.led and node in VOTERS[group]:
            if state.cores.pop(group, None) is None:
                state.cores[group] = 0
            state.book.term_moved(group)

    @rule(node=nodes)
    def beat(self, node):
        self.world.beats(node)

    @rule(node=nodes, group=groups)
    def beat_in_a_hurry(self, node, group):
        self.world.nodes[node].book.urgent(group)
        self.world.beats(node, after=1)

    @rule(place=places, keep=st.booleans())
    def deliver(self, place, keep):
        bag = self.world.bag
        if bag:
            place %= len(bag)
            self.world.deliver(bag[place] if keep else bag.pop(place))

    @rule()
    def deliver_all_in_order(self):
        for _ in range(len(self.world.bag)):
            self.world.deliver(self.world.bag.pop(0))

    @rule(place=places)
    def lose(self, place):
        if self.world.bag:
            self.world.bag.pop(place % len(self.world.bag))

    @rule(node=nodes)
    def restart(self, node):
        self.world.restart(node)

    @invariant()
    def a_claim_is_vouched_for_by_a_beat_whose_sender_then_led(self):
        for state, group in self.world.pairs():
            vouched = state.book.vouched(group)
            if vouched is not None:
                leader, term, heard = vouched
                sent = self.world.taken_at[state.node, heard]
                assert sent.beat.sender == leader
                assert sent.led.get(group) == term
                assert sent.order == self.world.newest[state.node, heard]

    @invariant()
    def no_term_is_believed_once_a_higher_one_was(self):
        for state, group in self.world.pairs():
            known = state.book.leader_of(group)
            if known is not None:
                place = (state.node, state.incarnation, group)
                assert known[1] >= self.believed.get(place, 0)
                self.believed[place] = known[1]

    @invariant()
    def a_reply_is_vouched_for_by_an_ack_whose_sender_then_followed(self):
        for state, group in self.world.pairs():
            for peer, at in state.book.replies_vouched(group):
                followed = self.world.followed[peer, state.node, at]
                term = state.led[group].term
                assert any(cores.get(group) == term for cores in followed)

    @rule()
    def all_is_known_once_nothing_is_lost(self):
        world = self.world
        world.settle()
        for state, group in world.pairs():
            leaders = {n.led[group].term: n.node for n in world.nodes.values() if group in n.led}
            known = state.book.leader_of(group)
            if leaders and max(leaders) == world.terms[group]:
                assert known == (leaders[max(leaders)], max(leaders))
            elif known is not None:
                assert leaders.get(known[1]) == known[0]
        self.followers_know_what_is_committed()

    def followers_know_what_is_committed(self):
        for leader, group in self.world.pairs():
            led = leader.led.get(group)
            if led is None or led.term != self.world.terms[group]:
                continue
            for peer in VOTERS[group]:
                follower = self.world.nodes[peer]
                if peer != leader.node and group in follower.cores:
                    assert follower.commits[group] == min(led.commit, led.known_to(peer))
                    assert peer in dict(leader.book.replies_vouched(group))


class RidingAcksAgainstFullState(BeatsAgainstFullState):
    """The same where acknowledgements wait for the next beat."""

    acks_ride = True


SETTINGS = settings(max_examples=examples(60), stateful_step_count=50, deadline=None)
BeatsAgainstFullState.TestCase.settings = SETTINGS
RidingAcksAgainstFullState.TestCase.settings = SETTINGS
TestBeatsAgainstFullState = BeatsAgainstFullState.TestCase
TestRidingAcksAgainstFullState = pytest.mark.slow(RidingAcksAgainstFullState.TestCase)
