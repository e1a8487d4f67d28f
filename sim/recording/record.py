"""A run, recorded: from its tape, and proven to be the same run."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.raft.types import NodeId
from ottla.sim.choices import Replayed
from ottla.sim.history import Event
from ottla.sim.invariants.findings import Anomaly
from ottla.sim.recording.recorder import Recorder, Step
from ottla.sim.run import Outcome, run_choices
from ottla.sim.settings import RunConfig


@dataclass(slots=True)
class Recording:
    """What a page about a run is made from."""

    title: str
    """What was run: a seed, a file, a scenario."""
    command: str
    """Does it again."""
    config: RunConfig
    digest: str
    """Empty for a scenario, which has none."""
    anomalies: list[Anomaly]
    weakened: list[str]
    """What faults that no Raft stands have done, in words."""
    reason: str
    rows: list[Event]
    steps: list[Step]
    placement: dict[int, tuple[NodeId, ...]]
    """Replicas by partition."""
    names: dict[int, str]
    """Of clients that have one."""


class NotTheSameError(Exception):
    """The recorded run is not the run it is to explain: replay is broken."""


def record(outcome: Outcome, title: str, command: str) -> Recording:
    """Do the run of `outcome` again, watched. Raises `NotTheSameError` should it differ."""
    recorder = Recorder()
    again = run_choices(
        Replayed(outcome.tape), outcome.config, swarm=False, watching=[recorder.watch]
    )
    if again.digest != outcome.digest:
        raise NotTheSameError(f"digest {again.digest} when recorded, {outcome.digest} before")
    recorder.finish(again.rows)
    return Recording(
        title,
        command,
        again.config,
        again.digest,
        again.anomalies,
        again.weakened,
        again.reason,
        again.rows,
        recorder.steps,
        recorder.placement,
        recorder.names,
    )
