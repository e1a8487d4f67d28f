"""Waits that also work on a busy machine: they count checks, not seconds.

Between two checks is a short sleep, and every check runs the condition. On a busy machine, both the
wait and the awaited work take longer. On an idle machine `LOOKS` checks take 25 s. Clients repeat a
request without an answer after 30 s or more. So a request that a broker dropped is noticed, and not
repaired by a retry.
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
