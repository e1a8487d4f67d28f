"""Sequence numbers of a producer: one per record, 31 bits; 2147483647 is followed by 0.

The wrap may fall between two batches or inside one, so a range is a pair (first, last) in which
last may be smaller than first. Source: KIP-98; K-SEQUENCE.
"""

from __future__ import annotations

from ottla.log.types import Sequence

MAX_SEQUENCE: Sequence = 2**31 - 1
"""The largest sequence number, and the bit mask by which sequences wrap."""


def is_successor(first: Sequence, tail: Sequence) -> bool:
    """Whether a batch that begins at `first` follows directly on one that ended at `tail`.

    >>> is_successor(5, 4), is_successor(0, 2147483647), is_successor(6, 4)
    (True, True, False)
    """
    return first == (tail + 1) & MAX_SEQUENCE
