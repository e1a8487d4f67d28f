"""Splits an lz4 frame into blocks that can be inflated one by one, as Kafka's own reader does.

Kafka refuses a frame whose blocks depend on each other, so each block is inflated by itself. The
checks are as measured on Apache Kafka 4.3.1: the checksums of the header and of blocks must be
right; the content's size and checksum are ignored; only the first frame is read. Source of the
format: lz4 frame format description, version 1.6.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from ottla.log.errors import InflateError

_MAGIC = b"\x04\x22\x4d\x18"
_WORD = Struct("<I")
_VERSION_MASK, _VERSION = 0xC0, 0x40
_INDEPENDENT, _BLOCK_CHECKSUM, _CONTENT_SIZE, _CONTENT_CHECKSUM = 0x20, 0x10, 0x08, 0x04
_RESERVED_FLAGS = 0x03
_RESERVED_SIZES = 0x8F
_SMALLEST_CODE = 4
_STORED = 0x80000000
"""Flags of a frame, the parts of its descriptor that must be 0, and a block's flag."""
_PRIMES = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
_MASK = 0xFFFFFFFF


class Lz4Block(NamedTuple):
    """One block of a frame."""

    data: memoryview
    stored: bool
    """Whether the block is stored uncompressed."""
    checksum: memoryview | None
    code: int
    """The frame's code for the largest size of a block."""

    @property
    def most(self) -> int:
        """The largest size that the block may inflate to, in bytes."""
        return 1 << (8 + 2 * self.code)

    def alone(self) -> bytes:
        """A frame with only this block, for a reader that checks the block's checksum."""
        flags = _VERSION | _INDEPENDENT | _BLOCK_CHECKSUM
        descriptor = bytes([flags, self.code << 4])
        size = _WORD.pack(len(self.data) | (_STORED if self.stored else 0))
        head = _MAGIC + descriptor + _descriptor_checksum(descriptor)
        return b"".join((head, size, self.data, self.checksum or b"", bytes(4)))


def lz4_blocks(data: memoryview) -> Iterator[Lz4Block]:
    """The blocks of the first frame in `data`. Raises `InflateError`."""
    if data[:4] != _MAGIC or len(data) < 7:
        raise InflateError("no lz4 frame")
    flags, sizes = data[4], data[5]
    position = 7 + (8 if flags & _CONTENT_SIZE else 0)
    if flags & _VERSION_MASK != _VERSION or not flags & _INDEPENDENT:
        raise InflateError("an lz4 frame of another version, or of blocks that depend on others")
    code = sizes >> 4
    if flags & _RESERVED_FLAGS or sizes & _RESERVED_SIZES or code < _SMALLEST_CODE:
        raise InflateError(f"an lz4 frame of unknown kind {flags:#x}, {sizes:#x}")
    descriptor = bytes(data[4 : position - 1])
    if data[position - 1 : position] != _descriptor_checksum(descriptor):
        raise InflateError("an lz4 frame with a damaged header")
    checksum = 4 if flags & _BLOCK_CHECKSUM else 0
    while True:
        size, position = _word(data, position)
        stored, size = size >= _STORED, size & ~_STORED
        if size == 0:
            if flags & _CONTENT_CHECKSUM:
                _word(data, position)
            return
        end = position + size
        if end + checksum > len(data) or size > 1 << (8 + 2 * code):
            raise InflateError(f"an lz4 block of {size} of {len(data) - position} bytes")
        sum_of_it = data[end : end + checksum] if checksum else None
        yield Lz4Block(data[position:end], stored, sum_of_it, code)
        position = end + checksum


def _word(data: memoryview, position: int) -> tuple[int, int]:
    if position + _WORD.size > len(data):
        raise InflateError("an lz4 frame that is cut off")
    return _WORD.unpack_from(data, position)[0], position + _WORD.size


def _descriptor_checksum(descriptor: bytes) -> bytes:
    """The second byte of the xxHash-32 of a frame descriptor, which is shorter than 16 bytes."""
    first, second, third, fourth, fifth = _PRIMES
    digest, at = fifth + len(descriptor), 0
    while at + 4 <= len(descriptor):
        digest += _WORD.unpack_from(descriptor, at)[0] * third
        digest = _rotated(digest, 17) * fourth
        at += 4
    for byte in descriptor[at:]:
        digest = _rotated(digest + byte * fifth, 11) * first
    digest &= _MASK
    digest = ((digest ^ digest >> 15) * second) & _MASK
    digest = ((digest ^ digest >> 13) * third) & _MASK
    return bytes([(digest ^ digest >> 16) >> 8 & 0xFF])


def _rotated(number: int, by: int) -> int:
    number &= _MASK
    return (number << by | number >> (32 - by)) & _MASK
