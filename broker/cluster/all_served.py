"""`AllServed`: whether all of many partitions are served, for whoever asks again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ottla.broker.images import PartitionImage


class AllServed:
    """Call it until it returns True. It keeps the list of unserved partitions from its last call of
    `unserved` (None: not known yet), and calls that again only when all of them are served. To look
    at 1,000 partitions every millisecond would cost more than their elections. `leading` says which
    node serves a partition, if any."""

    def __init__(
        self,
        unserved: Callable[[], Iterable[PartitionImage] | None],
        leading: Callable[[PartitionImage], object],
    ):
        self._unserved = unserved
        self._leading = leading
        self._left: list[PartitionImage] = []

    def __call__(self) -> bool:
        """Whether nothing is unserved any more."""
        left = self._left
        while left:
            if self._leading(left[-1]) is None:
                return False
            left.pop()
        found = self._unserved()
        left.extend(found or ())
        return found is not None and not left
