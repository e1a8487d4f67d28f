"""`Result`: everything that a run found, as plain values, for the console and the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.demo.audit import Verdict
from ottla.demo.losses import Loss, LossGroup
from ottla.demo.settings import DemoSettings
from ottla.demo.stage import Deed, Sample
from ottla.demo.timeline import Timeline
from ottla.raft.types import Micros
from ottla.sim.sweeps.bounds import bounded


class Figure(NamedTuple):
    """One column of the table: a number, how to show it, and where it comes from."""

    name: str
    value: float
    unit: str
    source: str

    @property
    def text(self) -> str:
        """The number with its unit."""
        return f"{self.value:,.0f}{' ' + self.unit if self.unit else ''}"


@dataclass(frozen=True, slots=True)
class Result:
    """See the module's docstring. All times are of one monotonic clock."""

    settings: DemoSettings
    figures: Sequence[Figure]
    verdicts: Sequence[Verdict]
    timelines: Sequence[Timeline]
    samples: Sequence[Sample]
    deeds: Sequence[Deed]
    losses: Sequence[Loss]
    loss_groups: Sequence[LossGroup]
    acked: int
    started: Micros
    ended: Micros
    clients: str
    """The clients and their versions."""

    @property
    def passed(self) -> bool:
        """Whether every check holds."""
        return all(each.passed for each in self.verdicts)

    @property
    def seconds(self) -> float:
        """For how long producers wrote."""
        return (self.ended - self.started) / 1e6

    @property
    def sentence(self) -> str:
        """What happened, in one or two sentences."""
        faults = len(self.deeds)
        failovers = sum(change.failover for line in self.timelines for change in line.changes)
        wrote = (
            f"Two {'idempotent' if self.settings.idempotent else 'plain'} producers with "
            f"acks={self.settings.acks} had {self.acked:,} records acknowledged in "
            f"{self.seconds:.0f} s, while {faults} faults made partitions change their leader "
            f"{failovers} times."
        )
        if self.settings.idempotent:
            if self.passed:
                return (
                    f"{wrote} Each record was looked up: in this run nothing was lost, stored "
                    f"twice or out of order. Of other runs one says little: {bounded(1)} lose, "
                    "double or reorder any."
                )
            failed = sum(not each.passed for each in self.verdicts)
            return f"{wrote} {failed} of {len(self.verdicts)} checks failed."
        if not self.losses:
            return (
                f"{wrote} Each record was looked up: in this run nothing was lost. Of other runs "
                f"one says little: {bounded(1)} lose any."
            )
        explained = sum(each.explained for each in self.losses)
        return (
            f"{wrote} {len(self.losses):,} of them are lost: no consumer will ever read them. "
            f"{explained:,} are explained by the truncation that removed them."
        )
