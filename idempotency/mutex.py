"""One mutex per producer id, first come first served, as a plain object (promise-R1).

Nothing here blocks. `acquire` says whether the caller holds the mutex now or stands in line.
`release` hands the mutex to the next waiter in line and returns that waiter, so that the caller can
go on with it. A request holds the mutex of its producer from its decision until it is `enqueued`;
requests of other producers are not delayed.

Not covered: a waiter cannot leave the line. A waiter that is handed the mutex and has nothing left
to do must release it at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from ottla.log.types import ProducerId

Waiter = TypeVar("Waiter")


class ProducerMutex(Generic[Waiter]):
    """The mutexes of one partition's producers. A mutex that nobody holds takes no memory."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        # A key means that the mutex is held. Its line is made when the second request arrives.
        self._lines: dict[ProducerId, deque[Waiter] | None] = {}

    def acquire(self, producer_id: ProducerId, waiter: Waiter) -> bool:
        """True: the caller holds it now. False: `waiter` stands in line, `release` will return it.

        `waiter` must not be None, because `release` returns None for *nobody*.
        """
        lines = self._lines
        if producer_id not in lines:
            lines[producer_id] = None
            return True
        assert waiter is not None, f"None stands in line for producer {producer_id}"
        line = lines[producer_id]
        if line is None:
            lines[producer_id] = deque((waiter,))
        else:
            line.append(waiter)
        return False

    def release(self, producer_id: ProducerId) -> Waiter | None:
        """Give the mutex up. Returns the first in line, who holds it from now on; None if
        nobody."""
        lines = self._lines
        assert producer_id in lines, f"producer {producer_id} is released, {len(lines)} others held"
        line = lines.pop(producer_id)
        if not line:
            return None
        lines[producer_id] = line
        return line.popleft()

    def held(self, producer_id: ProducerId) -> bool:
        """Whether somebody holds this producer's mutex."""
        return producer_id in self._lines

    def waiters(self) -> Iterator[Waiter]:
        """All waiters of all producers; those of one producer in the order of their line."""
        for line in self._lines.values():
            yield from line or ()

    def waiting(self, producer_id: ProducerId) -> int:
        """How many stand in line behind the holder."""
        return len(self._lines.get(producer_id) or ())

    def drop_all(self) -> list[Waiter]:
        """The term is over: free every mutex and return all waiters.

        Waiters of one producer keep their order. Producers come in the order in which their mutexes
        last changed hands. Holders are not returned, and must not call `release` afterwards.
        """
        waiters = list(self.waiters())
        self._lines.clear()
        return waiters
