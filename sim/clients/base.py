"""A client: its connections, and what it knows of the cluster. `worker.py` says when it works.

It connects to any node that it knows when it needs to know something, and to leaders when it has
something for them. It knows the nodes that Metadata named last, and before that those of
bootstrap.servers. Which of them it asks is here the rule of Java's clients; that of librdkafka is
in `librdkafka_nodes.py`. A node that could not be reached is left alone for a while, twice as long
each time (reconnect.backoff.ms, reconnect.backoff.max.ms).
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.raft.types import Micros, NodeId
from ottla.sim.clients.link import Link, LinkOwner
from ottla.sim.clients.metadata import View
from ottla.sim.clients.worker import MS, Surroundings

MOST_OPEN = 100
"""Open requests on one connection, at most (Java:
CONSUMER_MAX_INFLIGHT_REQUESTS_PER_CONNECTION)."""
MAX_BACKOFF_TIMES = 20
"""The longest backoff as a multiple of the first one (Java: 50 ms and 1 s)."""


class Client(LinkOwner):
    """See the module's docstring. `number` is its place in the history's column `client`."""

    def __init__(self, surroundings: Surroundings, number: int):
        super().__init__(surroundings, number)
        self.backoff: Micros = surroundings.config.retry_backoff_ms * MS
        self.in_flight = MOST_OPEN
        """How many requests may be open on a connection."""
        self.nodes = surroundings.nodes
        """The nodes that Metadata named last."""
        self.links: dict[NodeId, Link] = {}
        self.link_type = Link
        self.view = View(self, surroundings.config, self.kernel)
        self._failures: dict[NodeId, int] = {}
        self._blocked_until: dict[NodeId, Micros] = {}
        self._tried: dict[NodeId, Micros] = {}
        """By node, when it last began to connect."""

    # ---- its life

    def stop(self) -> None:
        """End at once, as a process that dies: its connections close, and it gets nothing more."""
        self.running = False
        links, self.links = self.links, {}
        for link in links.values():
            link.close()

    def _work(self) -> None:
        if self.running:
            self.view.work()
            self.work()

    # ---- connections

    def link(self, node: NodeId) -> Link | None:
        """The connection to a node, if it is ready; begins to connect if that is allowed."""
        link = self.links.get(node)
        if link is None:
            until = self._blocked_until.get(node, 0)
            if self.kernel.now >= until:
                self._tried[node] = self.kernel.now
                self.links[node] = self.link_type(self, node)
            else:
                self.alarm(until)
            return None
        return link if link.ready else None

    def named(self, nodes: tuple[NodeId, ...]) -> None:
        """Metadata named these nodes: from now on any of them may be asked, and no other may
        lead."""
        self.nodes = nodes or self.surroundings.nodes
        self.view.forget_all_but(self.nodes)

    def least_loaded(self) -> Link | None:
        """A connection for any request: the one with the fewest open requests, of those with room.

        If there is none, and none is being made, it begins one, to the node to which that was tried
        the longest time ago (Java: `NetworkClient.leastLoadedNode`).
        """
        start = self.surroundings.stream.below(len(self.nodes))
        turned = self.nodes[start:] + self.nodes[:start]
        links = [self.links[each] for each in turned if each in self.links]
        free = [each for each in links if each.ready and len(each.open) < self.in_flight]
        if free:
            return min(free, key=lambda link: len(link.open))
        if all(each.ready for each in links):  # else one is being made, or soon says that it failed
            unlinked = [each for each in turned if each not in self.links]
            self.connect_one(sorted(unlinked, key=lambda node: self._tried.get(node, -1)))
        return None

    def reached(self) -> tuple[NodeId, ...]:
        """The nodes that it is connected to."""
        return tuple(each for each, link in self.links.items() if link.ready)

    def was_tried(self, node: NodeId) -> bool:
        """Whether it ever began to connect to a node."""
        return node in self._tried

    def connect_one(self, nodes: Sequence[NodeId]) -> bool:
        """Begin to connect to the first of these nodes that may be tried. False: there is none."""
        for node in nodes:
            self.link(node)
            if node in self.links:
                return True
        return False

    def connected(self, link: Link) -> None:
        """The node has answered for the first time."""
        self._failures.pop(link.node, None)
        self.wake()

    def disconnected(self, link: Link, why: str) -> None:
        """The connection is lost. Callers that wait for an answer on it are told next."""
        node = link.node
        self.closed(link, why)
        failures = self._failures.get(node, 0)
        self._failures[node] = failures + 1
        self._blocked_until[node] = self.kernel.now + self.backed_off(failures)
        self.view.refresh()

    def closed(self, link: Link, why: str) -> None:
        """The connection is closed: only a row says so."""
        self.row("close", node=link.node, code=why)
        self.links.pop(link.node, None)

    def backed_off(self, times: int) -> Micros:
        """How long to wait after `times` failed attempts."""
        return self.backoff * min(1 << min(times, 10), MAX_BACKOFF_TIMES)
