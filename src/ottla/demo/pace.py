"""`Pace`: when a producer may write its next record, and when it has written enough.

Writing is spread evenly over the planned time, and goes on as long as faults do. After that, the
rest is written as fast as the client can. `hold` makes a writer rest with no record in flight. Then
a leader may change, and change back, and no acks=0 client writes to the wrong node.
"""

from __future__ import annotations

import threading
import time


class Pace:
    """The pace of one writer. It calls `due`, `finished` and `held`; the nemesis calls the rest."""

    def __init__(self, records: int, seconds: float):
        self._records = records
        self._rate = records / seconds
        self._started = time.monotonic()
        self._held_since = 0.0
        self._faults_over = threading.Event()
        self._go = threading.Event()
        self._go.set()
        self.idle = threading.Event()
        """Set by the writer while it is held and has no record in flight."""

    def start(self) -> None:
        """Begin to count the time."""
        self._started = time.monotonic()

    def due(self) -> int:
        """Records that should have been sent by now."""
        if self._faults_over.is_set():
            return max(self._records, 0)
        return int((time.monotonic() - self._started) * self._rate)

    def finished(self, sent: int) -> bool:
        """Whether the writer has sent enough."""
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
        """Make the writer rest; it sets `idle` when everything that it sent is answered."""
        self._held_since = time.monotonic()
        self.idle.clear()
        self._go.clear()

    def release(self) -> None:
        """Let the writer go on, without a burst for the time in which it rested."""
        if self.held:
            self._started += time.monotonic() - self._held_since
            self._go.set()
