"""Waits for something outside of this process, by polling."""

from __future__ import annotations

import time
from collections.abc import Callable


def await_that(
    ready: Callable[[], object], within_s: float, otherwise: str, again_s: float = 0.1
) -> None:
    """Call `ready` every `again_s` seconds until it returns something. Fail with the text
    `otherwise` if it takes longer."""
    until = time.monotonic() + within_s
    while not ready():
        assert time.monotonic() < until, otherwise
        time.sleep(again_s)  # other processes send no notification
