"""`Pace`: when a producer may write its next record, and when it has written enough.

Writing is spread evenly over the planned time, goes on as long as faults do, and is then completed
as fast as the client can. `hold` makes the writers of all ledgers pause with nothing under way,
which is what lets a leader change and change back without a client that could not be told.
"""

from __future__ import annotations

import threading
import time


class Pace:
    """One writer's share of the work. `due` is asked by the writer, the rest by the nemesis."""

    def __init__(self, records: int, seconds: float):
        self._records = records
        self._rate = records / seconds
        self._started = time.monotonic()
        self._held_since = 0.0
        self._faults_over = threading.Event()
        self._go = threading.Event()
        self._go.set()
        self.idle = threading.Event()
        """Set by the writer while it is held and has nothing under way."""

    def start(self) -> None:
        """The time begins now."""
        self._started = time.monotonic()

    def due(self) -> int:
        """Records that should have been sent by now."""
        if self._faults_over.is_set():
            return max(self._records, 0)
        return int((time.monotonic() - self._started) * self._rate)

    def finished(self, sent: int) -> bool:
        """Whether nothing more is to be sent."""
        return self._faults_over.is_set() and sent >= self._records

    def faults_over(self) -> None:
        """Send what is missing, then stop."""
        self._faults_over.set()
        self.release()

    @property
    def held(self) -> bool:
        """Whether the writer must not send."""
        return not self._go.is_set()

    def hold(self) -> None:
        """Let the writer stop sending; it sets `idle` when all it sent is answered."""
        self._held_since = time.monotonic()
        self.idle.clear()
        self._go.clear()

    def release(self) -> None:
        """Let it go on; what it missed it does not catch up with in one burst."""
        if self.held:
            self._started += time.monotonic() - self._held_since
            self._go.set()
