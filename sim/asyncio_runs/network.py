"""The network for programs on the deterministic loop: named hosts, ports, and ways between them.

Nothing of it is real: a host is a name, and needs no DNS. A client connects from the host named by
`at`; a server listens where it says. A rule is about the way *from* one address *to* another. An
address is a host, `host:port`, or `*`; the most exact rule wins. Rules may change at any time.

| | what happens on a way |
|---|---|
| `slow` | a segment takes that long, plus an exponential span with mean `jitter` |
| `cut` | nothing gets through, in this direction, until `heal` |
| `partition` | `cut`, both ways |
| `reset` | connections between the two end, with what was under way, at both ends |
| `chop_ppm` | how often a piece is cut in two, so that frames arrive in halves |

A connection to a port without a listener is refused, one round trip later. One that nobody answers
fails after 127 s, as on Linux. Host names are not resolved, and TLS is refused.

Choices (jitter, cuts of pieces) come from a stream of the run's choices for each pair of hosts.
What arrives goes into the loop's trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from ottla.raft.types import Micros
from ottla.sim.asyncio_runs.dialing import Address, Dial, Listener
from ottla.sim.asyncio_runs.event_loop import DeterministicLoop
from ottla.sim.asyncio_runs.streams import End
from ottla.sim.asyncio_runs.wires import Kind, Link, Segment, Way, Wire
from ottla.sim.chance.delays import exponential

Rule: TypeAlias = tuple[str, str]

FIRST_PORT = 32768
"""The first of the ports that the system assigns."""
SEGMENT_BYTES = 1 << 16
_host: ContextVar[str] = ContextVar("host", default="client")
_REFUSED_OPTIONS = ("ssl", "sock", "local_addr")


class HostWay:
    """One direction between two addresses: `ottla.sim.asyncio_runs.wires.Way`."""

    def __init__(self, network: StreamNetwork, source: Address, target: Address):
        self._network = network
        self._stream = network.loop.choices.stream(f"way {source[0]}>{target[0]}")
        self._rules = [(a, b) for a in _names(source) for b in _names(target)]
        """Keys of the rules about it, the most exact first."""

    def cut(self) -> bool:
        """Whether nothing gets through now."""
        cuts = self._network.cuts
        return bool(cuts) and any(rule in cuts for rule in self._rules)

    def is_about(self, rule: Rule) -> bool:
        """Whether a rule is about this way."""
        return rule in self._rules

    def span(self) -> Micros:
        """How long the next segment takes."""
        network = self._network
        found = (network.spans[rule] for rule in self._rules if rule in network.spans)
        least, jitter = next(found, network.span)
        return least + exponential(self._stream, jitter)

    def piece(self, size: int) -> int:
        """How many of `size` bytes make up the next segment."""
        size = min(size, SEGMENT_BYTES)
        if size > 1 and self._stream.chance(self._network.chop_ppm):
            return size - 1 - self._stream.below(size - 1)
        return size

    def when_mended(self, call: Callable[[], None]) -> None:
        """Call it, once, as soon as the way is no longer cut."""
        self._network.stuck.append((self, call))


def _names(address: Address) -> tuple[str, ...]:
    return f"{address[0]}:{address[1]}", address[0], "*"


class StreamNetwork:
    """See the module's docstring. `DeterministicLoop.network`; one per loop."""

    def __init__(
        self,
        loop: DeterministicLoop,
        *,
        latency: Micros = 250,
        jitter: Micros = 0,
        window: int = 1 << 18,
        chop_ppm: int = 0,
    ):
        self.loop = loop
        self.span = (latency, jitter)
        self.window = window
        """Bytes that may be under way or unread, in each direction of a connection."""
        self.chop_ppm = chop_ppm
        self.spans: dict[Rule, tuple[Micros, Micros]] = {}
        self.cuts: dict[Rule, None] = {}
        self.stuck: list[tuple[HostWay, Callable[[], None]]] = []
        """Callbacks that wait for a way to be mended."""
        self._listeners: dict[Address, Listener] = {}
        self._ports: dict[str, int] = {}
        self._ends: dict[End, HostWay] = {}
        """Open ends, with the way that they send on."""

    # ---- rules

    @contextmanager
    def at(self, host: str) -> Iterator[None]:
        """Code in this block, and tasks that it starts, connect from that host."""
        token = _host.set(host)
        try:
            yield
        finally:
            _host.reset(token)

    def slow(self, source: str, target: str, latency: Micros, jitter: Micros = 0) -> None:
        """From now on segments take that long from `source` to `target`."""
        self.spans[source, target] = (latency, jitter)

    def cut(self, source: str, target: str) -> None:
        """Nothing gets from `source` to `target`."""
        self.cuts[source, target] = None

    def partition(self, one: str, other: str) -> None:
        """Nothing gets through between the two."""
        self.cut(one, other)
        self.cut(other, one)

    def heal(self, source: str | None = None, target: str | None = None) -> None:
        """Remove the cuts from `source` to `target`; None stands for any address."""
        for rule in list(self.cuts):
            if source in {None, rule[0]} and target in {None, rule[1]}:
                del self.cuts[rule]
        stuck, self.stuck = self.stuck, []
        for way, call in stuck:
            if way.cut():
                self.stuck.append((way, call))
            else:
                call()

    def reset(self, one: str, other: str) -> int:
        """End the connections between the two; returns how many ends there were."""
        rules = ((one, other), (other, one))
        ends = [end for end, way in self._ends.items() if any(map(way.is_about, rules))]
        for end in ends:
            self.loop.call_soon(end.arrive, Segment(Kind.RESET), context=end.context)
        return len(ends)

    @property
    def connections(self) -> int:
        """Ends that are open now."""
        return len(self._ends)

    # ---- what the loop calls

    async def create_connection(
        self, factory: Callable[[], Any], host: str | None, port: int | None, **options: Any
    ) -> tuple[End, Any]:
        """`loop.create_connection`: raises `OSError` if it is refused, or nobody answers."""
        self._check(options)
        if host is None or port is None:
            raise ValueError("host and port was not specified and no sock specified")
        own = _host.get()
        dial = Dial(self, (own, self.free_port(own)), (host, int(port)))
        await dial.answer()
        protocol = factory()
        dial.end.made(protocol)
        return dial.end, protocol

    async def create_server(
        self,
        factory: Callable[[], Any],
        host: str | Sequence[str] | None,
        port: int | None,
        **options: Any,
    ) -> Listener:
        """`loop.create_server`: raises `OSError` if the port is in use."""
        self._check(options)
        hosts = [host or _host.get()] if host is None or isinstance(host, str) else list(host)
        first = port or self.free_port(hosts[0])
        listener = Listener(self, factory, [(each, first) for each in hosts])
        if options.get("start_serving", True):
            await listener.start_serving()
        return listener

    def _check(self, options: dict[str, Any]) -> None:
        for name in _REFUSED_OPTIONS:
            if options.get(name) is not None:
                raise self.loop.refuse(f"a connection with {name}=")

    def free_port(self, host: str) -> int:
        """A port that was never used."""
        port = self._ports.get(host, FIRST_PORT)
        while (host, port) in self._listeners:
            port += 1
        self._ports[host] = port + 1
        return port

    # ---- listeners and ends

    def listener(self, address: Address) -> Listener | None:
        """The listener at an address."""
        return self._listeners.get(address)

    def listen(self, address: Address, listener: Listener) -> None:
        """`listener` listens there from now on. Raises `OSError` if the address is in use."""
        if address in self._listeners:
            where = "error while attempting to bind on address"
            raise OSError(98, f"{where} {address}: address already in use")
        self._listeners[address] = listener

    def unlisten(self, address: Address) -> None:
        """There is no listener any more."""
        self._listeners.pop(address, None)

    def way(self, source: Address, target: Address) -> HostWay:
        """The way from one address to the other."""
        return HostWay(self, source, target)

    def opened(self, end: End, way: HostWay) -> None:
        """An end was opened."""
        self._ends[end] = way

    def closed(self, end: End) -> None:
        """An end was closed."""
        self._ends.pop(end, None)

    def link(self, wire: Wire, way: Way) -> Link:
        """What an end needs."""
        return Link(self.loop, wire, way, self.window, self._note)

    def _note(self, value: int, what: str) -> None:
        self.loop.trace.note(self.loop.now(), value, what)
