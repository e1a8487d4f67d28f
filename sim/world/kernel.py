"""The event kernel: virtual time, and the order of events.

Time is whole microseconds and moves only from one event to the next. Events of the same time happen
in the order in which they were scheduled. `fold` is a running hash over the time and place of all
events so far, so two runs that differ in any event have different ones.

The caller bounds the time of a run, and so the number of events. But events that schedule one
another without any delay would never end: then the clock stands still, which raises an error.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, TypeAlias

from ottla.raft.types import Micros

Cancel: TypeAlias = Callable[[], None]

AT_ONCE = 100_000
"""This many events in a row at one time are an error (found between one and two times this number).
Runs have about 20."""
_PRIME = 0x100000001B3
_MASK = (1 << 64) - 1
_Call: TypeAlias = Callable[..., None]


class StandstillError(Exception):
    """Events schedule one another without any delay: time would stand still for ever."""


class _Timer:
    """An event that can be cancelled."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[], None]):
        self.call: Callable[[], None] | None = call

    def ring(self) -> None:
        """Its time has come: call it."""
        call, self.call = self.call, None
        if call is not None:
            call()

    def cancel(self) -> None:
        """It will not be called."""
        self.call = None


class Kernel:
    """See the module's docstring."""

    __slots__ = ("_heap", "_places", "fold", "now", "steps")

    def __init__(self) -> None:
        self.now: Micros = 0
        self.steps = 0
        """Events that happened so far."""
        self.fold = 0
        self._heap: list[tuple[Micros, int, _Call, tuple[Any, ...]]] = []
        self._places = 0

    def at(self, when: Micros, call: _Call, *arguments: Any) -> None:
        """Call `call(*arguments)` at `when`. A past time means now, after the events already
        due."""
        place = self._places
        self._places = place + 1
        heappush(self._heap, (max(self.now, when), place, call, arguments))

    def after(self, span: Micros, call: _Call, *arguments: Any) -> None:
        """Call `call(*arguments)` after `span` from now."""
        place = self._places
        self._places = place + 1
        heappush(self._heap, (self.now + span, place, call, arguments))

    def timer(self, when: Micros, call: Callable[[], None]) -> Cancel:
        """As `at`; returns what cancels it."""
        timer = _Timer(call)
        self.at(when, timer.ring)
        return timer.cancel

    def run(self, until: Micros) -> None:
        """Run all events up to `until`. Raises `StandstillError`."""
        heap, fold, steps = self._heap, self.fold, self.steps
        try:
            while heap and heap[0][0] <= until:
                begun = heap[0][0]
                # The clock is checked only once in a while, so that the check costs an event
                # nothing.
                for happened in range(steps + 1, steps + 1 + AT_ONCE):
                    steps = happened
                    when, place, call, arguments = heappop(heap)
                    self.now = when
                    fold = (fold * _PRIME ^ when ^ place << 40) & _MASK
                    call(*arguments)
                    if not heap or heap[0][0] > until:
                        break
                else:
                    if self.now == begun:
                        raise StandstillError(f"{AT_ONCE} events in a row at {begun} us")
        finally:
            self.fold, self.steps = fold, steps
        self.now = until
