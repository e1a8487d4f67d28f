"""Puts answers into frames and gives them to the transport in few, large pieces."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from struct import Struct
from typing import cast

from ottla.broker.wire.byte_call import ByteCall
from ottla.broker.wire.pipeline import Slot
from ottla.broker.wire.translation.packing import JOIN_BELOW_BYTES

ONE_PIECE_BYTES = 1 << 16
"""Answers of fewer bytes are joined: a copy is cheaper than several pieces."""

PORTION_BYTES = 1 << 20
"""A larger answer is given to the transport in portions of this size."""

_HEAD = Struct(">ii").pack
_HEAD_TAGGED = Struct(">iix").pack


def frames(ready: Sequence[Slot], pieces: list[bytes | memoryview]) -> int:
    """Append the frames of the answers of these slots to `pieces`. Returns their total size.

    Raises `struct.error` if the size of an answer does not fit into an int32.
    """
    total = 0
    for slot in ready:
        parts = slot.parts
        if not parts:
            continue
        call = cast(ByteCall, slot)  # only a ByteCall has an answer
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
    """Pieces that wait for the transport, which gets them in portions.

    Some transports copy their input, once or twice (CPython's before 3.12 joins the pieces of
    `writelines`, and copies what the socket does not take into a bytearray). So the transport gets
    a large answer in portions, the next one when the client has taken most of the last.
    """

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: deque[bytes | memoryview] = deque()

    def __len__(self) -> int:
        """How many pieces are left."""
        return len(self._pieces)

    def keep(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Add pieces at the end."""
        self._pieces.extend(pieces)

    def write(self, transport: asyncio.Transport, most: int = PORTION_BYTES) -> None:
        """Give the first `most` bytes to the transport, or up to one piece more."""
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
    """Give `pieces`, of `total` bytes together, to the transport."""
    if total < ONE_PIECE_BYTES or total < JOIN_BELOW_BYTES * len(pieces):
        transport.write(b"".join(pieces))
    else:
        # Before 3.12.9 and 3.13.2 CPython's writelines does not pause writing at the high-water
        # mark (gh-127655). Its write does, unless its argument is empty.
        filled = [each for each in pieces if each]
        transport.writelines(filled[:-1])
        transport.write(filled[-1])
