"""The receive buffers that all connections of a server share: see
`ottla.broker.wire.receiving`."""

from __future__ import annotations

from mmap import mmap
from typing import TypeAlias

SCRATCH_BYTES = 1 << 18
SPARE_BYTES = 1 << 22
"""The largest receive buffer that is kept for reuse. Larger ones are memory of the system
(mmap)."""

ReceiveBuffer: TypeAlias = bytearray | mmap


class Buffers:
    """One buffer that all receive into, and one spare buffer for a connection that keeps bytes."""

    def __init__(self) -> None:
        self._scratch = bytearray(SCRATCH_BYTES)
        self._spare: ReceiveBuffer | None = None
        self.scratch = memoryview(self._scratch)
        """What may be received into now: see `limit_scratch`."""
        self.scratch_readonly = self.scratch.toreadonly()

    def limit_scratch(self, size: int) -> None:
        """From now on receive at most `size` bytes at once into the shared buffer."""
        self.scratch = memoryview(self._scratch)[:size]

    def take(self, size: int) -> ReceiveBuffer:
        """A buffer of at least `size` bytes for a connection.

        Python fills a bytearray with zeros, which takes 30 ms for 100 MB. So a large buffer is
        memory of the system (mmap), which provides its pages as bytes arrive.
        """
        spare = self._spare
        if spare is not None and len(spare) >= size:
            self._spare = None
            return spare
        return bytearray(size) if size <= SPARE_BYTES else mmap(-1, size)

    def give_back(self, buffer: ReceiveBuffer) -> None:
        """A connection no longer needs its buffer: keep the largest one up to `SPARE_BYTES` for
        reuse. New memory for each frame of 1 MB costs as much as receiving into it.
        """
        if len(buffer) <= SPARE_BYTES and len(buffer) > len(self._spare or b""):
            self._spare = buffer
