"""Two histories side by side: where do they differ first?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from ottla.sim.history.history import COLUMNS, Event


class Parting(NamedTuple):
    """The first place at which two histories differ; None for one that has ended."""

    eid: int
    left: Event | None
    right: Event | None

    def __str__(self) -> str:
        differing = self.differing()
        head = f"event {self.eid}" + (f" differs in {' '.join(differing)}" if differing else "")
        chain = "chain" in differing
        return f"{head}:\n  A {told(self.left, chain=chain)}\n  B {told(self.right, chain=chain)}"

    def differing(self) -> list[str]:
        """Columns in which they differ; none if one has ended."""
        if self.left is None or self.right is None:
            return []
        both = zip(COLUMNS, self.left, self.right, strict=True)
        return [name for name, left, right in both if left != right]


def parting(left: Sequence[Event], right: Sequence[Event]) -> Parting | None:
    """The first event that differs; None if the histories are equal."""
    for eid, (a, b) in enumerate(zip_longest(left, right)):
        if a != b:
            return Parting(eid, a, b)
    return None


def told(event: Event | None, *, chain: bool = False) -> str:
    """One row in one line; without its `chain`, which is long, unless that is asked for."""
    if event is None:
        return "nothing: it has ended"
    unsaid = {"eid", "t_us", "kind"} if chain else {"eid", "t_us", "kind", "chain"}
    words = event.told()
    rest = " ".join(f"{name}={value}" for name, value in words.items() if name not in unsaid)
    return f"{event.t_us / 1000:.3f} ms {event.kind} {rest}".rstrip()
