"""Random lives of whole groups: Hypothesis searches them, and a generator makes them in bulk.

Both drive the same world and the same watch (`raft_invariants`): Hypothesis for small
counter-examples, the generator (`raft_chaos`) for length. By hand it runs for as long as you like.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from ottla.raft.roles import Role
from raft_chaos import Chaos, live
from raft_describe import describe_core
from raft_invariants import Watch
from raft_transcript import FixedJitter
from raft_world import ELECTION, RETRANSMIT, World
from searches import examples

members = st.integers(1, 5)


class Group(RuleBasedStateMachine):
    """A group of 3 or 5. The watch asserts after every effect; the rules only make trouble."""

    @initialize(
        nodes=st.sampled_from([3, 5]), small=st.booleans(), short=st.booleans(), leader=members
    )
    def begin(self, nodes: int, small: bool, short: bool, leader: int) -> None:
        limits = {"max_append_bytes": 40, "max_inflight_bytes": 80, "snapshot_chunk_bytes": 4}
        self.watch = Watch()
        self.world = World(nodes, FixedJitter, self.watch, **(limits if small else {}))
        self.world.short = short
        self.said = 0
        self.world.elect(min(leader, nodes))

    def one(self, number: int):
        """A member, by any number."""
        return self.world.members[(number - 1) % len(self.world.members) + 1]

    @precondition(lambda self: self.world.flying)
    @rule(data=st.data(), again=st.sampled_from([False] * 5 + [True]))
    def deliver(self, data: st.DataObject, again: bool) -> None:
        place = data.draw(st.integers(0, len(self.world.flying) - 1))
        message = self.world.flying[place] if again else self.world.flying.pop(place)
        self.world.deliver(message)

    @precondition(lambda self: self.world.flying)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        self.world.flying.pop(data.draw(st.integers(0, len(self.world.flying) - 1)))

    @rule()
    def deliver_all(self) -> None:
        flying, self.world.flying = self.world.flying, []
        for message in flying:
            self.world.deliver(message)

    @precondition(lambda self: self.world.flying)
    @rule(number=members)
    def turn(self, number: int) -> None:
        """Everything for one member arrives within one turn."""
        to = self.one(number).node
        arriving = [message for message in self.world.flying if message.to == to]
        if arriving:
            self.world.flying = [message for message in self.world.flying if message.to != to]
            self.world.deliver_together(arriving)

    @rule(number=members, count=st.integers(1, 3))
    def finish_writes_of_one(self, number: int, count: int) -> None:
        member = self.one(number)
        if member.alive and member.writes:
            member.finish_together(count)
            member.take()

    @rule()
    def finish_writes(self) -> None:
        self.world.finish_writes()

    @rule()
    def settle(self) -> None:
        self.world.settle()

    @rule(number=members, written=st.booleans())
    def crash(self, number: int, written: bool) -> None:
        member = self.one(number)
        if member.alive:
            if written and member.writes:
                member.finish_write(tell=False)
            member.crash()

    @rule(number=members)
    def restart(self, number: int) -> None:
        member = self.one(number)
        if not member.alive:
            member.restart()

    @rule(span=st.sampled_from([1, RETRANSMIT, ELECTION // 2, ELECTION + 100]), number=members)
    def time(self, span: int, number: int) -> None:
        """Time passes, and one member notices before the others can."""
        self.world.now += span
        member = self.one(number)
        if member.alive:
            member.core.advance(self.world.now)
            member.take()

    @rule()
    def beat(self) -> None:
        self.world.beat()

    @rule(number=members, count=st.integers(1, 3))
    def propose(self, number: int, count: int) -> None:
        member = self.one(number)
        if member.alive:
            payloads = [b"%d" % (self.said + each) for each in range(count)]
            self.said += count
            first = self.world.propose(member.node, *payloads)
            leads = member.core.role is Role.LEADER
            assert (first is not None) == (leads and not member.core.transferring_to)

    @rule(number=members)
    def propose_for_an_old_term(self, number: int) -> None:
        member = self.one(number)
        if member.alive:
            assert self.world.propose(member.node, b"late", term=member.core.term - 1) is None

    @rule(number=members, to=members)
    def transfer(self, number: int, to: int) -> None:
        member = self.one(number)
        if member.alive:
            member.core.transfer(to, self.world.now)
            member.take()

    @rule(number=members)
    def step_down(self, number: int) -> None:
        member = self.one(number)
        if member.alive:
            member.core.step_down(self.world.now)
            member.take()

    @rule(number=members)
    def barrier(self, number: int) -> None:
        member = self.one(number)
        if member.alive:
            self.world.barrier(member.node)

    @rule(number=members, back=st.integers(0, 3))
    def compact(self, number: int, back: int) -> None:
        member = self.one(number)
        index = member.core.commit - back
        if member.alive and index >= member.core.first_index:
            member.compact(index)
            member.take()

    @rule(number=members, both=st.booleans(), to=members)
    def cut(self, number: int, both: bool, to: int) -> None:
        a, b = self.one(number).node, self.one(to).node
        self.world.cut |= {(a, b), (b, a)} if both else {(a, b)}

    @rule()
    def heal(self) -> None:
        self.world.heal()

    @invariant()
    def nothing_waits_unasked(self) -> None:
        """Whoever may act has said when; what is ready has been taken."""
        for member in getattr(self, "world", World(0, FixedJitter)).alive:
            assert member.core.deadline is not None
            assert not member.core.has_ready()


Group.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
TestGroup = Group.TestCase


@pytest.mark.parametrize("seed", range(60))
def test_a_random_life_keeps_every_promise_and_recovers(seed: int) -> None:
    live(seed)


@pytest.mark.slow
def test_many_random_lives() -> None:
    for seed in range(1000, 2500):
        live(seed)


def test_lives_are_not_idle() -> None:
    """The generator is worth its time only if the lives it makes have elections and commits."""
    chaos = [live(seed) for seed in range(200, 220)]
    assert sum(len(each.watch.leaders) for each in chaos) >= 40
    assert sum(each.watch.last_committed for each in chaos) >= 100


def test_the_same_seed_lives_the_same_life() -> None:
    def told(seed: int) -> list[str]:
        chaos: Chaos = live(seed)
        cores = [member.core for member in chaos.world.members.values()]
        return [line for core in cores for line in describe_core(core)]

    assert told(4) == told(4)
    assert told(4) != told(5)
