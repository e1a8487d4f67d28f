"""Waiting for something outside of this process, which does not say when it is there."""

from __future__ import annotations

import time
from collections.abc import Callable


def await_that(
    ready: Callable[[], object], within_s: float, otherwise: str, again_s: float = 0.1
) -> None:
    """Wait until `ready`, asked every `again_s`, gives something; fail with `otherwise` when it
    takes longer."""
    until = time.monotonic() + within_s
    while not ready():
        assert time.monotonic() < until, otherwise
        time.sleep(again_s)  # files and processes of others tell nobody
