"""What can be said of an identity by itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.idempotency.identity import MAX_EPOCH, fences, well_formed
from ottla.idempotency.sequence import MAX_SEQUENCE

# Wider than the fields on the wire, so that both bounds are crossed.
numbers = st.one_of(
    st.integers(-3, 3), st.integers(2**15 - 3, 2**15 + 3), st.integers(-(2**63), 2**63)
)


@pytest.mark.slow
@given(numbers, numbers, numbers, numbers)
def test_well_formed_is_four_ranges(producer_id, epoch, first, last):
    expected = (
        producer_id >= 0
        and epoch in range(-1, MAX_EPOCH + 1)
        and first in range(MAX_SEQUENCE + 1)
        and last in range(MAX_SEQUENCE + 1)
    )
    assert well_formed(producer_id, epoch, first, last) == expected


@given(st.integers(0, MAX_EPOCH), st.integers(0, MAX_EPOCH))
def test_of_two_epochs_exactly_the_newer_fences_the_other(one, other):
    assert fences(one, other) + fences(other, one) + (one == other) == 1
