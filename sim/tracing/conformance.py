"""`Conformance`: whether each step of a run is one that the specification allows."""

from __future__ import annotations

from ottla.broker.controller.controller import CONTROLLER_GROUP
from ottla.broker.profiles.named import profile_named
from ottla.raft.types import GroupId
from ottla.sim.history.history import CONTROLLER_PARTITION
from ottla.sim.settings.settings import RunConfig
from ottla.sim.specification.in_sync import Rules
from ottla.sim.specification.specification import Refusal, Specification
from ottla.sim.specification.trace import Event
from ottla.sim.tracing.tracer import Tracer
from ottla.sim.world.world import World


class Conformance:
    """Watches a world that is not booted yet.

    The first step that is not allowed gets a *forbidden* row. The run goes on, because the
    consequences of a wrong step tell more than the step alone; what follows it is not checked.
    """

    def __init__(self, world: World) -> None:
        self.steps = 0
        """How many were checked."""
        self.told: tuple[str, ...] = ()
        """The step that is not allowed, what is wrong with it, the state before, what is allowed,
        and where it is in the history. Empty: all are allowed."""
        self._world = world
        self._specification = Specification(rules_of(world.config))
        Tracer(world, self._check)

    def _check(self, event: Event) -> None:
        if self.told:
            return
        self.steps += 1
        refusal = self._specification.judged(event)
        if refusal is not None:
            self._refuse(refusal)

    def _refuse(self, refusal: Refusal) -> None:
        world, event = self._world, refusal.event
        history, now = world.history, world.kernel.now
        row = len(history.rows)
        where = f"in the history at event {row}, at {now / 1e6:.6f} s"
        self.told = (*refusal.lines(self._name_of(event.group)), where)
        history.add(
            "forbidden",
            node=event.node,
            inc=world.lives[event.node].inc,
            partition=world.observer.partitions.get(event.group),
            code=f"{refusal.transition.event}: {refusal.why}",
        )

    def _name_of(self, group: GroupId) -> str:
        """What people call a group."""
        if group == CONTROLLER_GROUP:
            return f"the controller's group (partition {CONTROLLER_PARTITION})"
        partition = self._world.observer.partitions.get(group)
        return f"group {group} of another topic" if partition is None else f"partition {partition}"


def rules_of(config: RunConfig) -> Rules:
    """What the specification needs to know of a run's settings."""
    return Rules(
        config.replica_lag_ms * 1_000,
        config.waits_for_all_in_sync,
        profile_named(config.profile).rulebook.gap_after_barrier,
    )
