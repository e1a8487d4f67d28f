"""Partitions that nobody leads while an audit runs: told once, and given up in the end. Pure.

**Theory.** The stream leaves such a partition where it is and names it in its offsets
(`ottla.sim.studies.topics.reading`), so it is known here from what Spark says of its progress. What
of it was not read is not judged: an audit that ends meanwhile did not see the whole topic.
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
    """Seconds after which one is not waited for any more."""
    clock: Callable[[], float] = time.monotonic
    since: dict[int, float] = field(default_factory=dict)
    """The partitions that have no leader, and since when that is known."""

    def heard(self, partitions: Collection[int]) -> list[str]:
        """Those that have no leader now; what is new about it, a line each."""
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
        """Whether it has been without leader for too long to wait for it."""
        since = self.since.get(partition)
        return since is not None and self.clock() - since > self.patience


def not_read(topic: str, partition: int, seen: Ledger | None) -> str:
    """What was seen of a partition that had no leader in the end, in one line."""
    place = f"{topic}-{partition} had no leader that answered at the end"
    if seen is None:
        return f"{place}: no record was seen"
    records = seen.sequenced + seen.plain
    return f"{place}: {records:,} records up to offset {seen.next - 1} were seen"
