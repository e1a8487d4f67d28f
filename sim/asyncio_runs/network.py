"""The network for programs on the deterministic loop: named hosts, ports, and ways between them.

Nothing of it is real: a host is a name, and needs no DNS. A client connects from the host named by
`at`; a server listens where it says. What a rule may be about says `ways.py`.

| | what happens on a way |
|---|---|
| `slow` | a segment takes that long, plus an exponential span with mean `jitter` |
| `cut` | nothing gets through, in this direction, until `heal` |
| `partition` | `cut`, both ways |
| `reset` | connections between the two end, with what was under way, at both ends |
| `chop_ppm` | how often a piece is cut in two, so that frames arrive in halves |

A connection to a port without a listener is refused, one round trip later. One that nobody answers
fails after 127 s, as on Linux. Host names are not resolved, and TLS is refused.
What arrives goes into the loop's trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ottla.raft.types import Micros
from ottla.sim.asyncio_runs.dialing import Dial, Listener, Ports
from ottla.sim.asyncio_runs.event_loop import DeterministicLoop
from ottla.sim.asyncio_runs.streams import End
from ottla.sim.asyncio_runs.ways import Ways
from ottla.sim.asyncio_runs.wires import Kind, Segment

_host: ContextVar[str] = ContextVar("host", default="client")
_REFUSED_OPTIONS = ("ssl", "sock", "local_addr")


class StreamNetwork(Ways):
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
        super().__init__(loop.choices, latency=latency, jitter=jitter, chop_ppm=chop_ppm)
        self.loop = loop
        self._ports = Ports(loop, self, window)

    # ---- hosts

    @contextmanager
    def at(self, host: str) -> Iterator[None]:
        """Code in this block, and tasks that it starts, connect from that host."""
        token = _host.set(host)
        try:
            yield
        finally:
            _host.reset(token)

    def reset(self, one: str, other: str) -> int:
        """End the connections between the two; returns how many ends there were."""
        rules = ((one, other), (other, one))
        ends = [end for end, way in self._ports.ends.items() if any(map(way.is_about, rules))]
        for end in ends:
            self.loop.call_soon(end.arrive, Segment(Kind.RESET), context=end.context)
        return len(ends)

    @property
    def connections(self) -> int:
        """Ends that are open now."""
        return len(self._ports.ends)

    # ---- what the loop calls

    async def create_connection(
        self, factory: Callable[[], Any], host: str | None, port: int | None, **options: Any
    ) -> tuple[End, Any]:
        """`loop.create_connection`: raises `OSError` if it is refused, or nobody answers."""
        self._check(options)
        if host is None or port is None:
            raise ValueError("host and port was not specified and no sock specified")
        own = _host.get()
        dial = Dial(self._ports, (own, self._ports.free_port(own)), (host, int(port)))
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
        first = port or self._ports.free_port(hosts[0])
        listener = Listener(self._ports, factory, [(each, first) for each in hosts])
        if options.get("start_serving", True):
            await listener.start_serving()
        return listener

    def _check(self, options: dict[str, Any]) -> None:
        for name in _REFUSED_OPTIONS:
            if options.get(name) is not None:
                raise self.loop.refuse(f"a connection with {name}=")
