"""A run, recorded again from its tape, and proven to be the same run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ottla.raft.types import NodeId
from ottla.sim.chance.choices import Choices, Replayed
from ottla.sim.history.history import Event
from ottla.sim.invariants.findings import Anomaly
from ottla.sim.recording.recorder import Recorder, Step, went_on
from ottla.sim.run import Outcome, run_choices
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.world import World

Again: TypeAlias = Callable[[Choices, Sequence[Callable[[World], None]]], Outcome]
"""Repeats a run with these choices, watched."""


@dataclass(slots=True)
class Recording:
    """What a page about a run is made from."""

    title: str
    """What was run: a seed, a file, a scenario."""
    command: str
    """The command that repeats it."""
    config: RunConfig
    digest: str
    """Empty for a scenario, which has no digest."""
    anomalies: list[Anomaly]
    weakened: list[str]
    """What faults that no Raft survives have done, in words."""
    reason: str
    rows: list[Event]
    steps: list[Step]
    placement: dict[int, tuple[NodeId, ...]]
    """Replicas by partition."""
    names: dict[int, str]
    """Names of clients that have one, by number."""
    _by_partition: dict[int | None, list[Step]] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )
    _crashes: list[Step] = field(init=False, default_factory=list, repr=False, compare=False)

    def near(self, partition: int) -> list[Step]:
        """The steps of a partition and those of no partition, in order: of many partitions only a
        few."""
        self._sort_out()
        of = self._by_partition.get
        return sorted([*of(partition, ()), *of(None, ())], key=lambda step: step.number)

    def crashes(self) -> list[Step]:
        """The steps in which a node died."""
        self._sort_out()
        return self._crashes

    def _sort_out(self) -> None:
        """One pass for all partitions, when the first one is asked for."""
        if not self._by_partition:
            for step in self.steps:
                self._by_partition.setdefault(step.partition, []).append(step)
            self._crashes = [step for step in self.steps if step.what == "crash"]


class NotTheSameError(Exception):
    """The recorded run differs from the run that it should explain: replay is broken."""


def record(outcome: Outcome, title: str, command: str, again: Again | None = None) -> Recording:
    """Repeat the run of `outcome`, watched; `again` says how, if not as a sweep does. Raises
    `NotTheSameError` if it differs."""
    first = next(iter(outcome.anomalies), None)
    recorder = Recorder(first if went_on(outcome.rows, first) else None)
    choices = Replayed(outcome.tape)
    if again is None:
        done = run_choices(choices, outcome.config, swarm=False, watching=[recorder.watch])
    else:
        done = again(choices, [recorder.watch])
    if done.digest != outcome.digest:
        raise NotTheSameError(f"digest {done.digest} when recorded, {outcome.digest} before")
    recorder.finish(done.rows, first)
    return Recording(
        title,
        command,
        done.config,
        done.digest,
        done.anomalies,
        done.weakened,
        done.reason,
        done.rows,
        recorder.steps,
        recorder.placement,
        recorder.names,
    )
