"""A module that the table of patches does not know."""

import time


def now() -> float:
    """The wall clock."""
    return time.time()
