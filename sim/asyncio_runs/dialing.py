"""How connections on the simulated network begin: dialing and listening.

A `Dial` sends the first segment of a connection. Where it arrives, a `Listener` makes the other end
and answers. If nobody listens, the answer is a reset: the connection is refused. If the dialer has
given up, what is under way also ends with a reset.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeAlias

from ottla.raft.types import Micros
from ottla.sim.asyncio_runs.streams import End
from ottla.sim.asyncio_runs.wires import Kind, Segment, Wire

if TYPE_CHECKING:
    from ottla.sim.asyncio_runs.network import HostWay, StreamNetwork

Address: TypeAlias = tuple[str, int]

CONNECT_MICROS: Micros = 127_000_000
"""How long Linux tries to connect (6 repetitions)."""


class Dial:
    """A connection that is being made."""

    def __init__(self, network: StreamNetwork, source: Address, target: Address):
        loop = network.loop
        self._network = network
        self._source, self._target = source, target
        self._there, self._back = network.way(source, target), network.way(target, source)
        self._out, self._in = Wire(loop, self._there), Wire(loop, self._back)
        self.end = End(network.link(self._out, self._there), _known(source, target))
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
        self._network.opened(self.end, self._there)
        self.end.on_closed = self._network.closed

    def _asked(self, _: Segment) -> None:
        """The first segment arrives at the other side."""
        listener = self._network.listener(self._target)
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
        end = End(self._network.link(self._in, self._back), _known(self._target, self._source))
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

    def __init__(
        self, network: StreamNetwork, factory: Callable[[], Any], addresses: list[Address]
    ):
        self.factory = factory
        self.context = copy_context()
        """The context in which its clients are served."""
        self._network = network
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
        return self._network.loop

    def is_serving(self) -> bool:
        """Whether it accepts clients."""
        return self._serving

    async def start_serving(self) -> None:
        """Accept clients. Raises `OSError` if the address is in use."""
        if not self._serving:
            for address in self._addresses:
                self._network.listen(address, self)
            self._serving = True

    async def serve_forever(self) -> None:
        """Accept clients until this is cancelled."""
        await self.start_serving()
        try:
            await self._network.loop.create_future()
        finally:
            self.close()
            await self.wait_closed()

    def close(self) -> None:
        """Accept no more clients; existing connections stay."""
        if self._serving:
            for address in self._addresses:
                self._network.unlisten(address)
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
            gone = self._network.loop.create_future()
            self._gone.append(gone)
            await gone

    def opened(self, end: End, way: HostWay) -> None:
        """Add a client."""
        self._ends[end] = None
        self._network.opened(end, way)
        end.on_closed = self._closed

    def _closed(self, end: End) -> None:
        self._network.closed(end)
        del self._ends[end]
        self._look()

    def _look(self) -> None:
        if self._over and not self._ends:
            gone, self._gone = self._gone, []
            for each in gone:
                if not each.done():
                    each.set_result(None)
