"""The network between nodes: datagrams for what may be lost, streams for what may not.

Raft's messages and heartbeats tolerate all that a network can do: each travels by itself, and may
be lost, duplicated (sim-N3) or overtaken (sim-N4). Controller commands and their answers are calls:
they keep their order, arrive once, and only if both ends are still in the life in which they were
sent.

A *link* is one direction between two nodes. A link that is cut loses what is sent and what is under
way (sim-N5). A link that is clogged (sim-N6) keeps it, in order, until it is released.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Protocol, TypeAlias

from ottla.broker.controller.client import ControlRequest, ControlResponse
from ottla.raft.types import Micros, NodeId
from ottla.sim.chance.choices import Choices
from ottla.sim.chance.delays import SHAPES, spans
from ottla.sim.settings.link_times import round_trips
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.kernel import Kernel

Receive: TypeAlias = Callable[[NodeId, Any], None]
LinkName: TypeAlias = tuple[NodeId, NodeId]

LATE_TIMES = 30
"""How much longer a late message takes (sim-N1: heavy tail)."""
TIMES = (1_000, 100, 500, 2_000)
"""The mean of a link's extra delay, in thousandths of the usual mean, if links have delays of their
own."""
CALLS = (ControlRequest, ControlResponse)
"""Messages that go over a connection: in order, each once or never."""
_AS_EVER, _LOST, _LATE, _TWICE = range(4)
"""The fates of a datagram."""


class Link:
    """One direction between two nodes."""

    __slots__ = ("cut", "held", "least", "loss_ppm", "ordered_until", "plain", "spans", "stream")

    def __init__(self, choices: Choices, name: LinkName, config: RunConfig, round_trip: Micros):
        self.stream = choices.stream(f"link {name[0]}>{name[1]}")
        self.least = round_trip // 2
        self.spans = spans(self.least, config.jitter_us)
        """How long a message takes, to draw from."""
        self.plain = self.spans
        """`spans` after the link is mended."""
        self.loss_ppm = config.loss_ppm
        self.cut = False
        self.held: list[Any] | None = None
        """While clogged: what waits, and the lives of its sender and its receiver."""
        self.ordered_until: Micros = 0
        """When the last call arrives: no later call overtakes it."""


class NetworkWatcher(Protocol):
    """Who hears of every message. It must make no choice and add no event."""

    def sent(self, sender: NodeId, to: NodeId, message: Any, *, lost: bool) -> None:
        """A message leaves a node, once; `lost`: it never arrives."""

    def received(self, to: NodeId, message: Any) -> None:
        """It arrives; a second time if the network duplicates it. A node that is frozen takes it in
        when it goes on."""


class SimNetwork:
    """See the module's docstring. `allowed` may veto a message: scripts use it to drop messages by
    kind."""

    def __init__(self, kernel: Kernel, choices: Choices, config: RunConfig):
        self._kernel = kernel
        self._config = config
        self._receivers: dict[NodeId, Receive] = {}
        nodes, spans = range(1, config.nodes + 1), round_trips(config.links, config.nodes)
        self.links: dict[LinkName, Link] = {
            name: Link(choices, name, config, spans.get(name, config.rtt_us))
            for name in ((a, b) for a in nodes for b in nodes if a != b)
        }
        self.quiet = False
        """Nothing is lost, duplicated or late any more: the run settles."""
        self.filters: list[Callable[[NodeId, NodeId, Any], bool]] = []
        """Each may refuse a message (sender, receiver, message); then it is dropped."""
        self.watchers: list[NetworkWatcher] = []
        self.delivered = 0
        self.dropped = 0

    def draw_delays(self, choices: Choices) -> None:
        """Draw the delays of each direction, if links have delays of their own, so that the two
        directions differ (stream `delays A>B`). Called once, at the beginning of a run."""
        jitter_us = self._config.jitter_us
        if self._config.delays == "own":
            for name, link in self.links.items():
                stream = choices.stream(f"delays {name[0]}>{name[1]}")
                shape, times = stream.pick(tuple(SHAPES)), stream.pick(TIMES)
                link.spans = link.plain = spans(link.least, jitter_us * times // 1_000, shape)

    # ---- for nodes

    def attach(self, node: NodeId, receive: Receive) -> None:
        """Messages to `node` go to `receive(sender, message)` from now on."""

        def received(sender: NodeId, message: Any) -> None:
            for watcher in self.watchers:
                watcher.received(node, message)
            receive(sender, message)

        self._receivers[node] = received

    def detach(self, node: NodeId) -> None:
        """Nothing reaches `node` any more."""
        self._receivers.pop(node, None)

    def send(self, sender: NodeId, to: NodeId, message: Any) -> None:
        """Send a message. It arrives later, once or twice, or never."""
        before = self.dropped
        self._send(sender, to, message)
        for watcher in self.watchers:
            watcher.sent(sender, to, message, lost=self.dropped > before)

    def _send(self, sender: NodeId, to: NodeId, message: Any) -> None:
        if sender == to:
            self._kernel.after(0, self._arrive_here, to, self._receivers.get(to), message)
            return
        link = self.links[sender, to]
        receive = self._receivers.get(to)
        vetoed = self.filters and not self._passes(sender, to, message)
        if link.cut or receive is None or vetoed:
            self.dropped += 1
        elif link.held is not None:
            ends = self._receivers.get(sender), receive
            link.held.append((sender, to, ends, message))
        elif message.__class__ in CALLS:
            self._call(link, sender, to, receive, message)
        else:
            self._datagram(link, sender, to, message)

    def _passes(self, sender: NodeId, to: NodeId, message: Any) -> bool:
        return all(each(sender, to, message) for each in self.filters)

    def _datagram(self, link: Link, sender: NodeId, to: NodeId, message: Any) -> None:
        stream = link.stream
        if self.quiet:
            fate = _AS_EVER
        else:
            config = self._config
            fate = stream.fate((link.loss_ppm, config.late_ppm, config.twice_ppm))
            if fate == _LOST:
                self.dropped += 1
                return
        span = stream.pick(link.spans)
        if fate == _LATE:
            span *= LATE_TIMES
        self._kernel.after(span, self._arrive, link, sender, to, message)
        if fate == _TWICE:
            again = stream.pick(link.spans)
            self._kernel.after(again, self._arrive, link, sender, to, message)

    def _call(self, link: Link, sender: NodeId, to: NodeId, receive: Receive, message: Any) -> None:
        at = max(link.ordered_until, self._kernel.now + link.stream.pick(link.spans))
        link.ordered_until = at
        origin = self._receivers.get(sender)
        self._kernel.at(at, self._arrive_call, link, sender, to, (origin, receive), message)

    # ---- arriving

    def _arrive(self, link: Link, sender: NodeId, to: NodeId, message: Any) -> None:
        receive = self._receivers.get(to)
        if link.cut or receive is None:
            self.dropped += 1
            return
        self.delivered += 1
        receive(sender, message)

    def _arrive_call(
        self,
        link: Link,
        sender: NodeId,
        to: NodeId,
        ends: tuple[Receive | None, Receive],
        message: Any,
    ) -> None:
        origin, receive = ends
        if (
            link.cut
            or self._receivers.get(to) is not receive
            or self._receivers.get(sender) is not origin
        ):
            self.dropped += 1
            return
        self.delivered += 1
        receive(sender, message)

    def _arrive_here(self, to: NodeId, receive: Receive | None, message: Any) -> None:
        if receive is not None and self._receivers.get(to) is receive:
            receive(to, message)

    # ---- for the nemesis

    def cut(self, links: Iterable[LinkName]) -> None:
        """Lose everything on these links until `mend`."""
        for name in links:
            self.links[name].cut = True

    def mend(self, nodes: Collection[NodeId]) -> None:
        """No link between these nodes is cut or clogged any more."""
        for name in self.links:
            if name[0] in nodes and name[1] in nodes:
                link = self.links[name]
                link.cut, link.spans = False, link.plain
                self.release(name)

    def clog(self, name: LinkName) -> None:
        """Keep everything on this link until `release`."""
        link = self.links[name]
        if link.held is None:
            link.held = []

    def release(self, name: LinkName) -> None:
        """Let what was kept go on, in order, before anything newer. Datagrams may still overtake
        each other on their way, as all may."""
        link = self.links[name]
        held, link.held = link.held, None
        for sender, to, (origin, receive), message in held or ():
            gone = self._receivers.get(to) is not receive
            if message.__class__ in CALLS:
                gone = gone or self._receivers.get(sender) is not origin
            if gone:
                self.dropped += 1
            else:
                self._send(sender, to, message)

    def repeat(self, sender: NodeId, to: NodeId, message: Any) -> None:
        """Have a datagram that was sent before come once more, unless its link is cut by then."""
        link = self.links[sender, to]
        self._kernel.after(link.stream.pick(link.spans), self._arrive, link, sender, to, message)

    def isolate(self, node: NodeId) -> None:
        """Cut a node off from all others, both ways."""
        self.cut(name for name in self.links if node in name)
