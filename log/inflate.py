"""Decompression of a batch's records in pieces; accepts and refuses what Apache Kafka does.

**Theory.** The bytes come from a client, and only their CRC was checked. For any malformed input
this module raises `InflateError` and no other error. Inflating stops at a limit, even if the input
is small.

A small batch may inflate to very many bytes, and all users share one event loop. So `inflated` is a
generator: its user may stop between two pieces and let others run, and it holds one piece at a
time. With each piece comes the number of bytes that were worked on for it. That may be more than
the piece has, because a block may inflate to nothing.

| codec | a piece |
|---|---|
| none | everything |
| gzip | `PIECE_BYTES` |
| lz4 frame; snappy in the framing of Java clients (xerial) | one block |
| snappy, one bare block; zstd | everything, at most `MOST_AT_ONCE` bytes |

The last two are inflated at once, because the library cannot stop in the middle
(docs/decisions/0018). The output buffer is only as large as the input could fill, because clearing
it costs time.

Bytes behind the end are judged as Apache Kafka 4.3.1 does it (K-BATCHES, and measured). Junk behind
a gzip stream or an lz4 frame is ignored, and so is a second lz4 frame; a second gzip stream
continues the records. An lz4 frame whose blocks depend on each other is refused. An empty zstd
payload inflates to nothing.

The library is imported for the first compressed batch, or earlier by `load`, so that no client has
to wait for it. A simulation never has a compressed batch, so it runs without the library.
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
"""Size of a piece where the codec allows any size."""
MOST_AT_ONCE = 16 * 1024 * 1024
"""Limit where the library has to inflate everything at once: about 30 ms of work."""

Piece: TypeAlias = tuple[bytes, int]
"""Inflated bytes, and how many bytes were worked on for them."""

_FED_BYTES = 16 * 1024
"""Bytes given to zlib per call: zlib copies those that it does not use."""
_BLOCK_LENGTH = Struct(">i")
_XERIAL_HEADER_BYTES = 16
_GZIP = 16 + zlib.MAX_WBITS
"""zlib's window size for gzip streams."""
_GZIP_MAGIC = b"\x1f\x8b\x08"
_SNAPPY_RATIO, _LZ4_RATIO = 22, 255
"""Upper bounds: one byte of a block inflates to fewer bytes than this."""
_SLACK = 64
_FIRST_GUESS_BYTES = 64 * 1024
_BUFFER_FULL = "failed to write whole buffer"
"""The library's message if the output does not fit into the buffer."""


def load() -> None:
    """Import the library that decompresses."""
    import_module("cramjam")


def inflated(codec: int, data: memoryview, limit: int) -> Iterator[Piece]:
    """The inflated records of `data`, in pieces. Raises `InflateError`, also if they have more than
    `limit` bytes."""
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
    """As `inflated`, as one value. Raises `InflateError`."""
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
    """The library needs one buffer for the whole output, whose size is not known. It fills a buffer
    that is too small and then fails; so try larger ones."""
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
