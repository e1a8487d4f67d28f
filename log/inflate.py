"""Decompression of a batch's records, piece by piece, and with Kafka's ideas of what may be
decompressed.

**Theory.** What is inflated here was sent by a client and checked by nothing but a CRC. Whatever is
wrong with it, `InflateError` comes out and nothing else, and inflating stops at a bound, however
small the input was.

A batch may inflate to far more than it is, and whoever asks for that shares one event loop with all
others. So `inflated` is a generator: between two of its pieces its user may stop and let others go
on, and it never holds more than a piece. Each piece comes with the bytes that were worked on for
it, which may be more than the piece has: a block may inflate to nothing.

| codec | a piece |
|---|---|
| none | all of it |
| gzip | `PIECE_BYTES` |
| lz4 frame, snappy in the framing of Java clients (xerial's) | one block of it |
| snappy, one bare block; zstd | all of it, at most `MOST_AT_ONCE` bytes |

The last two are whole because the library cannot stop in the middle (docs/decisions/0018). What it
decompresses into is only as large as the input could fill: zeros cost time, too.

What lies behind the end is judged as Apache Kafka 4.3.1 does (K-BATCHES, and measured): junk
behind a gzip stream or an lz4 frame is ignored, a second gzip stream goes on with the records, a
second lz4 frame is ignored too. An lz4 frame whose blocks depend on each other is none for Kafka,
and an empty zstd payload inflates to nothing.

The library is imported when the first compressed batch comes, or by `load`, so that no client waits
for it: a simulation never sees such a batch, and runs where there is no such library.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from struct import Struct
from typing import TypeAlias

from ottla.log.errors import InflateError
from ottla.log.lz4_frame import Lz4Block, lz4_blocks

XERIAL_MAGIC = b"\x82SNAPPY\x00"
"""Start of the block framing that Java clients put around snappy (xerial snappy-java)."""

PIECE_BYTES = 64 * 1024
"""What is inflated at once where the codec leaves the choice."""
MOST_AT_ONCE = 16 * 1024 * 1024
"""Where the library has to inflate all in one go, it may inflate to so many bytes: some 30 ms."""

Piece: TypeAlias = tuple[bytes, int]
"""Inflated bytes, and how many bytes were worked on for them."""

_FED_BYTES = 16 * 1024
"""What zlib is given at once: it copies what it leaves."""
_BLOCK_LENGTH = Struct(">i")
_XERIAL_HEADER_BYTES = 16
_GZIP = 16 + zlib.MAX_WBITS
"""zlib's window size for gzip streams."""
_GZIP_MAGIC = b"\x1f\x8b\x08"
_SNAPPY_RATIO, _LZ4_RATIO = 22, 255
"""More than a byte of a block can inflate to."""
_SLACK = 64
_FIRST_GUESS_BYTES = 64 * 1024
_BUFFER_FULL = "failed to write whole buffer"
"""What the library says where the input goes on beyond the buffer."""


def load() -> None:
    """Import what decompresses, now."""
    import_module("cramjam")


def inflated(codec: int, data: memoryview, limit: int) -> Iterator[Piece]:
    """The records in `data`, piece by piece, at most `limit` bytes of them. Raises
    `InflateError`."""
    inflate_codec = _INFLATE.get(codec)
    if inflate_codec is None:
        raise InflateError(f"codec {codec} does not exist")
    left = limit
    for piece in inflate_codec(data, limit):
        left -= len(piece[0])
        if left < 0:
            raise InflateError(f"more than {limit} bytes of records")
        yield piece


def inflate(codec: int, data: memoryview, limit: int) -> bytes:
    """All of it, in one go. Raises `InflateError`."""
    return b"".join(piece for piece, _ in inflated(codec, data, limit))


def _plain(data: memoryview, _limit: int) -> Iterator[Piece]:
    yield bytes(data), len(data)


# ---- gzip


def _gzip(data: memoryview, _limit: int) -> Iterator[Piece]:
    fed, rest = 0, b""
    first = True
    while True:
        if len(rest) < len(_GZIP_MAGIC):
            rest, fed = rest + data[fed : fed + _FED_BYTES], fed + _FED_BYTES
        if not first and not rest.startswith(_GZIP_MAGIC):
            return
        first = False
        stream = zlib.decompressobj(_GZIP)
        while not stream.eof:
            if not rest:
                rest, fed = bytes(data[fed : fed + _FED_BYTES]), fed + _FED_BYTES
            try:
                piece = stream.decompress(rest, PIECE_BYTES)
            except zlib.error as error:
                raise InflateError(f"not decompressible: {error}") from error
            if not (rest or piece or stream.eof):
                raise InflateError("a gzip stream that is cut off")
            rest = stream.unconsumed_tail
            yield piece, len(piece)
        rest = stream.unused_data


# ---- snappy


def _snappy_block(block: memoryview, limit: int) -> Piece:
    import cramjam

    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > min(limit, MOST_AT_ONCE, _SNAPPY_RATIO * len(block) + _SLACK):
            raise InflateError(f"a snappy block of {len(block)} bytes that claims {size}")
        return bytes(cramjam.snappy.decompress_raw(block)), size
    except cramjam.DecompressionError as error:
        raise InflateError(f"not decompressible: {error}") from error


def _snappy(data: memoryview, limit: int) -> Iterator[Piece]:
    if data[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        yield _snappy_block(data, limit)
        return
    position = _XERIAL_HEADER_BYTES
    while position < len(data):
        if len(data) - position < _BLOCK_LENGTH.size:
            raise InflateError(f"{len(data) - position} bytes behind the last snappy block")
        length = _BLOCK_LENGTH.unpack_from(data, position)[0]
        position += _BLOCK_LENGTH.size
        if not 0 <= length <= len(data) - position:
            raise InflateError(f"a snappy block of {length} of {len(data) - position} bytes")
        yield _snappy_block(data[position : position + length], limit)
        position += length


# ---- lz4


def _lz4(data: memoryview, _limit: int) -> Iterator[Piece]:
    buffer = bytearray()
    for block in lz4_blocks(data):
        if block.stored and block.checksum is None:
            yield bytes(block.data), len(block.data)
            continue
        wanted = min(block.most, _LZ4_RATIO * len(block.data) + _SLACK)
        if len(buffer) < wanted:
            buffer = bytearray(wanted)
        size = _lz4_block(block, memoryview(buffer)[:wanted])
        yield bytes(memoryview(buffer)[:size]), max(size, len(block.data))


def _lz4_block(block: Lz4Block, buffer: memoryview) -> int:
    """Inflate one block into `buffer`; returns its size."""
    import cramjam

    try:
        if block.checksum is None:
            return int(cramjam.lz4.decompress_block_into(block.data, buffer))
        return int(cramjam.lz4.decompress_into(block.alone(), buffer))
    except cramjam.DecompressionError as error:
        raise InflateError(f"not decompressible: {error}") from error


# ---- zstd


def _zstd(data: memoryview, limit: int) -> Iterator[Piece]:
    """The library wants a buffer for all; it fills one that is too small before it says so."""
    import cramjam

    if not data:
        return
    most = min(limit, MOST_AT_ONCE)
    size = min(most, max(_FIRST_GUESS_BYTES, 4 * len(data)))
    while True:
        buffer = bytearray(size)
        try:
            found = int(cramjam.zstd.decompress_into(data, buffer))
        except cramjam.DecompressionError as error:
            if size == most or _BUFFER_FULL not in str(error):
                raise InflateError(f"not decompressible into {size} bytes: {error}") from error
            yield b"", size
            size = min(most, 8 * size)
        else:
            yield bytes(memoryview(buffer)[:found]), size
            return


_INFLATE: dict[int, Callable[[memoryview, int], Iterator[Piece]]] = {
    0: _plain,
    1: _gzip,
    2: _snappy,
    3: _lz4,
    4: _zstd,
}
