"""Connections of clients, modelled as TCP: all data arrives once and in order, or the connection
ends.

A `Connection` joins a client to one life of a node. It never loses, duplicates or reorders anything
(sim-N3). A bad path takes time. A cut path keeps everything back until it is mended or one side
gives up; it keeps back the news that the other end is gone, too.

A connection ends by a reset (from either side, or from the network, sim-N7), before or after a
request was read or an answer written. If a machine loses its power, no reset is sent. Then the
client waits until its own timeout (half-open), or until the machine is up again: that does not know
the connection, and answers with a reset to the next thing that arrives on it.

Flow control is in the listener: a node that does not read keeps requests waiting.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ottla.raft.types import Micros, NodeId
from ottla.sim.chance.choices import Choices
from ottla.sim.chance.delays import exponential
from ottla.sim.settings.link_times import CLIENTS, round_trips
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.frames import Frame, size_of
from ottla.sim.world.kernel import Kernel


class Served(Protocol):
    """The node's end of a connection."""

    def arrived(self, frame: Frame) -> None:
        """A request arrives."""

    def lost(self) -> None:
        """The connection is gone."""


class Path:
    """The path between one client and one node, both directions."""

    __slots__ = ("cut", "least", "node", "stream")

    def __init__(self, choices: Choices, client: int, node: NodeId, round_trip: Micros):
        self.stream = choices.stream(f"path {client}-{node}")
        self.node = node
        self.least: Micros = round_trip // 2
        self.cut = False
        """Whether nothing gets through; what is under way waits (sim-N5: between clients and a
        node)."""


class Connection:
    """The client's end. `on_answer(answer)` is called in order; `on_closed(why)` once, unless the
    client closes it itself."""

    __slots__ = (
        "_answers_until",
        "_breaking",
        "_held_until",
        "_line_free_at",
        "_requests_until",
        "_to_node",
        "_waiting",
        "client",
        "network",
        "node",
        "on_answer",
        "on_closed",
        "open",
        "path",
        "served",
    )

    def __init__(
        self,
        network: ClientNetwork,
        client: int,
        node: NodeId,
        on_answer: Callable[[Frame], None],
        on_closed: Callable[[str], None],
    ):
        self.network = network
        self.client = client
        self.node = node
        self.path = network.path(client, node)
        self.on_answer = on_answer
        self.on_closed = on_closed
        self.open = True
        self.served: Served | None = None
        """The other end; None: no life of the node knows the connection."""
        self._requests_until: Micros = 0
        self._answers_until: Micros = 0
        self._to_node: deque[tuple[Callable[..., None], Any]] = deque()
        """What is under way to the node, oldest first; each has one event."""
        self._held_until: Micros = 0
        """Nothing arrives at the node before this time."""
        self._waiting: list[tuple[Callable[..., None], Any]] = []
        """What a cut path keeps back."""
        self._breaking = False
        """Whether all that the client writes from now on is lost: a stream has no holes."""
        self._line_free_at: Micros = 0
        """When the last byte of the client's last request has left."""

    # ---- the client

    def dial(self, reach: Callable[[Connection], None]) -> None:
        """Call `reach` when the connection arrives at the node; requests arrive after that."""
        self._to_arrive(0, reach, self)

    def send(self, request: Frame) -> None:
        """Send a request."""
        if not self.open or self._breaking:
            return
        if self._breaks():
            # At the reset the request may have been read, or not.
            self._breaking = True
            if self.path.stream.below(2):
                self._to_arrive(self._requests_until, self._reach, request)
            self.reset_later("reset")
            return
        until = max(self._requests_until, self._written(request) + self.path.least)
        self._to_arrive(until, self._reach, request)

    def hold_up(self, span: Micros) -> None:
        """What the client has sent, and what it sends from now on, arrives after `span` at the
        earliest, in order."""
        self._held_until = max(self._held_until, self.network.kernel.now + span)

    def close(self) -> None:
        """The client closes: it gets nothing more. What is under way may still arrive."""
        if self.open:
            self.open = False
            self._to_arrive(self._requests_until, self._hang_up, None)

    # ---- the node

    def answer(self, answer: Frame) -> None:
        """The node writes an answer."""
        if not self.open:
            return
        if self._breaks():
            self.reset("reset")  # written, and never delivered (sim-N7: response lost)
            return
        until = self._answers_until
        self._answers_until = self._later(until, self._arrive, self._deliver, answer)

    def finish(self, why: str) -> None:
        """The node closes the connection, after what it wrote has been read."""
        until = self._answers_until
        self._answers_until = self._later(until, self._arrive, self.reset, why)

    # ---- the network

    def _written(self, request: Frame) -> Micros:
        """When the last byte of a request leaves: the line carries one request after the other."""
        network = self.network
        capacity = network.config.client_bytes_per_ms
        if not capacity:
            return 0
        begin = max(self._line_free_at, network.kernel.now)
        self._line_free_at = begin + size_of(request) * 1000 // capacity
        return self._line_free_at

    def reset(self, why: str) -> None:
        """The connection ends for both sides, and what is under way is lost. The client learns of
        it when its path lets it."""
        served, self.served = self.served, None
        if served is not None:
            served.lost()
        self._waiting.clear()
        if self.open:
            self._arrive(self._ended, why)

    def reset_later(self, why: str) -> None:
        """A reset is on its way: it takes time, and waits if the path is cut."""
        self._later(0, self._arrive, self.reset, why)

    @property
    def held_back(self) -> bool:
        """Whether anything waits for its path to be mended."""
        return bool(self._waiting)

    def path_mended(self) -> None:
        """What waited goes on."""
        waiting, self._waiting = self._waiting, []
        for call, argument in waiting:
            call(argument)

    def _breaks(self) -> bool:
        network = self.network
        return not network.quiet and self.path.stream.chance(network.config.reset_ppm)

    def _later(self, until: Micros, call: Callable[..., None], *arguments: Any) -> Micros:
        at = max(until, self.network.kernel.now + self.network.span(self.path))
        self.network.kernel.at(at, call, *arguments)
        return at

    def _to_arrive(self, until: Micros, call: Callable[[Any], None], argument: Any) -> None:
        """Let it arrive at the node, after everything that was sent before."""
        self._to_node.append((call, argument))
        self._requests_until = self._later(until, self._next)

    def _next(self) -> None:
        """The oldest item under way arrives at the node. If items are held up, the event is
        scheduled again; then whichever event comes first takes the oldest item."""
        if self.network.kernel.now < self._held_until:
            self.network.kernel.at(self._held_until, self._next)
        else:
            self._arrive(*self._to_node.popleft())

    def _arrive(self, call: Callable[[Any], None], argument: Any) -> None:
        if self.path.cut or self._waiting:
            self._waiting.append((call, argument))
            self.network.remember(self)
        else:
            call(argument)

    def _reach(self, request: Frame) -> None:
        """A request arrives at the node."""
        if self.served is not None:
            self.served.arrived(request)
        elif self.network.up(self.node):
            self.reset_later("reset")

    def _hang_up(self, _: None) -> None:
        """The node learns that the client is gone."""
        served, self.served = self.served, None
        if served is not None:
            served.lost()

    def _ended(self, why: str) -> None:
        """The client learns that the connection is gone."""
        if self.open:
            self.open = False
            self.on_closed(why)

    def _deliver(self, answer: Frame) -> None:
        if self.open:
            self.on_answer(answer)


class ClientNetwork:
    """All connections of all clients. `serve(connection)` gives a connection to the node's present
    life; None: nobody listens. `up(node)` says whether anybody would."""

    def __init__(
        self,
        kernel: Kernel,
        choices: Choices,
        config: RunConfig,
        serve: Callable[[Connection], Served | None],
        up: Callable[[NodeId], bool],
    ):
        self.kernel = kernel
        self.config = config
        self.up = up
        self.quiet = False
        """Whether connections no longer break by themselves."""
        self.make: Callable[..., Connection] = Connection
        """Makes connections. A caller that wants to see their data sets its own class."""
        self.connections: list[Connection] = []
        self._choices = choices
        self._serve = serve
        self._spans = round_trips(config.links, config.nodes)
        self._paths: dict[tuple[int, NodeId], Path] = {}
        self._cuts: Counter[NodeId] = Counter()
        """By node: how many faults now keep all clients from it."""

    def path(self, client: int, node: NodeId) -> Path:
        """The path between the two."""
        found = self._paths.get((client, node))
        if found is None:
            span = self._spans.get((CLIENTS, node), self.config.client_rtt_us)
            found = self._paths[client, node] = Path(self._choices, client, node, span)
            found.cut = self._cuts[node] > 0
        return found

    def cut(self, nodes: Sequence[NodeId]) -> None:
        """Cut these nodes off from all clients, later ones included (sim-N5)."""
        self._cuts.update(nodes)
        for path in self._paths.values():
            path.cut = path.cut or path.node in nodes

    def let(self, nodes: Sequence[NodeId]) -> None:
        """End one cut of these nodes. What no other cut keeps back goes on."""
        self._cuts -= Counter(nodes)  # never below zero: a cut may end after `mend`
        for path in self._paths.values():
            if path.node in nodes and not self._cuts[path.node]:
                path.cut = False
        self._go_on()

    def span(self, path: Path) -> Micros:
        """How long something takes on a path, one way."""
        return path.least + exponential(path.stream, self.config.client_jitter_us)

    def connect(
        self,
        client: int,
        node: NodeId,
        on_answer: Callable[[Frame], None],
        on_closed: Callable[[str], None],
    ) -> Connection:
        """Connect. A node that is down refuses; the client learns that one round trip later."""
        connection = self.make(self, client, node, on_answer, on_closed)
        self.connections = [each for each in self.connections if each.open or each.held_back]
        self.connections.append(connection)
        connection.dial(self._reach)
        return connection

    def remember(self, connection: Connection) -> None:
        """Something of the connection is kept back: it arrives when its path is mended, even if the
        client has closed the connection meanwhile."""
        if connection not in self.connections:
            self.connections.append(connection)

    def _reach(self, connection: Connection) -> None:
        connection.served = self._serve(connection)
        if connection.served is None:
            connection.reset_later("refused")

    def node_died(self, node: NodeId, *, resets: bool) -> None:
        """All its ends are gone without a word. `resets`: its operating system lives and tells the
        clients."""
        for connection in self.connections:
            if connection.node == node and connection.served is not None:
                connection.served = None
                if resets:
                    connection.reset_later("reset")

    def mend(self) -> None:
        """No path is cut any more."""
        self._cuts.clear()
        for path in self._paths.values():
            path.cut = False
        self._go_on()

    def _go_on(self) -> None:
        """Deliver what waited for a path that is whole again."""
        for connection in self.connections:
            if not connection.path.cut:
                connection.path_mended()
