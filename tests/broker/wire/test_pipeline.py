"""The pipeline: any order of completion, one order of answers, and limits that hold.

Properties over random sizes, limits and orders of completion; then one test for each rule that the
module's text states.
"""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.wire.pipeline import Limits, Pipeline, Slot

SIZES = st.lists(st.integers(1, 50), min_size=1, max_size=30)


def drain(pipeline):
    left = list(pipeline.ready)
    pipeline.ready.clear()
    return left


def finish(pipeline, slot, *args, **kwargs):
    assert slot.finish(*args, **kwargs)
    pipeline.done(slot)


@given(SIZES, st.integers(1, 8), st.integers(1, 120), st.randoms(use_true_random=False))
def test_any_order_of_completion_leaves_in_order_of_arrival(sizes, requests, size_limit, chance):
    pipeline = Pipeline(Limits(requests, size_limit))
    arriving = deque(Slot(size) for size in sizes)
    expected = list(arriving)
    under_way: list[Slot] = []
    left: list[Slot] = []
    while arriving or under_way:
        while arriving and pipeline.may_begin:
            under_way.append(arriving[0])
            pipeline.begin(arriving.popleft())
            before = len(pipeline) - 1
            assert len(pipeline) <= requests
            assert before == 0 or pipeline.bytes - under_way[-1].size < size_limit
        assert under_way, "at a limit with nothing in flight"
        slot = under_way.pop(chance.randrange(len(under_way)))
        finish(pipeline, slot, (b"answer",))
        left += drain(pipeline)
    assert left == expected
    assert (len(pipeline), pipeline.bytes, pipeline.may_begin) == (0, 0, True)


@pytest.mark.slow
@given(SIZES, st.integers(0, 29), st.randoms(use_true_random=False))
def test_a_close_takes_effect_when_everything_before_it_has_left(sizes, where, chance):
    pipeline = Pipeline(Limits(100, 10_000))
    slots = [Slot(size) for size in sizes]
    where %= len(slots)
    for slot in slots:
        pipeline.begin(slot)
    order = list(slots)
    chance.shuffle(order)
    left = []
    for slot in order:
        if pipeline.closing:
            break
        finish(pipeline, slot, closing="bad" if slot is slots[where] else None)
        left += drain(pipeline)
        assert pipeline.may_begin is (slots[where].closing is None)
    assert pipeline.closing == "bad"
    assert left == slots[:where]
    assert not pipeline.may_begin


def test_nothing_begins_once_a_close_is_decided_even_behind_others():
    pipeline = Pipeline(Limits(10, 1000))
    first, bad = Slot(1), Slot(1)
    pipeline.begin(first)
    pipeline.begin(bad)
    finish(pipeline, bad, closing="why")
    assert (pipeline.closing, pipeline.may_begin, drain(pipeline)) == (None, False, [])
    finish(pipeline, first, (b"x",))
    assert (pipeline.closing, drain(pipeline)) == ("why", [first])


def test_one_at_a_time_is_a_limit_of_one():
    pipeline = Pipeline(Limits(1, 1000))
    slot = Slot(1)
    pipeline.begin(slot)
    seen = [pipeline.may_begin]
    finish(pipeline, slot, (b"x",))
    assert [*seen, pipeline.may_begin] == [False, True]


@pytest.mark.parametrize("size", [1000, 999_999])
def test_a_request_larger_than_the_limit_may_begin_when_it_is_alone(size):
    pipeline = Pipeline(Limits(10, 1000))
    may = [pipeline.may_begin]
    slot = Slot(size)
    pipeline.begin(slot)
    may.append(pipeline.may_begin)
    finish(pipeline, slot, (b"x",))
    assert [*may, pipeline.may_begin] == [True, False, True]


def test_what_an_answer_may_hold_counts_until_it_leaves():
    pipeline = Pipeline(Limits(10, 1000))
    first, second = Slot(1), Slot(1)
    pipeline.begin(first)
    pipeline.begin(second)
    may = [pipeline.may_begin]
    pipeline.charge(second, 5000)
    may.append(pipeline.may_begin)
    finish(pipeline, second, (b"x",))
    may.append(pipeline.may_begin)  # it waits behind the first
    finish(pipeline, first, (b"x",))
    assert [*may, pipeline.may_begin] == [True, False, False, True]
    assert pipeline.bytes == 0


def test_a_loss_finishes_what_was_under_way_and_later_answers_are_ignored():
    pipeline = Pipeline(Limits(10, 1000))
    slots = [Slot(1) for _ in range(4)]
    for slot in slots:
        pipeline.begin(slot)
    finish(pipeline, slots[1], (b"x",))
    assert pipeline.lost() == [slots[0], slots[2], slots[3]]
    assert all(slot.finished for slot in slots)
    assert not slots[0].finish((b"too late",))
    assert not pipeline.may_begin
    assert len(pipeline) == 0


def test_a_slot_is_settled_once():
    slot = Slot(1)
    assert not slot.finished
    assert slot.finish((b"first",))
    assert not slot.finish((b"second",), closing="no")
    assert (slot.parts, slot.closing) == ((b"first",), None)


def test_nothing_begins_while_a_request_is_held():
    pipeline = Pipeline(Limits(10, 1000))
    pipeline.begin(Slot(1))
    pipeline.hold()
    pipeline.hold()
    pipeline.release()
    assert not pipeline.may_begin
    pipeline.release()
    assert pipeline.may_begin


class ProduceSlot(Slot):
    produces = True


def test_where_a_produce_request_is_alone_nothing_begins_behind_it():
    """What is under way before it goes on, and answers keep their order."""
    pipeline = Pipeline(Limits(10, 1000, produce_alone=True))
    fetch, first, second = Slot(1), ProduceSlot(1), ProduceSlot(1)
    room = []
    for step in (
        lambda: pipeline.begin(fetch),
        lambda: pipeline.begin(first),
        lambda: finish(pipeline, first, (b"stored",)),
        lambda: pipeline.begin(second),
        lambda: finish(pipeline, fetch, (b"read",)),
        lambda: finish(pipeline, second, (b"stored",)),
    ):
        step()
        room.append(pipeline.may_begin)
    assert room == [True, False, True, False, False, True]
    assert drain(pipeline) == [fetch, first, second]
