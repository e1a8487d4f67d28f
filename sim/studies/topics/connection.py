"""One blocking connection to one broker of any kind: a request, its answer, nothing else.

`ottla.broker.client.Exchange` encodes and decodes. Versions are negotiated by ApiVersions 0, which
every broker answers (KIP-35), within those that this module supports: old enough for any broker
since Kafka 0.11. Unknown tagged fields are skipped (`ottla.broker.wire.guard`).
"""

from __future__ import annotations

import socket
from typing import Any

from ottla.broker.client import Exchange
from ottla.broker.errors import FrameError
from ottla.broker.wire.client_requests import API_KEYS

SPOKEN = {"fetch": (4, 11), "list_offsets": (1, 5), "metadata": (4, 10)}
"""The supported versions, by API: first and last."""
_CHUNK = 1 << 20


class UnfitError(Exception):
    """The broker serves no supported version of an API that is needed here."""


class Connection:
    """See the module's docstring. Made by `connect`; used by one thread."""

    def __init__(self, address: tuple[str, int], timeout: float) -> None:
        """Connect. `timeout`: the limit of every wait, in seconds. Raises `OSError`, also for an
        invalid address, because a broker may name one; `FrameError`, `UnfitError`."""
        self._exchange = Exchange("ottla-spark")
        try:
            self._socket = socket.create_connection(address, timeout)
        except UnicodeError:
            raise OSError(f"{address[0]}:{address[1]} is not an address") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._versions = self._agree(address)
        except BaseException:
            self._socket.close()
            raise

    def _agree(self, address: tuple[str, int]) -> dict[str, int]:
        answer = self._ask("api_versions", 0, {})
        served = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        versions = {}
        for api, (oldest, newest) in SPOKEN.items():
            first, last = served.get(API_KEYS[api], (0, -1))
            if last < oldest or first > newest:
                raise UnfitError(
                    f"{address[0]}:{address[1]} serves versions {first} to {last} of {api}; "
                    f"{oldest} to {newest} are asked for"
                )
            versions[api] = min(newest, last)
        return versions

    def call(self, api: str, **fields: Any) -> Any:
        """Send a request and wait for its response entity. Raises `OSError`, `FrameError`; after
        that the connection cannot be used any more."""
        return self._ask(api, self._versions[api], fields)

    def _ask(self, api: str, version: int, fields: dict[str, Any]) -> Any:
        _, frame = self._exchange.request(API_KEYS[api], version, fields)
        self._socket.sendall(frame)
        while True:
            data = self._socket.recv(_CHUNK)
            if not data:
                raise ConnectionResetError("connection closed by the broker")
            answers = self._exchange.received(data)
            if len(answers) > 1:
                raise FrameError(f"{len(answers)} answers to one request")
            if answers:
                return answers[0][1]

    def close(self) -> None:
        """End the connection."""
        self._socket.close()
