"""Answers as bytes: frames around what is ready, handed to the transport in few, large pieces."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from struct import Struct
from typing import cast

from ottla.broker.wire.byte_call import ByteCall
from ottla.broker.wire.pipeline import Slot

JOIN_BELOW_BYTES = 1 << 16
"""Answers below this size leave as one piece: a copy is cheaper than a vector."""

PORTION_BYTES = 1 << 20
"""Of a larger answer, given to the transport at once."""

_HEAD = Struct(">ii").pack
_HEAD_TAGGED = Struct(">iix").pack


def frames(ready: Sequence[Slot], pieces: list[bytes | memoryview]) -> int:
    """Append the answers of these slots, framed, to `pieces`; returns their size.

    Raises `struct.error` for an answer whose size does not fit its int32.
    """
    total = 0
    for slot in ready:
        parts = slot.parts
        if not parts:
            continue
        call = cast(ByteCall, slot)  # others have no answer
        size = (len(parts[0]) if len(parts) == 1 else sum(map(len, parts))) + 4
        if call.route.answer_tagged:
            size += 1
            pieces.append(_HEAD_TAGGED(size, call.correlation_id))
        else:
            pieces.append(_HEAD(size, call.correlation_id))
        pieces += parts
        total += size + 4
    return total


class Outgoing:
    """What is on its way to the transport, in portions.

    Some transports copy what they are given, once or twice (CPython's before 3.12 joins the pieces
    of `writelines`, and keeps what the socket does not take in a bytearray). So a large answer is
    handed over a portion at a time, and the next one when the client has taken most of it.
    """

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: deque[bytes | memoryview] = deque()

    def __len__(self) -> int:
        """Pieces that are left."""
        return len(self._pieces)

    def keep(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Take in what is to leave behind all that is left."""
        self._pieces.extend(pieces)

    def write(self, transport: asyncio.Transport, most: int = PORTION_BYTES) -> None:
        """Hand the first `most` bytes to the transport, or a piece more."""
        portion, total = [], 0
        while self._pieces and total < most:
            piece = self._pieces.popleft()
            if len(piece) > most:
                rest = memoryview(piece)
                self._pieces.appendleft(rest[most:])
                piece = rest[:most]
            portion.append(piece)
            total += len(piece)
        if portion:
            write(transport, portion, total)


def write(transport: asyncio.Transport, pieces: Sequence[bytes | memoryview], total: int) -> None:
    """Hand `pieces`, of `total` bytes together, to the transport."""
    if total < JOIN_BELOW_BYTES or total < 4096 * len(pieces):
        transport.write(b"".join(pieces))
    else:
        # CPython's writelines stops nobody at the limit before 3.12.9 and 3.13.2 (gh-127655); its
        # write does, unless it is given nothing.
        filled = [each for each in pieces if each]
        transport.writelines(filled[:-1])
        transport.write(filled[-1])
