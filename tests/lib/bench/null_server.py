"""The ceiling: an asyncio server that acknowledges every request without looking at it.

One buffer is received into again and again, frames are only counted off, the answer is the one a
broker would give. No Python server on this loop that does anything at all can be faster.
"""

from __future__ import annotations

import asyncio
from struct import Struct

BUFFER_BYTES = 1 << 20

_SIZE = Struct(">i")
_HEAD = Struct(">ii")


def answer_tail(topic: str) -> bytes:
    """A Produce answer, version 7, behind its correlation id: one partition, offset 0, no error."""
    name = topic.encode()
    parts = Struct(f">ih{len(name)}siihqqqi")
    return parts.pack(1, len(name), name, 1, 0, 0, 0, -1, 0, 0)


class NullServer(asyncio.BufferedProtocol):
    """One connection of the null server."""

    def __init__(self, topic: str):
        self._tail = answer_tail(topic)
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._kept = 0
        """Bytes at the front of the buffer that belong to a head cut in half."""
        self._skip = 0
        """Bytes of the present request still to come."""
        self._owed = -1
        """Correlation id of the request being skipped; -1 for none."""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: a client is there."""
        self._transport = transport  # type: ignore[assignment]  # uvloop has a class of its own

    def get_buffer(self, _sizehint: int) -> memoryview:
        """asyncio: where to receive to."""
        return self._view[self._kept :]

    def buffer_updated(self, nbytes: int) -> None:
        """asyncio: bytes came; acknowledge every request that is now complete."""
        answers: list[bytes] = []
        at, end = 0, self._kept + nbytes
        if self._owed >= 0:
            at = min(self._skip, end)
            self._skip -= at
            if not self._skip:
                answers.append(self._answer(self._owed))
                self._owed = -1
        while end - at >= 12:
            (size,) = _SIZE.unpack_from(self._buffer, at)
            (correlation_id,) = _SIZE.unpack_from(self._buffer, at + 8)
            if end - at - 4 < size:
                self._owed, self._skip = correlation_id, size + 4 - (end - at)
                at = end
                break
            answers.append(self._answer(correlation_id))
            at += size + 4
        self._kept = end - at
        if at and self._kept:
            self._buffer[: self._kept] = self._buffer[at:end]
        if answers and self._transport is not None:
            self._transport.write(b"".join(answers))

    def _answer(self, correlation_id: int) -> bytes:
        return _HEAD.pack(4 + len(self._tail), correlation_id) + self._tail
