"""The timer queue against a plain dictionary, and what moving a deadline later costs.

Lazy re-arm may make the queue look up a key too early, never too late: `next` is a lower bound,
and waking up there until nothing is left must end.
Cost is counted in calls, which is the same on any machine.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_calls import calls_of
from ottla.broker.event_loop.timers import TimerQueue

keys = st.integers(0, 5)
times = st.integers(0, 30)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("set"), keys, st.none() | times),
        st.tuples(st.just("pop"), st.just(0), times),
    )
)


def test_an_empty_queue_has_nothing_to_wait_for():
    queue: TimerQueue[object] = TimerQueue()
    assert queue.next() is None
    assert queue.pop_due(1000) == []
    assert len(queue) == 0


def test_due_keys_come_by_deadline_and_then_by_the_order_of_setting():
    queue: TimerQueue[object] = TimerQueue()
    for key, when in (("c", 20), ("b", 10), ("a", 10), ("d", 31)):
        queue.set(key, when)
    assert queue.pop_due(30) == ["b", "a", "c"]
    assert queue.next() == 31
    assert queue.pop_due(30) == []
    assert queue.pop_due(31) == ["d"]
    assert queue.next() is None


def test_a_deadline_moved_earlier_is_kept():
    queue: TimerQueue[object] = TimerQueue()
    queue.set("a", 50)
    queue.set("a", 20)
    assert queue.next() == 20
    assert queue.pop_due(20) == ["a"]
    assert queue.pop_due(50) == []


def test_a_deadline_moved_later_is_not_due_at_its_old_time():
    queue: TimerQueue[object] = TimerQueue()
    queue.set("a", 20)
    queue.set("a", 50)
    assert queue.get("a") == 50
    assert queue.pop_due(49) == []
    assert queue.next() == 50
    assert queue.pop_due(50) == ["a"]


def test_lazily_moved_keys_come_in_the_order_of_what_is_wanted():
    queue: TimerQueue[object] = TimerQueue()
    queue.set("a", 1)
    queue.set("b", 2)
    queue.set("a", 9)
    assert queue.pop_due(10) == ["b", "a"]


def test_a_cancelled_key_is_not_due_and_can_be_set_again():
    queue: TimerQueue[object] = TimerQueue()
    queue.set("a", 20)
    queue.set("a", None)
    assert (queue.next(), len(queue), queue.get("a")) == (None, 0, None)
    queue.set("a", 30)
    assert queue.pop_due(29) == []
    assert queue.pop_due(30) == ["a"]


def test_keys_need_not_be_comparable():
    queue: TimerQueue[object] = TimerQueue()
    for key in ("a", 1, (2, "b"), None):
        queue.set(key, 5)
    assert queue.pop_due(5) == ["a", 1, (2, "b"), None]


@pytest.mark.slow
@given(steps)
def test_it_agrees_with_a_dictionary(taken):
    queue: TimerQueue[int] = TimerQueue()
    wanted: dict[int, int] = {}
    for step, key, when in taken:
        if step == "set":
            queue.set(key, when)
            wanted.pop(key, None)
            if when is not None:
                wanted[key] = when
        else:
            due = queue.pop_due(when)
            assert sorted(due) == sorted(k for k, at in wanted.items() if at <= when)
            assert [wanted[k] for k in due] == sorted(wanted[k] for k in due)
            wanted = {k: at for k, at in wanted.items() if at > when}
            following = queue.next()
            assert following is None or following > when
        first = queue.next()
        assert (first is None) == (not wanted)
        assert first is None or first <= min(wanted.values())
        assert len(queue) == len(wanted)


@given(st.dictionaries(keys, times, min_size=1), times)
def test_waking_up_at_next_until_all_are_due_ends(deadlines, later):
    queue: TimerQueue[int] = TimerQueue()
    for key, when in deadlines.items():
        queue.set(key, when)
        queue.set(key, when + later)
    woken, popped = 0, []
    while (when := queue.next()) is not None:
        popped += queue.pop_due(when)
        woken += 1
    assert sorted(popped) == sorted(deadlines)
    assert woken <= 2 * len(deadlines)


def test_moving_a_deadline_later_touches_no_order():
    queue: TimerQueue[int] = TimerQueue()
    for key in range(3000):
        queue.set(key, key)
    later = calls_of(lambda: queue.set(1500, 9000))
    earlier = calls_of(lambda: queue.set(1501, 0))
    assert later <= 4 < earlier
