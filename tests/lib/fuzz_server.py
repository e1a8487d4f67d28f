"""A hostile broker: to each request, it gives a valid answer with one change.

After an answer that announces another size than it has, it closes the connection, so that clients
need not guess how long to wait for more.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from pathlib import Path
from random import Random

from fuzz_frames import FRAME, answer
from fuzz_hostile import NUMBERS, change, fixed


class HostileServer(asyncio.Protocol):
    """One connection."""

    def __init__(self, rng: Random):
        self._rng = rng
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: connected."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """asyncio: requests, whole or in pieces."""
        self._received += data
        while len(self._received) >= FRAME.size and not self._transport.is_closing():
            size, key, version, correlation_id, _ = FRAME.unpack_from(self._received)
            if len(self._received) < 4 + size:
                return
            del self._received[: 4 + size]
            answer = self._answer(key, version, correlation_id)
            self._transport.write(answer)
            if answer[:4] != fixed(len(answer) - 4, 4):
                self._transport.close()

    def _answer(self, key: int, version: int, correlation_id: int) -> bytes:
        rng = self._rng
        schema, body, spots = answer(rng, key, version)
        if rng.random() < 0.6:
            body = change(body, spots, rng)
        tags = rng.choice([b"\0", b"\0", b"\0", b"\1\x63\1x", b"\xff\xff\xff\xff\x7f"])
        head = fixed(correlation_id, 4) + (tags if schema.header_tags else b"")
        size = len(head) + len(body) if rng.random() < 0.98 else rng.choice(NUMBERS)
        return fixed(size, 4) + head + body


async def serve(connections: int, seed: int) -> dict[str, int]:
    """Answer one client, in a process of its own, which asks on so many connections. What it saw.
    Fails when its process has ended otherwise than well."""
    loop = asyncio.get_running_loop()
    # Each connection its own: how far one comes before it is hung up on changes no other.
    numbers = itertools.count(seed * 1_000_000)
    server = await loop.create_server(lambda: HostileServer(Random(next(numbers))), "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        script = Path(__file__).with_name("fuzz_victim.py")
        victim = await asyncio.create_subprocess_exec(
            *(sys.executable, str(script), host, str(port), str(connections)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await victim.communicate()
    assert victim.returncode == 0, err.decode()
    assert not err, err.decode()
    seen: dict[str, int] = json.loads(out)
    return seen
