"""Sequence arithmetic: 31 bits, checked against plain modular arithmetic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.idempotency.sequence import MAX_SEQUENCE, is_successor

SPACE = 2**31
sequences = st.one_of(
    st.integers(0, MAX_SEQUENCE), st.integers(0, 20), st.integers(MAX_SEQUENCE - 20, MAX_SEQUENCE)
)


@pytest.mark.slow
@given(sequences, sequences)
def test_only_the_next_in_the_ring_succeeds(first, tail):
    assert is_successor(first, tail) == (first == (tail + 1) % SPACE)


@pytest.mark.slow
@given(sequences)
def test_successor_is_one_more_in_the_ring(tail):
    assert is_successor((tail + 1) % SPACE, tail)


@pytest.mark.parametrize(
    ("tail", "following"), [(0, 1), (MAX_SEQUENCE - 1, MAX_SEQUENCE), (MAX_SEQUENCE, 0)]
)
def test_the_wrap_lies_after_2147483647(tail, following):
    assert is_successor(following, tail)
    assert not is_successor(following + 1, tail)
