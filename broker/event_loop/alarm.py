"""`Alarm`: one timer of the clockwork for everything that a node waits for."""

from __future__ import annotations

from collections.abc import Callable

from ottla.broker.event_loop.clockwork import Cancel, Clockwork
from ottla.raft.types import Micros


class Alarm:
    """Calls `ring` at the earliest time that was set since the last ring, or a little later."""

    __slots__ = ("_cancel", "_clockwork", "_ring", "at")

    def __init__(self, clockwork: Clockwork, ring: Callable[[], None]):
        self._clockwork = clockwork
        self._ring = ring
        self._cancel: Cancel | None = None
        self.at: Micros | None = None
        """When it rings; None while it is not set."""

    def set(self, at: Micros) -> None:
        """Ring at `at`, unless it rings earlier anyway."""
        if self._cancel is not None:
            if self.at is not None and self.at <= at:
                return
            self._cancel()
        self.at = at
        self._cancel = self._clockwork.call_at(at, self._rang)

    def _rang(self) -> None:
        self._cancel = self.at = None
        self._ring()

    def stop(self) -> None:
        """Do not ring."""
        if self._cancel is not None:
            self._cancel()
            self._cancel = self.at = None
