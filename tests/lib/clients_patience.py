"""Waiting that a busy machine does not break: patience is counted in looks, not in seconds.

Between two looks lies a short sleep, and every look runs what it looks at. Where many share the
processors all of it takes longer, for whoever waits as for what is waited for. On an idle machine
`LOOKS` are 25 s: less than the 30 s and more after which the clients send again what was never
answered, so that a request which a broker swallowed is found and not healed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

LOOK_SECONDS = 0.005
LOOKS = 5000


def until(what: str, condition: Callable[[], bool], looks: int = LOOKS) -> None:
    """Wait for a condition. Asserts that it came true."""
    for _ in range(looks):
        if condition():
            return
        time.sleep(LOOK_SECONDS)
    raise AssertionError(f"no {what} in {looks} looks")


def move(what: str, counts: Callable[[], Mapping[str, int]], looks: int = LOOKS) -> None:
    """Wait until nothing is left to count. Asserts that no count stands still meanwhile."""
    seen: dict[str, int] = {}
    still: dict[str, int] = {}
    while left := counts():
        for key, count in left.items():
            still[key] = still.get(key, 0) + 1 if seen.get(key) == count else 0
            assert still[key] < looks, f"{what}: {key} stands still at {count} for {looks} looks"
            seen[key] = count
        time.sleep(LOOK_SECONDS)
