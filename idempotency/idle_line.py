"""`IdleLine`: who was idle longest, asked again and again.

A full producer table forgets one producer for each new one, and a burst of requests may bring
thousands. To look from the oldest each time, past all that are about to be forgotten and all with a
request in flight, took 5.8 s for 8,000. So those that were looked at stand in a line, oldest first,
and who is not idle leaves it. He comes back at its end when a batch of his is applied. Whatever
else makes a producer idle again (a request that failed, a decision that was not taken, another
log) has to `forget` the line, which is then made anew.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import TypeAlias

from ottla.idempotency.producer import LogIndex, Producer
from ottla.log.types import ProducerId

Applied: TypeAlias = OrderedDict[ProducerId, Producer]
"""Producers in the order of their last applied index."""
SPARE = 100
"""A line may have so many more places than twice the producers, before it is made anew."""


class IdleLine:
    """See the module's text. One per producer table."""

    __slots__ = ("_line", "_upto")

    def __init__(self) -> None:
        self._line: deque[tuple[ProducerId, LogIndex]] = deque()
        self._upto: LogIndex = 0
        """Who was applied last at this index or before stands in the line, or has left it."""

    def forget(self) -> None:
        """Some that left the line may be idle."""
        self._line.clear()
        self._upto = 0

    def idle(
        self, applied: Applied, index: LogIndex, is_free: Callable[[ProducerId], bool]
    ) -> Iterator[ProducerId]:
        """The idle ones, longest first. `index`: up to where the log is applied; `is_free`: neither
        busy nor about to be forgotten."""
        line = self._line
        if len(line) > 2 * len(applied) + SPARE:
            self.forget()
        if index > self._upto:
            self._line_up(applied)
            self._upto = index

        def stands(place: tuple[ProducerId, LogIndex]) -> bool:
            producer_id, last_index = place
            producer = applied.get(producer_id)
            return (
                producer is not None and producer.last_index == last_index and is_free(producer_id)
            )

        while line and not stands(line[0]):
            line.popleft()
        return (place[0] for place in line if stands(place))

    def _line_up(self, applied: Applied) -> None:
        upto = self._upto
        newest = takewhile(lambda each: each[1].last_index > upto, reversed(applied.items()))
        self._line.extend(reversed([(key, producer.last_index) for key, producer in newest]))
