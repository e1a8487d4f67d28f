"""How connections on the simulated network begin: ports, dialing and listening.

`Ports` knows who listens where, and which connections are open. A `Dial` sends the first segment of
a connection. Where it arrives, a `Listener` makes the other end and answers. If nobody listens, the
answer is a reset: the connection is refused. If the dialer has given up, what is under way also
ends with a reset.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Any

from ottla.raft.types import Micros
from ottla.sim.asyncio_runs.event_loop import DeterministicLoop
from ottla.sim.asyncio_runs.streams import End
from ottla.sim.asyncio_runs.ways import Address, HostWay, Ways
from ottla.sim.asyncio_runs.wires import Kind, Link, Segment, Wire

FIRST_PORT = 32768
"""The first of the ports that the system assigns."""

CONNECT_MICROS: Micros = 127_000_000
"""How long Linux tries to connect (6 repetitions)."""


class Ports:
    """The ports of all hosts. `window`: bytes that may be under way or unread, in each direction of
    a connection."""

    def __init__(self, loop: DeterministicLoop, ways: Ways, window: int):
        self.loop = loop
        self.ways = ways
        self._window = window
        self._listeners: dict[Address, Listener] = {}
        self._next: dict[str, int] = {}
        """By host, the first port that was never assigned."""
        self._ends: dict[End, HostWay] = {}
        """Open ends, with the way that they send on."""

    def free_port(self, host: str) -> int:
        """A port that was never used."""
        port = self._next.get(host, FIRST_PORT)
        while (host, port) in self._listeners:
            port += 1
        self._next[host] = port + 1
        return port

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

    @property
    def ends(self) -> Mapping[End, HostWay]:
        """Ends that are open now, with the way that they send on."""
        return self._ends

    def opened(self, end: End, way: HostWay) -> None:
        """An end was opened."""
        self._ends[end] = way

    def closed(self, end: End) -> None:
        """An end was closed."""
        self._ends.pop(end, None)

    def link(self, wire: Wire, way: HostWay) -> Link:
        """What an end needs."""
        return Link(self.loop, wire, way, self._window, self._note)

    def _note(self, value: int, what: str) -> None:
        self.loop.trace.note(self.loop.now(), value, what)


class Dial:
    """A connection that is being made."""

    def __init__(self, ports: Ports, source: Address, target: Address):
        loop, ways = ports.loop, ports.ways
        self._ports = ports
        self._source, self._target = source, target
        self._there, self._back = ways.way(source, target), ways.way(target, source)
        self._out, self._in = Wire(loop, self._there), Wire(loop, self._back)
        self.end = End(ports.link(self._out, self._there), _known(source, target))
        self._out.arrive, self._out.context = self._asked, self.end.context
        self._in.arrive, self._in.context = self._answered, self.end.context
        self._answer = loop.create_future()
        self._timer = loop.call_at_micros(loop.now() + CONNECT_MICROS, self._nobody)
        self._out.send(Segment(Kind.OPEN))

    async def answer(self) -> None:
        """Wait until the other side has answered. Raises `OSError`."""
        try:
            await self._answer
        finally:
            self._timer.cancel()
        self._ports.opened(self.end, self._there)
        self.end.on_closed = self._ports.closed

    def _asked(self, _: Segment) -> None:
        """The first segment arrives at the other side."""
        listener = self._ports.listener(self._target)
        if listener is None:
            self._in.send(Segment(Kind.RESET))
        else:
            listener.context.copy().run(self._accept, listener)

    def _accept(self, listener: Listener) -> None:
        try:
            protocol = listener.factory()
        except Exception:  # noqa: BLE001 - as asyncio: the client is turned away, nothing more
            self._in.send(Segment(Kind.RESET))
            return
        end = End(self._ports.link(self._in, self._back), _known(self._target, self._source))
        self._out.arrive, self._out.context = end.arrive, end.context
        listener.opened(end, self._back)
        self._in.send(Segment(Kind.OPEN))
        end.made(protocol)

    def _answered(self, segment: Segment) -> None:
        if segment.kind is not Kind.OPEN:
            if not self._answer.done():
                said = f"Connect call failed {self._target}"
                self._answer.set_exception(ConnectionRefusedError(111, said))
        elif self._answer.done():  # the dialer has given up
            self._in.arrive = lambda _: None
            self._out.send(Segment(Kind.RESET))
        else:
            self._in.arrive = self.end.arrive
            self._answer.set_result(None)

    def _nobody(self) -> None:
        if not self._answer.done():
            self._answer.set_exception(TimeoutError(110, f"Connect call failed {self._target}"))


def _known(own: Address, peer: Address) -> dict[str, Any]:
    return {"sockname": own, "peername": peer}


class _Bound:
    """The part of a listening socket that programs use."""

    def __init__(self, address: Address):
        self._address = address

    def getsockname(self) -> Address:
        """Host and port."""
        return self._address


class Listener(asyncio.AbstractServer):
    """What `create_server` returns: `asyncio.Server`, as far as it is documented."""

    def __init__(self, ports: Ports, factory: Callable[[], Any], addresses: list[Address]):
        self.factory = factory
        self.context = copy_context()
        """The context in which its clients are served."""
        self._ports = ports
        self._addresses = addresses
        self._serving = False
        self._over = False
        self._ends: dict[End, None] = {}
        self._gone: list[asyncio.Future[Any]] = []

    @property
    def sockets(self) -> tuple[_Bound, ...]:
        """Where it listens."""
        return tuple(map(_Bound, () if self._over else self._addresses))

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop that it belongs to."""
        return self._ports.loop

    def is_serving(self) -> bool:
        """Whether it accepts clients."""
        return self._serving

    async def start_serving(self) -> None:
        """Accept clients. Raises `OSError` if the address is in use."""
        if not self._serving:
            for address in self._addresses:
                self._ports.listen(address, self)
            self._serving = True

    async def serve_forever(self) -> None:
        """Accept clients until this is cancelled."""
        await self.start_serving()
        try:
            await self._ports.loop.create_future()
        finally:
            self.close()
            await self.wait_closed()

    def close(self) -> None:
        """Accept no more clients; existing connections stay."""
        if self._serving:
            for address in self._addresses:
                self._ports.unlisten(address)
        self._serving, self._over = False, True
        self._look()

    def close_clients(self) -> None:
        """Close every connection."""
        for end in list(self._ends):
            end.close()

    def abort_clients(self) -> None:
        """Abort every connection."""
        for end in list(self._ends):
            end.abort()

    async def wait_closed(self) -> None:
        """Wait until it is closed and its last client is gone, as in CPython 3.12.1 and later."""
        if not self._over or self._ends:
            gone = self._ports.loop.create_future()
            self._gone.append(gone)
            await gone

    def opened(self, end: End, way: HostWay) -> None:
        """Add a client."""
        self._ends[end] = None
        self._ports.opened(end, way)
        end.on_closed = self._closed

    def _closed(self, end: End) -> None:
        self._ports.closed(end)
        del self._ends[end]
        self._look()

    def _look(self) -> None:
        if self._over and not self._ends:
            gone, self._gone = self._gone, []
            for each in gone:
                if not each.done():
                    each.set_result(None)
