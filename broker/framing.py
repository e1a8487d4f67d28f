"""Answers as bytes: frames around what is ready, handed to the transport in few, large pieces."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from struct import Struct
from typing import cast

from ottla.broker.api.call import Call
from ottla.broker.pipeline import Slot

JOIN_BELOW_BYTES = 1 << 16
"""Answers below this size leave as one piece: a copy is cheaper than a vector."""

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
        call = cast(Call, slot)  # others have no answer
        size = (len(parts[0]) if len(parts) == 1 else sum(map(len, parts))) + 4
        if call.route.answer_tagged:
            size += 1
            pieces.append(_HEAD_TAGGED(size, call.correlation_id))
        else:
            pieces.append(_HEAD(size, call.correlation_id))
        pieces += parts
        total += size + 4
    return total


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
