"""Sequence arithmetic: 31 bits, checked against plain modular arithmetic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.idempotency.sequence import MAX_SEQUENCE, is_successor, last_of, successor

SPACE = 2**31
sequences = st.one_of(
    st.integers(0, MAX_SEQUENCE), st.integers(0, 20), st.integers(MAX_SEQUENCE - 20, MAX_SEQUENCE)
)
deltas = st.one_of(st.integers(0, 40), st.integers(0, MAX_SEQUENCE))


@given(sequences)
def test_successor_is_one_more_in_the_ring(sequence):
    assert successor(sequence) == (sequence + 1) % SPACE


@given(sequences, deltas)
def test_last_of_goes_delta_steps(first, delta):
    assert last_of(first, delta) == (first + delta) % SPACE


@given(sequences, st.integers(0, 40))
def test_last_of_is_the_successor_taken_delta_times(first, delta):
    sequence = first
    for _ in range(delta):
        sequence = successor(sequence)
    assert sequence == last_of(first, delta)


@given(sequences, sequences)
def test_only_the_successor_succeeds(first, tail):
    assert is_successor(first, tail) == (first == successor(tail))


@pytest.mark.parametrize(
    ("first", "delta", "last", "following"),
    [
        (0, 0, 0, 1),
        (MAX_SEQUENCE, 0, MAX_SEQUENCE, 0),
        (MAX_SEQUENCE - 1, 1, MAX_SEQUENCE, 0),
        (MAX_SEQUENCE - 1, 3, 1, 2),
        (MAX_SEQUENCE, 1, 0, 1),
    ],
)
def test_the_wrap_lies_after_2147483647(first, delta, last, following):
    assert last_of(first, delta) == last
    assert successor(last) == following
