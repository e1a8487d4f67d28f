"""`ReservedPort`: the port of a node, which stays reserved as long as its cluster exists.

A killed or failed node does not listen, and its clients are refused. But no other program may get
its port before `restart`. On Linux a listening socket that is shut down stays bound and can listen
again later. So the cluster keeps the socket, and gives the event loop a copy for each incarnation
of the node. While the node does not listen, the socket has no SO_REUSEADDR, so no other program can
bind the port. On other systems the port of a dead node is free.

Shutting down also ends a listener if code outside of Python has forked a child: the child's copy of
the socket does not listen any more, either.
"""

from __future__ import annotations

import _socket
import errno
import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ottla.broker.arguments.addresses import Address, bare_host
from ottla.broker.arguments.spelling import shown
from ottla.broker.errors import UnusableAddressError
from ottla.broker.event_loop.descriptors import FEWER_NODES, TOO_FEW
from ottla.log.forking import disown_in_children

if TYPE_CHECKING:
    import asyncio

BACKLOG = 1024
TRIES = 20
"""How many free ports are tried if a host has several addresses, which all need the same port."""
HOLDS = sys.platform == "linux"
OF_THE_PORT = frozenset({errno.EADDRINUSE, errno.EACCES, errno.EPERM})
"""Errors of the port: another port of the same host might work."""
Place: TypeAlias = tuple[int, str, int]
"""Family, address, and zone (of a link-local address of IPv6; else 0)."""


class Listening(Protocol):
    """A listener: the part of `asyncio.Server` that is used."""

    def close(self) -> None:
        """Stop listening."""


class Port(Protocol):
    """The port of a node."""

    address: Address
    """Host as the caller gave it, and port number."""

    async def listen(
        self, loop: asyncio.AbstractEventLoop, accept: Callable[[], asyncio.BaseProtocol]
    ) -> Listening:
        """Begin to accept clients. Raises `OSError`."""

    def close(self) -> None:
        """Release the port."""


class ReservedPort:
    """See the module's docstring. Raises `UnusableAddressError`, an `OSError`, if the port is in
    use or this machine does not have the host's address."""

    def __init__(self, host: str, port: int):
        host = bare_host(host)
        with _named(host, port):
            self._places = _places_of(host)
            """The addresses of the host."""
        self._sockets: list[socket.socket] = []
        disown_in_children(self)
        try:
            with _named(host, port):
                self.address = (host, self._bind(port))
                self._share(0)
        except BaseException:
            self.close()
            raise

    def _bind(self, port: int) -> int:
        """Bind a socket for each address and return the port number. A port that is free at one
        address may be in use at another; then another free port is tried."""
        for _ in range(0 if port else TRIES - 1):
            with suppress(OSError):
                return self._bind_all(port)
            self.close()
        return self._bind_all(port)

    def _bind_all(self, port: int) -> int:
        # A port that the system has chosen may be given away later, so bind it by its number.
        with _bound(self._places[0], port) as chosen:
            number = int(chosen.getsockname()[1])
            for place in self._places:
                self._sockets.append(_bound(place, number))
        return number

    async def listen(
        self, loop: asyncio.AbstractEventLoop, accept: Callable[[], asyncio.BaseProtocol]
    ) -> Listening:
        """Take clients in. Raises `OSError`."""
        if not HOLDS:
            self.close()
            with _named(*self.address):
                self._bind(self.address[1])
        listener = _Listener(self)
        try:
            self._share(1)
            for each in self._sockets:
                each.listen(BACKLOG)
            for each in self._sockets:
                copy = each.dup()
                listener.copies.append(copy)
                # In two steps: create_server with start_serving waits while the loop already
                # watches
                # the copy. If that is cancelled, there is no server to close.
                server = await loop.create_server(
                    accept, sock=copy, backlog=BACKLOG, start_serving=False
                )
                listener.servers.append(server)
                await server.start_serving()
        except BaseException:
            listener.close()
            raise
        return listener

    def listens_no_more(self) -> None:
        """Stop listening: clients are refused, and the port stays reserved."""
        self._share(0)
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _share(self, shared: int) -> None:
        if sys.platform != "win32":  # there it would let anybody bind here
            for each in self._sockets:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, shared)

    def descriptors(self) -> Iterable[int]:
        """See `ottla.log.forking`."""
        return [each.fileno() for each in self._sockets]

    def close(self) -> None:
        """Release the port."""
        for each in self._sockets:
            each.close()
        self._sockets.clear()


class _Listener:
    """The event loop's copies of the sockets of one node."""

    def __init__(self, port: ReservedPort) -> None:
        self._port = port
        self.copies: list[socket.socket] = []
        self.servers: list[asyncio.Server] = []
        disown_in_children(self)

    def descriptors(self) -> Iterable[int]:
        """See `ottla.log.forking`."""
        return [each.fileno() for each in self.copies]

    def close(self) -> None:
        """Stop listening."""
        self._port.listens_no_more()
        for server in self.servers:
            server.close()
        for each in self.copies[len(self.servers) :]:
            each.close()


def descriptor_of(transport: asyncio.BaseTransport | None) -> int:
    """The descriptor of a connection's socket; -1 if there is none."""
    found = None if transport is None else transport.get_extra_info("socket")
    return -1 if found is None else int(found.fileno())


def shut_down(descriptor: int) -> None:
    """Shut a connection down, also for processes that have a copy of its descriptor. Call it before
    the connection is closed here."""
    if descriptor >= 0:
        with suppress(OSError):
            copy = socket.socket(fileno=os.dup(descriptor))
            with copy:
                copy.shutdown(socket.SHUT_RDWR)


@contextmanager
def _named(host: str, port: int) -> Iterator[None]:
    """Turn an `OSError` about an address into one that names the argument to change."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in TOO_FEW:  # no other address would work
            raise OSError(error.errno, f"{why}; {FEWER_NODES}") from error
        said = f"host is {shown(host)}; {why}; name an address of this machine"
        if error.errno in OF_THE_PORT:
            said = f"port is {port}; {why}; name another, or 0 for free ones"
        raise UnusableAddressError(error.errno, said, why) from error


def _places_of(host: str) -> list[Place]:
    """All addresses of a host. Raises `OSError`."""
    if host in {"", "::"}:
        if socket.has_ipv6 and _is_bindable((socket.AF_INET6, "::", 0)):
            return [(socket.AF_INET6, "::", 0)]
        if host == "":
            return [(socket.AF_INET, "0.0.0.0", 0)]  # noqa: S104 - all addresses were asked for
    # Not `socket.getaddrinfo`, because libraries of green threads replace that function.
    found = _socket.getaddrinfo(host, None, 0, socket.SOCK_STREAM)
    places = dict.fromkeys(_place(each[0], each[4]) for each in found)
    bindable = [each for each in places if len(places) == 1 or _is_bindable(each)]
    return bindable or list(places)


def _place(family: int, address: Sequence[str | int | bytes]) -> Place:
    return family, str(address[0]), int(address[3]) if family == socket.AF_INET6 else 0


def _is_bindable(place: Place) -> bool:
    """Whether this machine has the address; `localhost` may mean ::1 on a machine without IPv6."""
    try:
        _bound(place, 0).close()
    except OSError:
        return False
    return True


def _bound(place: Place, port: int) -> socket.socket:
    family, host, zone = place
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":  # there it would let anybody bind here
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != "::")
        try:
            made.bind((host, port, 0, zone) if family == socket.AF_INET6 else (host, port))
        except OSError as error:
            where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            raise OSError(error.errno, f"{where}: {error.strerror}") from None
    except BaseException:
        made.close()
        raise
    return made
