"""`AllServed`: whether all of many partitions are served, for whoever asks again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ottla.broker.images import PartitionImage


class AllServed:
    """Call it until it is true. It asks for all that is `unserved` (None: not known yet) only when
    each partition has been served that was not when it asked last: 1,000 of them, looked at every
    millisecond, would cost more than their elections. `leading` says who serves one, if anybody."""

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
