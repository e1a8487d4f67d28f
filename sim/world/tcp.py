"""Connections of clients, modelled as TCP: in order, each thing once, or the connection is gone.

A `Connection` joins a client to one life of a node. Nothing on it is lost, repeated or overtaken by
itself (sim-N3): what a bad path does is take time, and what a cut path does is keep everything back
until it is mended or one side gives up: the news that the other end is gone, too. It ends by a
reset (either side, or the network, sim-N7), which may happen before or after a request was read, or
an answer written; when a machine loses its power nobody says so, and the client waits until its own
patience ends (half-open), or until it is up again: then it knows nothing of the connection, and
says so to the next thing that arrives on it.

Stop-and-go of the receiving window is in the listener: a node that does not read holds requests.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ottla.raft.types import Micros, NodeId
from ottla.sim.chance.choices import Choices
from ottla.sim.chance.delays import exponential
from ottla.sim.settings.link_times import CLIENTS, round_trips
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.frames import Frame, size_of
from ottla.sim.world.kernel import Kernel

if TYPE_CHECKING:
    from ottla.sim.world.listener import ServedConnection


class Path:
    """The way between one client and one node, both directions."""

    __slots__ = ("cut", "least", "node", "stream")

    def __init__(self, choices: Choices, client: int, node: NodeId, round_trip: Micros):
        self.stream = choices.stream(f"path {client}-{node}")
        self.node = node
        self.least: Micros = round_trip // 2
        self.cut = False
        """Nothing gets through; what is under way waits (sim-N5: client and leader only)."""


class Connection:
    """The client's end. `on_answer(answer)` in order; `on_closed(why)` once, unless the client
    closes it itself."""

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
        self.served: ServedConnection | None = None
        self._requests_until: Micros = 0
        self._answers_until: Micros = 0
        self._to_node: deque[tuple[Callable[..., None], Any]] = deque()
        """What is under way to the node, oldest first: for each there is one event."""
        self._held_until: Micros = 0
        """Nothing arrives at the node before."""
        self._waiting: list[tuple[Callable[..., None], Any]] = []
        """What a cut path keeps back."""
        self._breaking = False
        """What the client writes from here on is lost: a stream has no holes."""
        self._line_free_at: Micros = 0
        """When the last byte of the client's last request has left."""

    # ---- the client

    def dial(self, reach: Callable[[Connection], None]) -> None:
        """Have `reach` called when the node hears of it; requests arrive behind that."""
        self._to_arrive(0, reach, self)

    def send(self, request: Frame) -> None:
        """Send a request."""
        if not self.open or self._breaking:
            return
        if self._breaks():
            # The request may have been read by then, or not.
            self._breaking = True
            if self.path.stream.below(2):
                self._to_arrive(self._requests_until, self._reach, request)
            self.reset_later("reset")
            return
        until = max(self._requests_until, self._written(request) + self.path.least)
        self._to_arrive(until, self._reach, request)

    def hold_up(self, span: Micros) -> None:
        """What the client has sent, and what it sends from here on, arrives after that span at the
        earliest, in order."""
        self._held_until = max(self._held_until, self.network.kernel.now + span)

    def close(self) -> None:
        """The client closes; it hears nothing more. What is under way may still arrive."""
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
        """The node closes, when what it wrote has been read."""
        until = self._answers_until
        self._answers_until = self._later(until, self._arrive, self.reset, why)

    # ---- the network

    def _written(self, request: Frame) -> Micros:
        """When the last byte of a request leaves: one request after the other, as fast as the line
        carries them."""
        network = self.network
        capacity = network.config.client_bytes_per_ms
        if not capacity:
            return 0
        begin = max(self._line_free_at, network.kernel.now)
        self._line_free_at = begin + size_of(request) * 1000 // capacity
        return self._line_free_at

    def reset(self, why: str) -> None:
        """The connection is gone for both; what is under way is gone too. The client hears of it
        when its path lets it."""
        served, self.served = self.served, None
        if served is not None:
            served.lost()
        self._waiting.clear()
        if self.open:
            self._arrive(self._ended, why)

    def reset_later(self, why: str) -> None:
        """A reset is on its way: it takes its time, and waits where the path is cut."""
        self._later(0, self._arrive, self.reset, why)

    @property
    def held_back(self) -> bool:
        """Whether something of it waits for its path to be mended."""
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
        """Have it arrive at the node, behind everything that was sent before."""
        self._to_node.append((call, argument))
        self._requests_until = self._later(until, self._next)

    def _next(self) -> None:
        """The oldest that is under way to the node is there, unless it is held up: then its event
        comes again, and whichever event comes first then takes the oldest."""
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
    """All connections of all clients. `serve(connection)` gives it to the node's present life, or
    says that nobody listens (None); `up(node)` says whether anybody would."""

    def __init__(
        self,
        kernel: Kernel,
        choices: Choices,
        config: RunConfig,
        serve: Callable[[Connection], ServedConnection | None],
        up: Callable[[NodeId], bool],
    ):
        self.kernel = kernel
        self.config = config
        self.up = up
        self.quiet = False
        """No connection breaks by itself any more."""
        self.make: Callable[..., Connection] = Connection
        """Makes connections: who wants to see what is said on them has its own kind."""
        self.connections: list[Connection] = []
        self._choices = choices
        self._serve = serve
        self._spans = round_trips(config.links, config.nodes)
        self._paths: dict[tuple[int, NodeId], Path] = {}
        self._cuts: Counter[NodeId] = Counter()
        """How many faults keep all clients from a node."""

    def path(self, client: int, node: NodeId) -> Path:
        """The way between the two."""
        found = self._paths.get((client, node))
        if found is None:
            span = self._spans.get((CLIENTS, node), self.config.client_rtt_us)
            found = self._paths[client, node] = Path(self._choices, client, node, span)
            found.cut = self._cuts[node] > 0
        return found

    def cut(self, nodes: Sequence[NodeId]) -> None:
        """No client reaches these nodes, nor does one that comes later (sim-N5)."""
        self._cuts.update(nodes)
        for path in self._paths.values():
            path.cut = path.cut or path.node in nodes

    def let(self, nodes: Sequence[NodeId]) -> None:
        """End one cut of these nodes; what no other keeps back goes on."""
        self._cuts -= Counter(nodes)  # none is below zero: a cut may end after `mend`
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
        """Connect; a node that is down refuses, which is heard one round trip later."""
        connection = self.make(self, client, node, on_answer, on_closed)
        self.connections = [each for each in self.connections if each.open or each.held_back]
        self.connections.append(connection)
        connection.dial(self._reach)
        return connection

    def remember(self, connection: Connection) -> None:
        """Something of it is held back: it arrives once its path is mended, late as it is, whether
        or not the client has closed the connection meanwhile."""
        if connection not in self.connections:
            self.connections.append(connection)

    def _reach(self, connection: Connection) -> None:
        connection.served = self._serve(connection)
        if connection.served is None:
            connection.reset_later("refused")

    def mend(self) -> None:
        """No path is cut any more."""
        self._cuts.clear()
        for path in self._paths.values():
            path.cut = False
        self._go_on()

    def _go_on(self) -> None:
        """What waited for a path that is whole again is delivered."""
        for connection in self.connections:
            if not connection.path.cut:
                connection.path_mended()
