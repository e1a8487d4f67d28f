"""Harness of the wire tests: a listener over a fake node, real TCP, raw and decoding clients.

A test is a coroutine function that takes a `Wire`; `run` gives it one and a time limit. What the
loop's exception handler hears of fails the test, unless it takes it out of `Wire.failures`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from struct import Struct
from types import TracebackType
from typing import Any, Self

from broker_fake_host import FakeHost
from ottla.broker.client import Client, Exchange, Produced, produced
from ottla.broker.wire.client_requests import API_KEYS
from ottla.broker.wire.ports import ReservedPort
from ottla.broker.wire.server import Server
from ottla.log.build import build_batch

SIZE = Struct(">i")
PATIENCE = 10.0


def run(test: Callable[..., Awaitable[None]], host: FakeHost | None = None) -> None:
    """Run `test(wire)` against a listener of `host` (by default `default_host`)."""

    async def main() -> None:
        async with Wire(host or default_host()) as wire:
            await asyncio.wait_for(test(wire), PATIENCE)

    asyncio.run(main())


def default_host(**settings: Any) -> FakeHost:
    """A node that leads three partitions of topic t."""
    host = FakeHost(**settings)
    host.add_topic("t", 3)
    return host


class Wire:
    """A running listener and the clients made for it."""

    def __init__(self, host: FakeHost):
        self.host = host
        self._clients: list[Client] = []
        self._raw: list[Raw] = []

    async def __aenter__(self) -> Self:
        self.server = Server(self.host)
        self.failures: list[dict[str, Any]] = []
        self.server.loop.set_exception_handler(lambda _, context: self.failures.append(context))
        self.port = ReservedPort("127.0.0.1", 0)
        await self.server.start(self.port)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for client in self._clients:
            client.close()
        for raw in self._raw:
            raw.close()
        self.server.stop()
        self.port.close()
        await asyncio.sleep(0)
        assert not self.failures, self.failures

    async def tick(self) -> None:
        """Let the loop go round."""
        await asyncio.sleep(0.001)

    async def client(self) -> Client:
        """A decoding client."""
        client = await Client.connect(*self.server.address)
        self._clients.append(client)
        return client

    async def raw(self) -> "Raw":
        """A client that writes and reads bytes."""
        raw = Raw(*await asyncio.open_connection(*self.server.address))
        self._raw.append(raw)
        return raw


class Raw:
    """Bytes in, bytes out."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.reader = reader
        self.writer = writer

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.writer.write(data)

    async def frame(self) -> bytes:
        """The next frame, without its length."""
        (size,) = SIZE.unpack(await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def is_closed(self, within: float = 5.0) -> bool:
        """Whether the other side ends the connection without sending anything more."""
        try:
            return await asyncio.wait_for(self.reader.read(1), within) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    def close(self) -> None:
        """End the connection."""
        self.writer.close()


def outcome(answer: Any) -> Produced:
    """What a Produce response says of its first partition; there must be one."""
    found = produced(answer)
    assert found is not None
    return found


def frame(api: str, version: int, **fields: Any) -> bytes:
    """One encoded request with correlation id 0."""
    return Exchange().request(API_KEYS[api], version, fields)[1]


def api_versions(version: int = 0) -> bytes:
    """A small request that is always answered."""
    fields = {"client_software_name": "t", "client_software_version": "1"} if version > 2 else {}
    return frame("api_versions", version, **fields)


def produce_frame(version: int = 9, acks: int = -1, **at: Any) -> bytes:
    """A good produce request; `at` may change topic, partition and records."""
    records = at.get("records", build_batch([b"value"]))
    data = [{"index": at.get("partition", 0), "records": records}]
    return frame(
        "produce",
        version,
        transactional_id=None,
        acks=acks,
        timeout=1000,
        topic_data=[{"name": at.get("topic", "t"), "partition_data": data}],
    )
