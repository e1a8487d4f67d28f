"""Simulated time for the world of `Replica`s."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from ottla.raft.types import Micros


class Kernel:
    """Events in the order of their time; among equals, in the order they were made."""

    def __init__(self) -> None:
        self.now: Micros = 1_000_000
        self._events: list[tuple[Micros, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def at(self, when: Micros, call: Callable[[], None]) -> None:
        """Have `call` made at `when`, or now if that is past."""
        heapq.heappush(self._events, (max(when, self.now), next(self._numbers), call))

    def after(self, span: Micros, call: Callable[[], None]) -> None:
        """Have `call` made in `span`."""
        self.at(self.now + span, call)

    def run(self, span: Micros) -> None:
        """Let `span` pass."""
        until = self.now + span
        while self._events and self._events[0][0] <= until:
            self.now, _, call = heapq.heappop(self._events)
            call()
        self.now = until
