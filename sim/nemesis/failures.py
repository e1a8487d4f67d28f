"""What goes wrong in a whole run: one kind of failure, twice, at random times.

Each failure is a plan for a world at the beginning of its load. It needs no nemesis, whose programs
choose their targets. What is stopped or cut off comes back by itself. Choices: stream `failures`.

A load that may end before the second failure is refused: "0 lost" would be reported for a failure
that never happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from ottla.broker.errors import ConfigError
from ottla.raft.types import Micros, NodeId
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.world import World

SECOND: Micros = 1_000_000
MOMENTS: tuple[Micros, ...] = (1 * SECOND, 6 * SECOND)
"""The earliest times of the failures, in us; each happens within a second."""
MS: Micros = 1_000
DOWN: Micros = 2 * SECOND
"""How long a node is down or cut off."""
LAG: Micros = 300_000
"""How long a leader is cut off from the others, or a follower from the others, before the leader
dies."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One kind of failure."""

    name: str
    strike: Callable[[World], None]
    takes: Micros = 0
    """How long it takes until its worst point."""
    nodes: int = 1
    """The fewest nodes that it needs."""

    @property
    def ends(self) -> tuple[Micros, ...]:
        """When each failure is over at the latest, in us after the start of the load."""
        return tuple(moment + SECOND + self.takes for moment in MOMENTS)

    def check(self, config: RunConfig) -> None:
        """Raises `ConfigError` if there are too few nodes, or if the load may end before both
        failures have happened."""
        if config.nodes < self.nodes:
            raise ConfigError(
                f"failure {self.name!r} needs {self.nodes} nodes: nodes is {config.nodes}"
            )
        if config.load_ms * MS < self.ends[-1]:
            first, second = (f"{end / SECOND:g} s" for end in self.ends)
            raise ConfigError(
                f"failure {self.name!r} strikes twice, up to {first} and {second} after the start: "
                f"load_ms is {config.load_ms}; {self.ends[-1] // MS} at least"
            )

    def plan(self, world: World) -> None:
        """Schedule it. Raises `ConfigError`, as `check` does."""
        self.check(world.config)
        stream = world.choices.stream("failures")
        for moment in MOMENTS:
            world.kernel.after(moment + stream.below(SECOND), self.strike, world)


def _leader(world: World) -> NodeId:
    life = world.leader()
    return world.nodes[0] if life is None else life.node_id


def _follower(world: World) -> NodeId:
    leader = _leader(world)
    return next(each for each in world.nodes if each != leader)


def _down(world: World, nodes: Iterable[NodeId], *, power: bool) -> None:
    for node in nodes:
        world.crash(node, power=power)
        world.kernel.after(DOWN, _up, world, node)


def _up(world: World, node: NodeId) -> None:
    if node not in world.lives:
        world.start(node)


def _cut_off(world: World, node: NodeId, span: Micros, then: Callable[[], None]) -> None:
    """No other node hears it or is heard by it; clients still reach it."""
    world.fault("cut off from the other nodes", node)
    world.network.isolate(node)

    def mend() -> None:
        then()
        world.network.mend(world.nodes)

    world.kernel.after(span, mend)


def _nothing() -> None:
    """Only mend it."""


def _leader_killed(world: World) -> None:
    _down(world, [_leader(world)], power=False)


def _leader_loses_power(world: World) -> None:
    _down(world, [_leader(world)], power=True)


def _all_lose_power(world: World) -> None:
    _down(world, world.nodes, power=True)


def _leader_cut_off(world: World) -> None:
    _cut_off(world, _leader(world), DOWN, _nothing)


def _leader_cut_off_and_dies(world: World) -> None:
    leader = _leader(world)
    _cut_off(world, leader, LAG, partial(_down, world, [leader], power=True))


def _follower_lags_and_leader_dies(world: World) -> None:
    _cut_off(world, _follower(world), LAG, lambda: _down(world, [_leader(world)], power=True))


def _follower_killed(world: World) -> None:
    _down(world, [_follower(world)], power=False)


FAILURES = (
    Failure("a follower is killed", _follower_killed, nodes=2),
    Failure("the leader is killed", _leader_killed),
    Failure("the leader loses power", _leader_loses_power),
    Failure(
        "a follower lags, the leader loses power",
        _follower_lags_and_leader_dies,
        LAG,
        nodes=2,
    ),
    Failure("the leader is cut off", _leader_cut_off),
    Failure("the leader is cut off and loses power", _leader_cut_off_and_dies, takes=LAG),
    Failure("all lose power", _all_lose_power),
)
