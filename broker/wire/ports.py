"""`ReservedPort`: where a node listens, for as long as its cluster lives.

A node that was killed, or has failed, listens no more, and its clients are refused. Its port stays
the node's all the same: no other program may get it before `restart`. On Linux a listener that is
shut down stays bound, and may listen again later; so the cluster keeps it, and hands a copy to the
event loop for each life of the node. While it does not listen it has no SO_REUSEADDR either, and so
nobody else can bind there, whatever they say. Elsewhere the port of a dead node is free.

That is also how a listener ends for good if a child was forked behind our back (by code that is not
Python's): what the child has a copy of is shut down, and listens no more.
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
from ottla.log.forking import disown_in_children

if TYPE_CHECKING:
    import asyncio

BACKLOG = 1024
TRIES = 20
"""Free ports tried, where a name has several addresses and all need the same one."""
HOLDS = sys.platform == "linux"
OF_THE_PORT = frozenset({errno.EADDRINUSE, errno.EACCES, errno.EPERM})
"""Errors that another port of the same host might not meet."""
OF_THE_PROCESS = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors that no other address would spare it: there are too few descriptors."""
Place: TypeAlias = tuple[int, str, int]
"""Family, address, and zone (of a link-local address of IPv6; else 0)."""


class Listening(Protocol):
    """What listens: `asyncio.Server`, as far as it is used."""

    def close(self) -> None:
        """Listen no more."""


class Port(Protocol):
    """Where a node listens."""

    address: Address
    """Host, as it was given, and port."""

    async def listen(
        self, loop: asyncio.AbstractEventLoop, accept: Callable[[], asyncio.BaseProtocol]
    ) -> Listening:
        """Take clients in. Raises `OSError`."""

    def close(self) -> None:
        """Let go of the port."""


class ReservedPort:
    """See the module's text. Raises `UnusableAddressError`, an `OSError`, when the port is in use,
    or there is no such host on this machine."""

    def __init__(self, host: str, port: int):
        host = bare_host(host)
        with _named(host, port):
            self._places = _places_of(host)
            """What the host stands for."""
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
        """Bind all sockets; a free port that one address has may be in use at another."""
        for _ in range(0 if port else TRIES - 1):
            with suppress(OSError):
                return self._bind_all(port)
            self.close()
        return self._bind_all(port)

    def _bind_all(self, port: int) -> int:
        # The system takes a port back that it has chosen itself; so it is asked for by its number.
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
                # In two steps: asyncio's, which does both, waits when the loop watches the copy
                # already, and who is cancelled there has no server whose close ends that.
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
        """The port refuses clients; it stays reserved."""
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
        """Let go of the port."""
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
        """Listen no more."""
        self._port.listens_no_more()
        for server in self.servers:
            server.close()
        for each in self.copies[len(self.servers) :]:
            each.close()


def descriptor_of(transport: asyncio.BaseTransport | None) -> int:
    """Of a connection's socket; -1 when there is none."""
    found = None if transport is None else transport.get_extra_info("socket")
    return -1 if found is None else int(found.fileno())


def shut_down(descriptor: int) -> None:
    """End a connection for everybody who has a copy of its descriptor, before it is closed here."""
    if descriptor >= 0:
        with suppress(OSError):
            copy = socket.socket(fileno=os.dup(descriptor))
            with copy:
                copy.shutdown(socket.SHUT_RDWR)


@contextmanager
def _named(host: str, port: int) -> Iterator[None]:
    """What the system says of an address, with the name of the argument that is to be another."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in OF_THE_PROCESS:
            text = f"{why}; raise the limit of open files (ulimit -n), or start fewer nodes"
            raise OSError(error.errno, text) from error
        said = f"host is {shown(host)}; {why}; name an address of this machine"
        if error.errno in OF_THE_PORT:
            said = f"port is {port}; {why}; name another, or 0 for free ones"
        raise UnusableAddressError(error.errno, said, why) from error


def _places_of(host: str) -> list[Place]:
    """All that a host stands for. Raises `OSError`."""
    if host in {"", "::"}:
        if socket.has_ipv6 and _is_bindable((socket.AF_INET6, "::", 0)):
            return [(socket.AF_INET6, "::", 0)]
        if host == "":
            return [(socket.AF_INET, "0.0.0.0", 0)]  # noqa: S104 - all addresses were asked for
    # Not `socket.getaddrinfo`, which green threads replace by one that waits in their own way.
    found = _socket.getaddrinfo(host, None, 0, socket.SOCK_STREAM)
    places = dict.fromkeys(_place(each[0], each[4]) for each in found)
    bindable = [each for each in places if len(places) == 1 or _is_bindable(each)]
    return bindable or list(places)


def _place(family: int, address: Sequence[str | int | bytes]) -> Place:
    return family, str(address[0]), int(address[3]) if family == socket.AF_INET6 else 0


def _is_bindable(place: Place) -> bool:
    """Whether this machine has the address; `localhost` may name ::1 where there is no IPv6."""
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
