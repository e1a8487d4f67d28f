"""Events of real runs, for tests of the tracer and of the specification."""

from __future__ import annotations

from ottla.sim.chance.choices import Drawn
from ottla.sim.run import run_choices
from ottla.sim.settings.settings import RunConfig
from ottla.sim.specification.in_sync import Rules
from ottla.sim.specification.trace import Event
from ottla.sim.tracing.conformance import rules_of
from ottla.sim.tracing.tracer import Tracer
from ottla.sim.world.world import World


def traced(seed: int, config: RunConfig) -> tuple[list[Event], Rules]:
    """All events of a run, and the settings that count. (A second tracer takes the place of the
    run's own, so the verdict says nothing.)"""
    events: list[Event] = []
    worlds: list[World] = []

    def watch(world: World) -> None:
        worlds.append(world)
        Tracer(world, events.append)

    run_choices(Drawn(seed), config, watching=[watch])
    return events, rules_of(worlds[0].config)
