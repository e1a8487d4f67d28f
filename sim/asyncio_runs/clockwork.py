"""The broker's `Clockwork` on the deterministic loop: virtual time, and disks that take some."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ottla.broker.arguments.addresses import Address
from ottla.broker.event_loop.clockwork import Cancel, Work
from ottla.broker.wire.ports import Listening
from ottla.log.types import Millis
from ottla.raft.types import Micros
from ottla.sim.asyncio_runs.event_loop import DeterministicLoop
from ottla.sim.world.clocks import EPOCH_MS


class LoopClockwork:
    """`ottla.broker.event_loop.clockwork.Clockwork`: work beside a node takes `work_micros`."""

    def __init__(self, loop: DeterministicLoop, work_micros: Micros = 1000):
        self._loop = loop
        self._work_micros = work_micros
        self.now = loop.now
        self.call_soon = loop.call_soon

    def wall_ms(self) -> Millis:
        """Wall clock, ms since 1970."""
        return EPOCH_MS + self._loop.now() // 1000

    def call_at(self, when: Micros, call: Callable[[], None]) -> Cancel:
        """Run `call` at `when`, or soon if that is past."""
        return self._loop.call_at_micros(when, call).cancel

    def work(self, work: Callable[[], None], ended: Callable[[str | None], None]) -> Work:
        """Run `work` when its time is over."""
        return _Working(self._loop, self._work_micros, work, ended)


class LoopPort:
    """`ottla.broker.wire.ports.Port`, where there is no other program that could take it."""

    def __init__(self, host: str, port: int):
        self.address: Address = (host, port)

    async def listen(
        self, loop: asyncio.AbstractEventLoop, accept: Callable[[], asyncio.BaseProtocol]
    ) -> Listening:
        """Take clients in; a free port is taken by the first who listens."""
        host, port = self.address
        server = await loop.create_server(accept, host, port)
        self.address = (host, server.sockets[0].getsockname()[1])
        return server

    def close(self) -> None:
        """There is nothing to let go of."""


class _Working:
    def __init__(
        self,
        loop: DeterministicLoop,
        span: Micros,
        work: Callable[[], None],
        ended: Callable[[str | None], None],
    ):
        self._over: Any = loop.create_future()
        loop.call_at_micros(loop.now() + span, self._end, work, ended)

    def _end(self, work: Callable[[], None], ended: Callable[[str | None], None]) -> None:
        broken = None
        try:
            work()
        except Exception as error:  # noqa: BLE001 - `work` keeps its own; this is a broken one
            broken = repr(error)
        if not self._over.done():
            self._over.set_result(None)
        ended(broken)

    async def wait(self) -> None:
        """Until it has ended, however it ended."""
        await self._over
