"""Waiting for something outside of this process, which does not say when it is there."""

from __future__ import annotations

import time
from collections.abc import Callable

_AGAIN_S = 0.1


def await_that(ready: Callable[[], object], within_s: float, otherwise: str) -> None:
    """Wait until `ready` gives something; fail with `otherwise` when it takes longer."""
    until = time.monotonic() + within_s
    while not ready():
        assert time.monotonic() < until, otherwise
        time.sleep(_AGAIN_S)  # files and processes of others tell nobody
