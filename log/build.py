"""Build record batches, for raw clients, benchmarks, demos and tests. Brokers never build one.

A batch is as a Kafka producer sends it: magic 2, base offset 0, leader epoch -1, a correct CRC-32C
(K-CHECKS; Kafka protocol guide, "Record Batch" and "Record"). The codec library is imported only by
the functions that compress; simulated clients do not compress, so they run without the library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from ottla.log.checksum import crc32c
from ottla.log.inflate import XERIAL_MAGIC
from ottla.log.record_batch import HEADER
from ottla.log.types import (
    CRC_COVERS_FROM,
    NO_PRODUCER_ID,
    Millis,
    ProducerEpoch,
    ProducerId,
)
from ottla.log.types import Sequence as SequenceNumber

Headers = Sequence[tuple[str, bytes | None]]


class Codec(IntEnum):
    """Compression codecs of a version 2 batch (attributes, bits 0 to 2)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class NewRecord(NamedTuple):
    """A record before it has an offset. `timestamp` None takes the batch's base timestamp."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp: Millis | None = None


_XERIAL_HEADER = XERIAL_MAGIC + Struct(">ii").pack(1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_ONE_BYTE = tuple(bytes((each,)) for each in range(0x80))
"""Ready varints of one byte: nearly all numbers in a record are that small."""
_BLOCK_LENGTH = Struct(">i")
_CRC = Struct(">I")
_CRC_AT = 17


def _gzip(data: bytes) -> bytes:
    import cramjam

    return bytes(cramjam.gzip.compress(data))


def _snappy_xerial(data: bytes) -> bytes:
    import cramjam

    blocks = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        blocks += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(blocks)


def _lz4_independent(data: bytes) -> bytes:
    """Compress into independent blocks: Kafka refuses a frame whose blocks depend on each other
    (measured on 4.3.1)."""
    import cramjam

    compressor = cramjam.lz4.Compressor(block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())


def _zstd(data: bytes) -> bytes:
    import cramjam

    return bytes(cramjam.zstd.compress(data))


_COMPRESS: dict[Codec, Callable[[bytes], bytes]] = {
    Codec.NONE: bytes,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy_xerial,
    Codec.LZ4: _lz4_independent,
    Codec.ZSTD: _zstd,
}


def varint(number: int) -> bytes:
    """A signed number of up to 64 bits as zigzag varint (Kafka protocol guide, "Varint")."""
    rest = (number << 1) ^ (number >> 63)
    if rest <= 0x7F:
        return _ONE_BYTE[rest]
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _nullable(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def _encode_record(record: NewRecord, offset_delta: int, timestamp_delta: int) -> bytes:
    parts = [
        b"\x00",
        varint(timestamp_delta),
        varint(offset_delta),
        _nullable(record.key),
        _nullable(record.value),
        varint(len(record.headers)),
    ]
    for name, value in record.headers:
        parts += (_nullable(name.encode()), _nullable(value))
    body = b"".join(parts)
    return varint(len(body)) + body


def build_batch(
    records: Sequence[bytes | NewRecord],
    *,
    producer_id: ProducerId = NO_PRODUCER_ID,
    producer_epoch: ProducerEpoch = -1,
    base_sequence: SequenceNumber = -1,
    codec: Codec = Codec.NONE,
    base_timestamp: Millis = 0,
    attributes: int = 0,
) -> bytes:
    """One version 2 batch of `records` (plain bytes are values), as a producer would send it.

    `attributes` is combined with the codec's bits. Times are ms since 1970; a record without a time
    gets `base_timestamp`, and the header's max_timestamp is the largest time. Raises `ValueError`
    if `records` is empty: Kafka's clients never send an empty batch.
    """
    if not records:
        raise ValueError("a batch holds at least one record, got 0")
    encoded: list[bytes] = []
    max_timestamp = base_timestamp
    for delta, item in enumerate(records):
        record = item if isinstance(item, NewRecord) else NewRecord(item)
        timestamp = base_timestamp if record.timestamp is None else record.timestamp
        max_timestamp = timestamp if delta == 0 else max(max_timestamp, timestamp)
        encoded.append(_encode_record(record, delta, timestamp - base_timestamp))
    payload = _COMPRESS[codec](b"".join(encoded))
    header = HEADER.pack(
        0,
        HEADER.size - 12 + len(payload),
        -1,
        2,
        0,
        attributes | codec,
        len(records) - 1,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    return seal(header + payload)


def seal(data: bytes) -> bytes:
    """`data` with its CRC-32C recomputed, for tests that change a header."""
    crc = crc32c(memoryview(data)[CRC_COVERS_FROM:])
    return data[:_CRC_AT] + _CRC.pack(crc) + data[CRC_COVERS_FROM:]
