"""One timer queue per node: every replica publishes one deadline, the driver keeps one timer.

Most deadlines move *later*: each message from a leader postpones the election timeout. That case
costs one dictionary write, because the key keeps its earlier slot in the sorted list. When the time
of that slot has come, the queue sees that the deadline moved, and gives the key a new slot (lazy
re-arm). The price is that `next` is only a lower bound: the driver may wake up, find nothing due,
and sleep again, at most once per key and slot.

The order is deterministic. Keys that are due come in the order of their deadlines, equal ones in
the order in which they were set.
"""

from __future__ import annotations

import sys
from typing import Generic, TypeVar

from sortedcontainers import SortedList

from ottla.raft.types import Micros

K = TypeVar("K")


class TimerQueue(Generic[K]):
    """Deadlines by key; a key (anything hashable) has at most one."""

    __slots__ = ("_first", "_serial", "_slots", "_sorted", "_wanted")

    def __init__(self) -> None:
        self._wanted: dict[K, Micros] = {}
        # When a key is looked at: (time, serial, key), never later than its deadline. The serial is
        # unique, so that keys are never compared.
        self._slots: dict[K, tuple[Micros, int, K]] = {}
        self._sorted = SortedList()
        # Time of the first slot, kept because it is read far more often than it changes.
        self._first: Micros | None = None
        self._serial = 0

    def __len__(self) -> int:
        return len(self._wanted)

    def set(self, key: K, when: Micros | None) -> None:
        """Make `when` the deadline of `key`; None: no deadline. O(1) unless it moves earlier."""
        if when is None:
            self._wanted.pop(key, None)
            return
        self._wanted[key] = when
        slot = self._slots.get(key)
        if slot is None:
            self._arm(key, when)
        elif when < slot[0]:
            self._sorted.remove(slot)
            self._arm(key, when)

    def get(self, key: K) -> Micros | None:
        """The deadline of `key`; None when it has none."""
        return self._wanted.get(key)

    def next(self) -> Micros | None:
        """A time before which no key is due; None if no key has a deadline."""
        return self._first if self._wanted else None

    def pop_due(self, now: Micros, most: int = sys.maxsize) -> list[K]:
        """Remove and return the keys whose deadline is `now` or earlier, the earliest first, at
        most `most` of them. The others stay due."""
        if self._first is None or self._first > now:
            return []
        slots = self._sorted
        due: list[tuple[Micros, int, K]] = []
        while slots and slots[0][0] <= now and len(due) < most:
            slot = slots.pop(0)
            key = slot[2]
            del self._slots[key]
            when = self._wanted.get(key)
            if when is None:
                continue
            if when > now:
                self._arm(key, when)
            else:
                del self._wanted[key]
                due.append((when, slot[1], key))
        self._first = slots[0][0] if slots else None
        due.sort(key=_time_and_serial)
        return [key for _when, _serial, key in due]

    def _arm(self, key: K, when: Micros) -> None:
        self._serial += 1
        slot = (when, self._serial, key)
        self._slots[key] = slot
        self._sorted.add(slot)
        if self._first is None or when < self._first:
            self._first = when


def _time_and_serial(slot: tuple[Micros, int, object]) -> tuple[Micros, int]:
    return slot[:2]
