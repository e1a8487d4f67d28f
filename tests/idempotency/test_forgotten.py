"""Where producers were whom the log has forgotten: the highest ids, a bound for others."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.idempotency.forgotten import MOST, NO_FLOOR, Forgotten, goes_on
from ottla.idempotency.sequence import MAX_SEQUENCE
from ottla.log.types import BatchIdentity

LEFT = st.tuples(st.integers(0, 3 * MOST), st.integers(-1, 2), st.integers(-1, 9))


def test_nobody_is_forgotten_at_first():
    nobody = Forgotten()
    assert not nobody
    assert not nobody.may_resume(BatchIdentity(0, 0, 1, 1))
    assert nobody.plain() is False


@given(left=st.lists(LEFT, max_size=30), more=st.integers(0, 2 * MOST))
def test_it_is_the_highest_ids_and_a_floor(left, more):
    every = [*left, *((each, 0, 4) for each in range(100, 100 + more))]
    forgotten = Forgotten(left=every)
    last = {each[0]: each[1:] for each in every}
    ordered = sorted(last)
    floor = ordered[-MOST - 1] if len(ordered) > MOST else NO_FLOOR
    kept = [[each, *last[each]] for each in ordered[-MOST:]]
    assert forgotten.plain() == ([floor, kept] if ordered else False)
    for producer_id in range(0, 3 * MOST + 2, 7):
        may = forgotten.may_resume(BatchIdentity(producer_id, 0, 5, 5))
        left_at = last.get(producer_id)
        assert may == (producer_id <= floor or (left_at is not None and goes_on(0, 5, *left_at)))


def test_a_floor_that_is_known_is_kept():
    forgotten = Forgotten(7, [(3, 0, 4), (9, 0, 4)])
    assert forgotten.plain() == [7, [[9, 0, 4]]]
    forgotten.add(7, 0, 4)
    assert forgotten.plain() == [7, [[9, 0, 4]]]


def test_sequences_wrap_and_nothing_has_an_order_without_an_epoch():
    assert goes_on(3, 0, 3, MAX_SEQUENCE)
    assert goes_on(-1, 77, -1, 4)
    assert not goes_on(0, 77, -1, 4)
