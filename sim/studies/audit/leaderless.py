"""Partitions without a leader while an audit runs: each is reported once, and given up at the end.
Pure.

**Theory.** The stream does not advance in such a partition and names it in its offsets
(`ottla.sim.studies.topics.reading`), so Spark's progress shows it. What was not read of it is not
judged: an audit that ends meanwhile did not see the whole topic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from ottla.sim.studies.audit.sequences import Ledger


@dataclass
class Leaderless:
    """See the module's docstring."""

    topic: str
    patience: float
    """Seconds after which such a partition is no longer waited for."""
    clock: Callable[[], float] = time.monotonic
    since: dict[int, float] = field(default_factory=dict)
    """By partition without a leader, since when that is known."""

    def heard(self, partitions: Collection[int]) -> list[str]:
        """Set the partitions without a leader; returns what is new, a line each."""
        now = self.clock()
        lost = [
            f"{self.topic}-{each} has no leader that answers: it is left where it is, and the "
            "others are audited"
            for each in sorted(set(partitions) - self.since.keys())
        ]
        back = [
            f"{self.topic}-{each} has a leader that answers again"
            for each in sorted(self.since.keys() - set(partitions))
        ]
        self.since = {each: self.since.get(each, now) for each in partitions}
        return [*lost, *back]

    def given_up(self, partition: int) -> bool:
        """Whether it has been without a leader for too long to wait for it."""
        since = self.since.get(partition)
        return since is not None and self.clock() - since > self.patience


def not_read(topic: str, partition: int, seen: Ledger | None) -> str:
    """What was seen of a partition that had no leader at the end, in one line."""
    place = f"{topic}-{partition} had no leader that answered at the end"
    if seen is None:
        return f"{place}: no record was seen"
    records = seen.sequenced + seen.plain
    return f"{place}: {records:,} records up to offset {seen.next - 1} were seen"
