"""The broker's `Clockwork` on the deterministic loop: virtual time, and disks that take some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.broker.clockwork import Cancel, Work
from ottla.log.types import Millis
from ottla.raft.types import Micros
from ottla.sim.asyncio_loop import DeterministicLoop
from ottla.sim.clocks import EPOCH_MS


class LoopClockwork:
    """`ottla.broker.clockwork.Clockwork`: work beside a node takes `work_micros`."""

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
