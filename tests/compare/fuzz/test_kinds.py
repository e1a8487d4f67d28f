"""A kind of difference is told in a few words."""

import pytest

from ottla.compare.fuzz.kinds import Kind


@pytest.mark.parametrize(
    ("value", "told"),
    [("a value", "another value"), ("a number", "another number"), ("data x", "data x")],
)
def test_two_values_that_look_alike_are_told_as_different(value, told):
    """It was `datanother x`."""
    assert Kind("fetch", "name", value, value).told() == f"fetch name: {told}"
