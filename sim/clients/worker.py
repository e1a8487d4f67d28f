"""A client without its connections: where it is, and when it works.

It is sans-IO: it runs on the simulator's kernel, has only the clock and the choices that it is
handed, and does everything in `work`, which subclasses define. Anything that may change what there
is to do calls `wake` (work soon, at the present time) or `alarm` (work at a time). Repeated calls
of either cost one event.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from ottla.raft.types import Micros, NodeId
from ottla.sim.chance.choices import Stream
from ottla.sim.history.history import History
from ottla.sim.mutants.mutant import NO_MUTANTS, Mutants
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.kernel import Kernel
from ottla.sim.world.tcp import ClientNetwork
from ottla.sim.world.world import World

MS: Micros = 1_000
NEVER: Micros = 1 << 62


class Surroundings(NamedTuple):
    """All parts of the world that a client uses."""

    kernel: Kernel
    history: History
    network: ClientNetwork
    config: RunConfig
    nodes: tuple[NodeId, ...]
    """The nodes that it may ask first (bootstrap.servers)."""
    stream: Stream
    """Its choices."""
    mutants: Mutants = NO_MUTANTS


def surroundings_of(world: World, number: int) -> Surroundings:
    """The surroundings of the client of that number."""
    stream = world.choices.stream(f"client {number}")
    return Surroundings(
        world.kernel, world.history, world.clients, world.config, world.nodes, stream, world.mutants
    )


class Worker(ABC):
    """See the module's docstring. `number` is its place in the history's column `client`."""

    def __init__(self, surroundings: Surroundings, number: int):
        self.surroundings = surroundings
        self.number = number
        self.kernel = surroundings.kernel
        self.note = surroundings.history.add
        """What `row` calls; used directly for rows of every record, which pass `client`
        themselves."""
        self.request_timeout: Micros = surroundings.config.request_timeout_ms * MS
        self.running = False
        self._numbers = 0
        self._woken = False
        self._alarm_at: Micros = NEVER

    def start(self) -> None:
        """Begin to work."""
        self.running = True
        self.wake()

    @abstractmethod
    def work(self) -> None:
        """Do what there is to do now."""

    def wake(self) -> None:
        """Work soon."""
        if not self._woken:
            self._woken = True
            self.kernel.at(self.kernel.now, self._woke)

    def alarm(self, at: Micros) -> None:
        """Work at `at`, which is in the future, or earlier."""
        if at < self._alarm_at:
            self._alarm_at = at
            self.kernel.at(at, self._ring, at)

    def _ring(self, at: Micros) -> None:
        if at == self._alarm_at:
            self._alarm_at = NEVER
            self._work()

    def _woke(self) -> None:
        self._woken = False
        self._work()

    def _work(self) -> None:
        if self.running:
            self.work()

    def next_number(self) -> int:
        """A correlation id."""
        self._numbers += 1
        return self._numbers

    def row(self, kind: str, **columns: Any) -> None:
        """Add a row about this client to the history."""
        self.surroundings.history.add(kind, client=self.number, **columns)
