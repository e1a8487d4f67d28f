"""`AllServed`: whether many partitions are all served, at little cost for a caller that polls."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ottla.broker.images import PartitionImage


class AllServed:
    """Call it until it returns True. It keeps the partitions that its last call of `unserved`
    returned (None: not known yet), and calls `unserved` again only when all of these are served. To
    look at 1,000 partitions every millisecond would cost more than their elections. `leading`
    returns the node that serves a partition, if any."""

    def __init__(
        self,
        unserved: Callable[[], Iterable[PartitionImage] | None],
        leading: Callable[[PartitionImage], object],
    ):
        self._unserved = unserved
        self._leading = leading
        self._left: list[PartitionImage] = []

    def __call__(self) -> bool:
        """Whether every partition is served."""
        left = self._left
        while left:
            if self._leading(left[-1]) is None:
                return False
            left.pop()
        found = self._unserved()
        left.extend(found or ())
        return found is not None and not left
