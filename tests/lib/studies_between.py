"""A proxy between a reader and a real broker, which changes answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import Struct
from typing import TypeAlias

from ottla.broker.wire.client_requests import API_KEYS

Address: TypeAlias = tuple[str, int]
Change: TypeAlias = Callable[[int, int, bytes], bytes]
"""From API key, version and answer to what is answered instead; frames without their sizes."""

_SIZE = Struct(">i")
_NEXT = Struct(">hh")
_PORT = Struct(">i")


@contextmanager
def between(broker: Address, change: Change) -> Iterator[Address]:
    """The address of the proxy. Metadata names it instead of the broker."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address: Address = server.getsockname()
        ports = _PORT.pack(broker[1]), _PORT.pack(address[1])

        def changed(api: int, version: int, answer: bytes) -> bytes:
            if api == API_KEYS["metadata"]:
                answer = answer.replace(*ports)
            return change(api, version, answer)

        def serve() -> None:
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=_pass_on, args=(peer, broker, changed), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield address


def _frame(peer: socket.socket) -> bytes:
    """What comes next, without its size; nothing at the end."""
    with peer.makefile("rb") as lines:
        size = lines.read(_SIZE.size)
        return lines.read(_SIZE.unpack(size)[0]) if size else b""


def _pass_on(peer: socket.socket, broker: Address, change: Change) -> None:
    """Play the broker for one connection. Nothing comes before it is asked for."""
    with peer, socket.create_connection(broker) as behind:
        while request := _frame(peer):
            behind.sendall(_SIZE.pack(len(request)) + request)
            api, version = _NEXT.unpack_from(request)
            answer = change(api, version, _frame(behind))
            peer.sendall(_SIZE.pack(len(answer)) + answer)
