"""Decompression of a batch's records, bounded, and with Kafka's ideas of what may be decompressed.

**Theory.** What is inflated here was sent by a client and checked by nothing but a CRC. Whatever is
wrong with it, `RecordsError` comes out and nothing else, and inflating stops at a bound, however
small the input was.

Codecs are those of batch version 2: none, gzip, snappy (xerial's block framing as Java clients
write it, or one bare block), lz4 frames, zstd frames. What lies behind the end is judged as Apache
Kafka 4.3.1 does (facts/kafka.md 8, and measured): junk behind a gzip stream or an lz4 frame is
ignored, a second gzip stream goes on with the records, a second lz4 frame is ignored too. An lz4
frame whose blocks depend on each other is none for Kafka, and an empty zstd payload inflates to
nothing.

The library is imported when the first compressed batch comes, or by `load`, so that no client waits
for it: a simulation never sees such a batch, and runs where there is no such library.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib import import_module
from struct import Struct
from typing import Any

from ottla.log.errors import RecordsError

XERIAL_MAGIC = b"\x82SNAPPY\x00"
"""Start of the block framing that Java clients put around snappy (xerial snappy-java)."""

_FIRST_GUESS_BYTES = 64 * 1024
_BLOCK_LENGTH = Struct(">i")
_XERIAL_HEADER_BYTES = 16
_GZIP = 16 + zlib.MAX_WBITS
"""zlib's window size for gzip streams."""
_GZIP_MAGIC = b"\x1f\x8b\x08"
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_WORD = Struct("<I")
_LZ4_VERSION, _LZ4_INDEPENDENT, _LZ4_BLOCK_CHECKSUM = 0x40, 0x20, 0x10
_LZ4_SIZE, _LZ4_CHECKSUM = 0x08, 0x04
_LZ4_STORED = 0x80000000
"""Flags of an lz4 frame and of a block's size."""


def load() -> None:
    """Import what decompresses, now."""
    import_module("cramjam")


def inflate(codec: int, data: memoryview, limit: int) -> memoryview:
    """The records in `data`, at most `limit` bytes of them. Raises `RecordsError`."""
    inflate_codec = _INFLATE.get(codec)
    if inflate_codec is None:
        raise RecordsError(f"codec {codec} does not exist")
    return inflate_codec(data, limit)


def _into_growing(module: str, data: memoryview, limit: int) -> memoryview:
    """Decompress by a module of the library into larger and larger buffers, up to the bound.

    The library does not say whether a buffer was too small or the input wrong, so wrong input is
    tried a few times as well; it fails early each time, and untouched pages of a buffer are free.
    """
    import cramjam

    codec: Any = getattr(cramjam, module)
    size = min(limit, max(_FIRST_GUESS_BYTES, 4 * len(data)))
    while True:
        buffer = bytearray(size)
        try:
            return memoryview(buffer)[: codec.decompress_into(data, buffer)]
        except cramjam.DecompressionError as error:
            if size == limit:
                raise RecordsError(f"not decompressible within {limit} bytes: {error}") from error
            size = min(limit, 8 * size)


def _plain(data: memoryview, limit: int) -> memoryview:
    if len(data) > limit:
        raise RecordsError(f"{len(data)} bytes of records, at most {limit} are looked at")
    return data


def _gzip(data: memoryview, limit: int) -> memoryview:
    streams: list[bytes] = []
    rest = bytes(data)
    while not streams or rest.startswith(_GZIP_MAGIC):
        stream = zlib.decompressobj(_GZIP)
        try:
            streams.append(stream.decompress(rest, limit + 1))
        except zlib.error as error:
            raise RecordsError(f"not decompressible: {error}") from error
        limit -= len(streams[-1])
        if not stream.eof or limit < 0:
            raise RecordsError("a gzip stream that is cut off, or too large to be looked at")
        rest = stream.unused_data
    return memoryview(streams[0] if len(streams) == 1 else b"".join(streams))


def _snappy_block(block: memoryview, limit: int) -> bytes:
    import cramjam

    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > limit:
            raise RecordsError(f"a snappy block of {size} bytes, at most {limit} are looked at")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise RecordsError(f"not decompressible: {error}") from error


def _snappy(data: memoryview, limit: int) -> memoryview:
    if data[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        return memoryview(_snappy_block(data, limit))
    blocks: list[bytes] = []
    position = _XERIAL_HEADER_BYTES
    while position < len(data):
        if len(data) - position < _BLOCK_LENGTH.size:
            raise RecordsError(f"{len(data) - position} bytes behind the last snappy block")
        length = _BLOCK_LENGTH.unpack_from(data, position)[0]
        position += _BLOCK_LENGTH.size
        if not 0 <= length <= len(data) - position:
            raise RecordsError(f"a snappy block of {length} of {len(data) - position} bytes")
        blocks.append(_snappy_block(data[position : position + length], limit))
        limit -= len(blocks[-1])
        position += length
    return memoryview(b"".join(blocks))


def _lz4_frame(data: memoryview) -> memoryview:
    """The first frame in `data`, without what lies behind it."""
    if data[:4] != _LZ4_MAGIC or len(data) < 7:
        raise RecordsError("no lz4 frame")
    flags = data[4]
    if not flags & _LZ4_VERSION or not flags & _LZ4_INDEPENDENT:
        raise RecordsError("an lz4 frame of another version, or of blocks that depend on others")
    position = 7 + (8 if flags & _LZ4_SIZE else 0)
    checksum = 4 if flags & _LZ4_BLOCK_CHECKSUM else 0
    while position + 4 <= len(data):
        (size,) = _LZ4_WORD.unpack_from(data, position)
        position += 4
        if size == 0:
            return data[: position + (4 if flags & _LZ4_CHECKSUM else 0)]
        position += (size & ~_LZ4_STORED) + checksum
    raise RecordsError("an lz4 frame that is cut off")


def _lz4(data: memoryview, limit: int) -> memoryview:
    return _into_growing("lz4", _lz4_frame(data), limit)


def _zstd(data: memoryview, limit: int) -> memoryview:
    return _into_growing("zstd", data, limit) if data else data


_INFLATE: dict[int, Callable[[memoryview, int], memoryview]] = {
    0: _plain,
    1: _gzip,
    2: _snappy,
    3: _lz4,
    4: _zstd,
}
