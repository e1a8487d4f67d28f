"""The producer mutex: first come first served, nobody forgotten, nobody disturbed.

Single steps first, then a state machine against a model in which everybody who is there stands in
one queue per producer, the holder at its head.
"""

from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla.idempotency.mutex import ProducerMutex
from searches import examples

producers = st.integers(1, 3)


@pytest.fixture
def mutex():
    return ProducerMutex()


def test_the_first_holds_it_and_the_others_stand_in_line(mutex):
    assert mutex.acquire(7, "a")
    assert not mutex.acquire(7, "b")
    assert not mutex.acquire(7, "c")
    assert mutex.waiting(7) == 2
    assert [mutex.release(7), mutex.release(7), mutex.release(7)] == ["b", "c", None]
    assert not mutex.held(7)
    assert mutex.acquire(7, "d")


def test_whoever_is_named_holds_it_already(mutex):
    mutex.acquire(7, "a")
    mutex.acquire(7, "b")
    assert mutex.release(7) == "b"
    assert not mutex.acquire(7, "c")
    assert mutex.held(7)


def test_producers_do_not_notice_each_other(mutex):
    mutex.acquire(7, "a")
    mutex.acquire(7, "b")
    assert mutex.acquire(8, "c")
    assert mutex.release(8) is None
    assert mutex.waiting(7) == 1


def test_the_end_of_a_term_names_all_in_order_and_frees_everything(mutex):
    for producer, waiter in [(7, "a"), (8, "b"), (7, "c"), (8, "d"), (7, "e")]:
        mutex.acquire(producer, waiter)
    assert list(mutex.waiters()) == ["c", "e", "d"]
    assert mutex.drop_all() == ["c", "e", "d"]
    assert mutex.drop_all() == []
    assert mutex.acquire(7, "f")


def test_releasing_what_nobody_holds_is_a_broken_invariant(mutex):
    mutex.acquire(8, "a")
    with pytest.raises(AssertionError, match="producer 7 is released, 1 others held"):
        mutex.release(7)


def test_nobody_can_stand_in_line_as_none(mutex):
    mutex.acquire(7, "a")
    with pytest.raises(AssertionError, match="None stands in line"):
        mutex.acquire(7, None)


class MutexMachine(RuleBasedStateMachine):
    """Against a model: per producer the queue of everybody who is there, the holder at its head."""

    def __init__(self):
        super().__init__()
        self.mutex: ProducerMutex[int] = ProducerMutex()
        self.present = {}
        self.arrived = 0

    @rule(producer=producers)
    def acquire(self, producer):
        self.arrived += 1
        line = self.present.setdefault(producer, deque())
        assert self.mutex.acquire(producer, self.arrived) == (not line)
        line.append(self.arrived)

    @precondition(lambda self: any(self.present.values()))
    @rule(data=st.data())
    def release(self, data):
        held = sorted(producer for producer, line in self.present.items() if line)
        line = self.present[producer := data.draw(st.sampled_from(held))]
        line.popleft()
        assert self.mutex.release(producer) == (line[0] if line else None)

    @rule()
    def end_of_term(self):
        waiting = sorted(waiter for line in self.present.values() for waiter in list(line)[1:])
        dropped = self.mutex.drop_all()
        assert sorted(dropped) == waiting, "a lost wake-up"
        for line in self.present.values():
            mine = [waiter for waiter in dropped if waiter in line]
            assert mine == list(line)[1:], "not in order"
        self.present.clear()

    @invariant()
    def the_lines_are_as_long_as_in_the_model(self):
        for producer in range(1, 4):
            line = self.present.get(producer, ())
            assert self.mutex.held(producer) == bool(line)
            assert self.mutex.waiting(producer) == max(0, len(line) - 1)


TestMutexMachine = MutexMachine.TestCase
TestMutexMachine.settings = settings(
    max_examples=examples(40), stateful_step_count=40, deadline=None
)
