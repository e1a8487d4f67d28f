"""A client: its connections, what it knows of the cluster, and when it gets to work.

Sans-IO: it lives on the simulator's kernel, has no clock and no chance but what it is handed, and
does everything in `work`, which subclasses give. Whatever may change what is to be done calls
`wake` (work soon, at the present time) or `alarm` (work at a time); both may be called as often as
one likes and cost one event.

It connects to any node it was told of when it needs to know something (bootstrap), and to leaders
when it has something for them. A node that could not be reached is left alone for a while, twice as
long each time (reconnect.backoff.ms, reconnect.backoff.max.ms).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.raft.types import NO_MUTANTS, Micros, Mutants, NodeId
from ottla.sim.choices import Stream
from ottla.sim.clients.link import NEVER, Link
from ottla.sim.clients.metadata import View
from ottla.sim.history import History
from ottla.sim.kernel import Kernel
from ottla.sim.settings import RunConfig
from ottla.sim.tcp import ClientNetwork
from ottla.sim.world import World

MS: Micros = 1_000
MAX_BACKOFF_TIMES = 20
"""How much longer than the first the longest backoff is (Java: 50 ms and 1 s)."""


class Surroundings(NamedTuple):
    """All that a client has of the world."""

    kernel: Kernel
    history: History
    network: ClientNetwork
    config: RunConfig
    nodes: tuple[NodeId, ...]
    """Where it may begin to ask (bootstrap.servers)."""
    stream: Stream
    """Its choices."""
    mutants: Mutants = NO_MUTANTS


def surroundings_of(world: World, number: int) -> Surroundings:
    """What the client of that number has of a world."""
    stream = world.choices.stream(f"client {number}")
    return Surroundings(
        world.kernel, world.history, world.clients, world.config, world.nodes, stream, world.mutants
    )


class Client:
    """See the module's text. `number` is its place in the history's column `client`."""

    def __init__(self, surroundings: Surroundings, number: int):
        self.surroundings = surroundings
        self.number = number
        self.kernel = surroundings.kernel
        self.note = surroundings.history.add
        """What `row` calls; for rows of every record, which name their `client` themselves."""
        self.request_timeout: Micros = surroundings.config.request_timeout_ms * MS
        self.backoff: Micros = surroundings.config.retry_backoff_ms * MS
        self.running = False
        self.links: dict[NodeId, Link] = {}
        self.link_type = Link
        self.view = View(self)
        self._numbers = 0
        self._woken = False
        self._alarm_at: Micros = NEVER
        self._failures: dict[NodeId, int] = {}
        self._blocked_until: dict[NodeId, Micros] = {}

    # ---- its life

    def start(self) -> None:
        """Begin to work."""
        self.running = True
        self.wake()

    def stop(self) -> None:
        """Be gone at once, as a process that dies: its connections close, nothing is heard."""
        self.running = False
        links, self.links = self.links, {}
        for link in links.values():
            link.close()

    def work(self) -> None:
        """Do what there is to do now."""
        raise NotImplementedError

    def wake(self) -> None:
        """Work soon."""
        if not self._woken:
            self._woken = True
            self.kernel.at(self.kernel.now, self._woke)

    def alarm(self, at: Micros) -> None:
        """Work at that time, which is still to come, or before."""
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
            self.view.work()
            self.work()

    # ---- connections

    def link(self, node: NodeId) -> Link | None:
        """The connection to a node, once it is good for anything; begins to connect if it may."""
        link = self.links.get(node)
        if link is None:
            until = self._blocked_until.get(node, 0)
            if self.kernel.now >= until:
                self.links[node] = self.link_type(self, node)
            else:
                self.alarm(until)
            return None
        return link if link.ready else None

    def least_loaded(self) -> Link | None:
        """A connection to ask anything on, the one with the least open; begins one if there is
        none (Java: `NetworkClient.leastLoadedNode`)."""
        nodes = self.surroundings.nodes
        start = self.surroundings.stream.below(len(nodes))
        turned = nodes[start:] + nodes[:start]
        ready = [each for each in map(self.links.get, turned) if each is not None and each.ready]
        if ready:
            return min(ready, key=lambda link: len(link.open))
        if not self.links:  # else one is on its way, or says soon that it is not
            for node in turned:
                self.link(node)
                if self.links:
                    break
        return None

    def connected(self, link: Link) -> None:
        """The node has answered for the first time."""
        self._failures.pop(link.node, None)
        self.wake()

    def disconnected(self, link: Link, why: str) -> None:
        """The connection is gone. Whoever waited for an answer on it hears it next."""
        node = link.node
        self.row("close", node=node, code=why)
        self.links.pop(node, None)
        failures = self._failures.get(node, 0)
        self._failures[node] = failures + 1
        self._blocked_until[node] = self.kernel.now + self.backed_off(failures)
        self.view.refresh()

    def backed_off(self, times: int) -> Micros:
        """How long to wait when that many attempts have failed before."""
        return self.backoff * min(1 << min(times, 10), MAX_BACKOFF_TIMES)

    # ---- what it says

    def next_number(self) -> int:
        """A correlation id."""
        self._numbers += 1
        return self._numbers

    def row(self, kind: str, **columns: Any) -> None:
        """Note in the history what happened to this client."""
        self.surroundings.history.add(kind, client=self.number, **columns)
