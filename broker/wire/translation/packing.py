"""Parts of Kafka's encoding, for the answers that are packed without the codec (Produce, Fetch)."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import TypeAlias

Piece: TypeAlias = bytes | memoryview
"""A piece of an encoded answer."""
INT = Struct(">i")
SHORT = Struct(">h")
JOIN_BELOW_BYTES = 4096
"""Pieces that are smaller than this on average are joined: a copy is cheaper than many pieces."""


def varint(value: int) -> bytes:
    """An unsigned varint (KIP-482)."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def string(text: str | None, flexible: bool) -> bytes:
    """A nullable string, compact or not."""
    if text is None:
        return b"\0" if flexible else b"\xff\xff"
    data = text.encode()
    return (varint(len(data) + 1) if flexible else SHORT.pack(len(data))) + data


def count(items: int, flexible: bool) -> bytes:
    """The length before the items of an array, compact or not."""
    return varint(items + 1) if flexible else INT.pack(items)


def add_few(parts: Sequence[Piece], pieces: list[Piece]) -> None:
    """Append `parts` to `pieces`, as one piece if they are small."""
    if sum(map(len, parts)) < JOIN_BELOW_BYTES * len(parts):
        pieces.append(b"".join(parts))
    else:
        pieces += parts
