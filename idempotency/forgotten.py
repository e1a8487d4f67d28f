"""The producers that the log has forgotten, and the epoch and last sequence of the newest of them.

An unknown producer may begin at a sequence other than 0 for two reasons. The log has forgotten it:
then it must be able to go on (KIP-360). Or its earlier batches are lost or late: then it must be
refused (docs/decisions/0012-unknown-producers.md). To tell the two apart, this object remembers the
epoch and the last sequence of forgotten producers. It remembers the `MOST` producers with the
highest ids; ids are handed out in order, so these are the newest. For an id at or below `floor`
nothing is known, so any of its batches may be its next one.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Literal, TypeAlias

from ottla.idempotency.identity import NO_EPOCH
from ottla.idempotency.sequence import is_successor
from ottla.log.types import BatchIdentity, ProducerEpoch, ProducerId, Sequence

MOST = 1_000
"""How many producers are remembered one by one: 14 KB in a snapshot of a partition."""
NO_FLOOR: ProducerId = -1
"""Below every producer id: all are remembered one by one."""
NO_TAIL: Sequence = -1
"""The last sequence of a producer whose epoch was known, but none of its batches."""

Left: TypeAlias = tuple[ProducerId, ProducerEpoch, Sequence]
"""A producer, and the epoch and last sequence at which it was forgotten."""


def goes_on(epoch: ProducerEpoch, first: Sequence, of: ProducerEpoch, tail: Sequence) -> bool:
    """Whether a batch of `epoch` that begins at sequence `first` is the next one of a producer
    whose last batch was of epoch `of` and ended at `tail`. With epoch -1 any batch may be the next
    one.

    >>> goes_on(0, 5, 0, 4), goes_on(0, 6, 0, 4), goes_on(1, 5, 0, 4), goes_on(0, 6, 0, -1)
    (True, False, False, True)
    """
    if epoch != of:
        return False
    return of == NO_EPOCH or tail == NO_TAIL or is_successor(first, tail)


class Forgotten:
    """See the module's docstring. Part of the applied state."""

    __slots__ = ("_heap", "_left", "floor")

    def __init__(self, floor: ProducerId = NO_FLOOR, left: Iterable[Left] = ()):
        self.floor = floor
        """A producer with this id or a lower one may have been forgotten, at any sequence."""
        self._left: dict[ProducerId, tuple[ProducerEpoch, Sequence]] = {}
        self._heap: list[ProducerId] = []
        for each in left:
            self.add(*each)

    def add(self, producer_id: ProducerId, epoch: ProducerEpoch, tail: Sequence) -> None:
        """The log forgets this producer, whose last batch ended at sequence `tail`."""
        if producer_id <= self.floor:
            return
        if producer_id not in self._left:
            heappush(self._heap, producer_id)
        self._left[producer_id] = epoch, tail
        if len(self._heap) > MOST:
            self.floor = heappop(self._heap)
            del self._left[self.floor]

    def may_resume(self, identity: BatchIdentity) -> bool:
        """Whether this batch may come from a producer that was forgotten, and be its next one."""
        producer_id, epoch, first, _ = identity
        if producer_id <= self.floor:
            return True
        left = self._left.get(producer_id)
        return left is not None and goes_on(epoch, first, *left)

    def __bool__(self) -> bool:
        """Whether any producer was forgotten."""
        return self.floor != NO_FLOOR or bool(self._heap)

    def plain(self) -> Literal[False] | list[int | list[list[int]]]:
        """As plain values, for a snapshot, a digest and people: the floor, and [id, epoch, tail] of
        each producer above it in order of ids. False if no producer was forgotten."""
        if not self:
            return False
        return [self.floor, [[each, *self._left[each]] for each in sorted(self._heap)]]
