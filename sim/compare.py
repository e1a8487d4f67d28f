"""Two histories side by side: where do they part ways?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from ottla.sim.history import Event


class Parting(NamedTuple):
    """The first place at which two histories differ; None where one has ended."""

    eid: int
    left: Event | None
    right: Event | None

    def __str__(self) -> str:
        return f"event {self.eid}:\n  A {told(self.left)}\n  B {told(self.right)}"


def parting(left: Sequence[Event], right: Sequence[Event]) -> Parting | None:
    """The first event that differs; None when the histories are the same."""
    for eid, (a, b) in enumerate(zip_longest(left, right)):
        if a != b:
            return Parting(eid, a, b)
    return None


def told(event: Event | None) -> str:
    """One row in one line."""
    if event is None:
        return "nothing: it has ended"
    words = event.told()
    rest = " ".join(
        f"{name}={value}"
        for name, value in words.items()
        if name not in {"eid", "t_us", "kind", "chain"}
    )
    return f"{event.t_us / 1000:.3f} ms {event.kind} {rest}".rstrip()
