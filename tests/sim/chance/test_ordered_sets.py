"""Sets in the order of insertion: equal to the built-in ones in everything but that."""

import builtins
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.sim.chance.ordered_sets import OrderedFrozenSet, OrderedSet

ITEMS = st.lists(st.one_of(st.integers(0, 9), st.text("abc", max_size=2), st.none()), max_size=12)
CHANGES = (
    "update",
    "difference_update",
    "intersection_update",
    "symmetric_difference_update",
    "__ior__",
    "__isub__",
    "__iand__",
    "__ixor__",
)
MAKES = ("union", "difference", "intersection", "symmetric_difference")
OPERATORS = (operator.or_, operator.sub, operator.and_, operator.xor)


def _in_order(items):
    return list(dict.fromkeys(items))


@pytest.mark.slow
@given(ITEMS)
def test_items_come_in_the_order_of_insertion(items):
    for kind in (OrderedSet, OrderedFrozenSet):
        made = kind(items)
        assert list(made) == list(made.copy()) == _in_order(items)
        assert made == set(items)
        assert len(made) == len(set(items))


@pytest.mark.slow
@given(ITEMS, ITEMS)
@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_those_of_a_set(name, items, others):
    ours, plain = OrderedSet(items), set(items)
    other = set(others) if name.startswith("__") else others
    getattr(ours, name)(other)
    getattr(plain, name)(other)
    assert ours == plain
    assert sorted(map(str, ours)) == sorted(map(str, plain))
    kept = [item for item in _in_order(items) if item in plain]
    assert list(ours)[: len(kept)] == kept


@pytest.mark.slow
@given(ITEMS, ITEMS)
@pytest.mark.parametrize("kind", [OrderedSet, OrderedFrozenSet])
def test_new_sets_are_those_of_a_set_and_ordered_too(kind, items, others):
    ours, plain = kind(items), set(items)
    for name in MAKES:
        made = getattr(ours, name)(others)
        assert type(made) is kind
        assert set(made) == getattr(plain, name)(others)
    for apply in OPERATORS:
        made = apply(ours, set(others))
        assert type(made) is kind
        assert set(made) == apply(plain, set(others))
    kept = [item for item in _in_order(items) if item not in others]
    assert list(ours.difference(others)) == kept


@pytest.mark.slow
@given(ITEMS)
def test_single_items_are_added_and_taken_as_in_a_set(items):
    ours = OrderedSet()
    for item in items:
        ours.add(item)
    order = _in_order(items)
    while order:
        assert ours.pop() == order.pop(0)
        if order:
            ours.discard(order.pop())
    assert not ours
    with pytest.raises(KeyError):
        ours.pop()
    with pytest.raises(KeyError):
        ours.remove("nobody")
    ours.discard("nobody")


def test_the_built_in_types_and_these_pass_for_each_other():
    assert isinstance(OrderedSet(), builtins.set)
    assert isinstance(builtins.set(), OrderedSet)
    assert isinstance(builtins.frozenset(), OrderedFrozenSet)
    assert not isinstance([], OrderedSet)
    assert isinstance(builtins.set(), tuple | OrderedSet)
    assert hash(OrderedFrozenSet("ab")) == hash(frozenset("ab"))
