"""Frames of which only a part has come: whether what they announce can be a request."""

from __future__ import annotations

from struct import Struct

from ottla.broker.wire.translation.produce_shortcut import PRODUCE_KEY
from ottla.broker.wire.walk import REQUEST_LIMITS

SMALLEST_FRAME = 10
"""API key, version, correlation id and the length of the client id."""
PLAIN_FRAME_BYTES = REQUEST_LIMITS.body_bytes + (1 << 20)
"""The largest frame without records: a body of the largest size, and room for any header."""

_SIZE = Struct(">i")
_SIZE_AND_KEY = Struct(">ih")


def size_refusal(head: memoryview, most: int) -> str | None:
    """Why a frame that begins with these bytes, 4 at least, is none; `most` is the largest."""
    (size,) = _SIZE.unpack_from(head)
    if size < SMALLEST_FRAME or size > most:
        return f"a frame of {size} bytes, limit {most}"
    if size > PLAIN_FRAME_BYTES and len(head) >= _SIZE_AND_KEY.size:
        _, key = _SIZE_AND_KEY.unpack_from(head)
        if key != PRODUCE_KEY:
            return f"API {key}: a frame of {size} bytes without records, limit {PLAIN_FRAME_BYTES}"
    return None
