"""Reads the header of a produced record batch, and checks its bytes.

**Theory.** Kafka checks a batch in a fixed order (K-CHECKS, measured on Apache Kafka 4.3.1), and
the first check that fails decides the answer. The checks of the bytes are in two groups; the
broker's own checks (acks, leader, in-sync replicas) come between them:

* *structural* (steps 1 and 5): there must be exactly one version 2 batch. `read_batch` does these,
  because without them there is no header to read;
* *content* (steps 13 to 17): base offset, size limit, length of the header, CRC-32C, codec, counts,
  control bit, sequence. `check_batch` does these once the broker knows that it may append.

A batch that ends inside its header is found by the structural checks, but Kafka refuses it only
with the content checks: `read_beginning` reads as much of the header as there is.

Both groups are tables with one row per check. A row names a *defect*; a table of the broker says
which Kafka code a defect becomes, and for how many partitions. Checks of the records (step 18) need
decompression and are in `ottla.log.inspection`.

**Hot path.** A well-formed batch costs one comparison of sizes, one unpack, one CRC and one test of
its fields. The tables are used only to find out what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, unique
from struct import Struct
from typing import NamedTuple

from ottla.log.checksum import crc32c
from ottla.log.types import (
    BATCH_HEADER_BYTES,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_COVERS_FROM,
    BatchIdentity,
    Millis,
    RecordBatch,
)

HEADER = Struct(">qiibIhiqqqhii")
"""Version 2 header (Kafka protocol guide, "Record Batch")."""
HEADER_FIELDS = (
    "base_offset",
    "batch_length",
    "partition_leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
)
"""Its fields, in the order of their bytes."""

MAGIC = 2
SEQUENCE_MASK = 0x7FFFFFFF
MAX_CODEC = 4

_LENGTH_ENDS = 12
"""Bytes of base_offset and batch_length; batch_length counts the bytes after these."""
_MAGIC_AT = 16
_MIN_LENGTH_FIELD = 14
"""Kafka's smallest record overhead (magic 0): a smaller length is malformed in any version."""
_LENGTH = Struct(">i")
_CRC_AT = 17
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_MAX_TIMESTAMP_AT = 35
_TIMESTAMP = Struct(">q")
_PRODUCER_ID_ENDS = 51
_LEAST_BYTES = 26
"""Of a batch of any version, with its length field."""
_KNOWN_ATTRIBUTES = 0x7F
"""Bits for codec, LogAppendTime, transactional, control, and Kafka's delete horizon."""

_unpack_header = HEADER.unpack_from


@unique
class BatchDefect(Enum):
    """What is wrong with the bytes of a produced batch. A table of the broker has the Kafka
    code."""

    BAD_LENGTH_FIELD = "length field below 14"
    UNKNOWN_MAGIC = "magic outside 0..2"
    NO_BATCH = "no complete batch"
    OLD_MAGIC = "magic 0 or 1"
    TOO_SHORT = "shorter than a version 2 header"
    MALFORMED_SECOND_BATCH = "a second batch with a bad length field or magic"
    SEVERAL_BATCHES = "more than one batch"
    BASE_OFFSET_NOT_ZERO = "base offset is not 0"
    TOO_LARGE = "larger than the limit"
    CRC_MISMATCH = "CRC-32C does not match"
    UNKNOWN_CODEC = "codec id outside 0..4"
    NEGATIVE_LAST_OFFSET_DELTA = "last offset delta below 0"
    NO_RECORDS = "record count below 1"
    COUNT_MISMATCH = "record count and last offset delta disagree"
    CONTROL_BATCH = "control batch from a client"
    NO_SEQUENCE = "producer id without a sequence"
    NOT_INFLATABLE = "compressed records that do not inflate"
    BROKEN_RECORDS = "records that do not make up the batch"
    ENDLESS_LENGTH = "a record length of more than five bytes"
    BAD_TIMES = "times of records out of range"
    WRONG_PLACES = "compressed records that are not numbered from 0"


class StructuralCheck(NamedTuple):
    """One row: `fails(data)` is called only if no row before it failed."""

    defect: BatchDefect
    fails: Callable[[bytes], bool]
    source: str


class ContentCheck(NamedTuple):
    """One row: `fails(batch, max_bytes)` is called only if no row before it failed."""

    defect: BatchDefect
    fails: Callable[[RecordBatch, int], bool]
    source: str


def _length_field(data: bytes, at: int = 0) -> int:
    return int(_LENGTH.unpack_from(data, at + 8)[0])


def _end_of_first(data: bytes) -> int:
    return _LENGTH_ENDS + _length_field(data)


def _has_second(data: bytes) -> bool:
    return len(data) - _end_of_first(data) >= _LENGTH_ENDS


def _second_is_malformed(data: bytes) -> bool:
    second = _end_of_first(data)
    if _length_field(data, second) < _MIN_LENGTH_FIELD:
        return True
    return len(data) - second > _MAGIC_AT and data[second + _MAGIC_AT] > MAGIC


def _second_is_whole(data: bytes) -> bool:
    second = _end_of_first(data)
    return len(data) - second >= _LENGTH_ENDS + _length_field(data, second)


def _crc_differs(batch: RecordBatch, _: int = 0) -> bool:
    return crc32c(memoryview(batch.data)[CRC_COVERS_FROM:]) != batch.crc


STRUCTURAL_CHECKS: tuple[StructuralCheck, ...] = (
    StructuralCheck(
        BatchDefect.NO_BATCH,
        lambda data: len(data) < _LENGTH_ENDS,
        "K-CHECKS 5: at least one batch; less than a length field is none",
    ),
    StructuralCheck(
        BatchDefect.BAD_LENGTH_FIELD,
        lambda data: _length_field(data) < _MIN_LENGTH_FIELD,
        "K-CHECKS 1, K-BATCHES: request-wide, also for 0 and negative lengths",
    ),
    StructuralCheck(
        BatchDefect.NO_BATCH,
        lambda data: len(data) <= _MAGIC_AT,
        "K-CHECKS 5: ends before the magic byte",
    ),
    StructuralCheck(
        BatchDefect.UNKNOWN_MAGIC,
        lambda data: data[_MAGIC_AT] > MAGIC,
        "K-CHECKS 1, K-BATCHES: request-wide; negative magics are above 127 here",
    ),
    StructuralCheck(
        BatchDefect.NO_BATCH,
        lambda data: len(data) < _end_of_first(data),
        "K-CHECKS 5: cut off before its end",
    ),
    StructuralCheck(
        BatchDefect.OLD_MAGIC,
        lambda data: data[_MAGIC_AT] < MAGIC,
        "K-CHECKS 5, K-BATCHES: magic 0 or 1 in v3 and later",
    ),
    StructuralCheck(
        BatchDefect.MALFORMED_SECOND_BATCH,
        lambda data: _has_second(data) and _second_is_malformed(data),
        "K-BATCHES: a malformed second batch, that partition only",
    ),
    StructuralCheck(
        BatchDefect.SEVERAL_BATCHES,
        lambda data: _has_second(data) and _second_is_whole(data),
        "K-CHECKS 5: exactly one batch; stray bytes that are no batch are trimmed",
    ),
    StructuralCheck(
        BatchDefect.TOO_SHORT,
        lambda data: _end_of_first(data) < BATCH_HEADER_BYTES,
        "K-CHECKS 15: length field 39..48, that partition only; below, see `names_producer`",
    ),
)
"""Steps 1 and 5, in Kafka's order."""

CONTENT_CHECKS: tuple[ContentCheck, ...] = (
    ContentCheck(
        BatchDefect.BASE_OFFSET_NOT_ZERO,
        lambda batch, _: batch.base_offset != 0,
        "K-CHECKS 13",
    ),
    ContentCheck(
        BatchDefect.TOO_LARGE,
        lambda batch, max_bytes: len(batch.data) > max_bytes,
        "K-CHECKS 14: max.message.bytes",
    ),
    ContentCheck(
        BatchDefect.TOO_SHORT,
        lambda batch, _: len(batch.data) < BATCH_HEADER_BYTES,
        "K-CHECKS 15: behind acks and base offset, before the CRC",
    ),
    ContentCheck(
        BatchDefect.CRC_MISMATCH,
        _crc_differs,
        "K-CHECKS 15",
    ),
    ContentCheck(
        BatchDefect.UNKNOWN_CODEC,
        lambda batch, _: batch.attributes & CODEC_MASK > MAX_CODEC,
        "K-CHECKS 16, K-BATCHES",
    ),
    ContentCheck(
        BatchDefect.NEGATIVE_LAST_OFFSET_DELTA,
        lambda batch, _: batch.last_offset_delta < 0,
        "K-CHECKS 17",
    ),
    ContentCheck(
        BatchDefect.NO_RECORDS,
        lambda batch, _: batch.record_count < 1,
        "K-CHECKS 17",
    ),
    ContentCheck(
        BatchDefect.COUNT_MISMATCH,
        lambda batch, _: batch.record_count != batch.last_offset_delta + 1,
        "K-CHECKS 17",
    ),
    ContentCheck(
        BatchDefect.CONTROL_BATCH,
        lambda batch, _: batch.attributes & CONTROL_BIT != 0,
        "K-CHECKS 17",
    ),
    ContentCheck(
        BatchDefect.NO_SEQUENCE,
        lambda batch, _: batch.base_sequence < 0 <= batch.producer_id,
        "K-CHECKS 17: base_sequence >= 0 when a producer id is set",
    ),
)
"""Steps 13 to 17, in Kafka's order."""

_UNUSUAL = CONTROL_BIT | 0x04
"""Bits for which the fast check is not enough: control, and codecs above lz4."""
_CONTENT = tuple((check.fails, check.defect) for check in CONTENT_CHECKS)


def read_batch(data: bytes) -> RecordBatch | BatchDefect:
    """Read the header of the one version 2 batch in `data`. Returns the structural defect if there
    is one.

    The batch keeps `data` itself, without a copy, unless stray bytes behind it must be cut off. Its
    stamp is read from the bytes: base offset 0 and leader epoch -1 from a producer, or those of a
    stored batch. Source: K-CHECKS 1 and 5, K-BATCHES.
    """
    if len(data) >= BATCH_HEADER_BYTES and data[_MAGIC_AT] == MAGIC:
        batch = RecordBatch(data, *_unpack_header(data))
        if batch.batch_length + _LENGTH_ENDS == len(data):
            return batch
    for check in STRUCTURAL_CHECKS:
        if check.fails(data):
            return check.defect
    return RecordBatch(data[: _end_of_first(data)], *_unpack_header(data))


def read_beginning(data: bytes) -> RecordBatch:
    """The first batch in `data`, which is TOO_SHORT. Fields that are missing are 0.

    Its record count is always 0, so that it takes no offsets; `check_batch` will refuse it.
    """
    first = data[: _end_of_first(data)]
    batch = RecordBatch(first, *_unpack_header(first.ljust(BATCH_HEADER_BYTES, b"\0")))
    batch.record_count = 0
    return batch


def names_producer(batch: RecordBatch) -> bool:
    """Whether the header is long enough to contain the producer id."""
    return len(batch.data) >= _PRODUCER_ID_ENDS


def begins_with_batch(data: bytes, *, as_far_as_producer: bool = True) -> bool:
    """Whether there is a whole batch at the beginning, of a version that exists, whose header goes
    as far as the producer id if that is asked for (in versions 0 and 1 there is none)."""
    if len(data) <= _MAGIC_AT or data[_MAGIC_AT] > MAGIC:
        return False
    far = as_far_as_producer and data[_MAGIC_AT] == MAGIC
    return (_PRODUCER_ID_ENDS if far else _LEAST_BYTES) <= _end_of_first(data) <= len(data)


def first_codec(data: bytes) -> int | None:
    """Codec id of the first batch in `data`; None if it is cut off or not of version 2. Bytes
    behind it are ignored."""
    end = _end_of_first(data) if len(data) > _MAGIC_AT else 0
    if end <= _MAGIC_AT or len(data) < end or data[_MAGIC_AT] != MAGIC:
        return None
    return data[CRC_COVERS_FROM + 1] & CODEC_MASK


def check_batch(batch: RecordBatch, max_bytes: int) -> BatchDefect | None:
    """The defect of the first content check that `batch` fails; None if it passes all.

    `max_bytes` is the largest batch that the topic accepts (max.message.bytes). Call it before the
    batch is stamped: step 13 requires base offset 0. Source: K-CHECKS 13 to 17.
    """
    if (
        batch.base_offset == 0
        and len(batch.data) <= max_bytes
        and not batch.attributes & _UNUSUAL
        and 0 < batch.record_count == batch.last_offset_delta + 1
        and (batch.producer_id < 0 or batch.base_sequence >= 0)
        and not _crc_differs(batch)
    ):
        return None  # the usual case: the same checks as in the table, in one expression
    for fails, defect in _CONTENT:
        if fails(batch, max_bytes):
            return defect
    return None


def resealed(batch: RecordBatch, attributes: int, max_timestamp: Millis) -> RecordBatch:
    """A copy of `batch` with these two header fields and a new CRC; it keeps the stamp.

    Unknown attribute bits are cleared, as Kafka does when it rewrites a header (measured).
    """
    head = bytearray(batch.data[:BATCH_HEADER_BYTES])
    rest = memoryview(batch.data)[BATCH_HEADER_BYTES:]
    _ATTRIBUTES.pack_into(head, CRC_COVERS_FROM, attributes & _KNOWN_ATTRIBUTES)
    _TIMESTAMP.pack_into(head, _MAX_TIMESTAMP_AT, max_timestamp)
    _CRC.pack_into(head, _CRC_AT, crc32c(rest, crc32c(memoryview(head)[CRC_COVERS_FROM:])))
    data = b"".join((head, rest))
    copy = RecordBatch(data, *_unpack_header(data))
    copy.stamp(batch.base_offset, batch.leader_epoch)
    return copy


def crc_matches(batch: RecordBatch) -> bool:
    """Whether the batch's CRC-32C fits its bytes."""
    return not _crc_differs(batch)


def identity(batch: RecordBatch) -> BatchIdentity | None:
    """Producer id, epoch and range of sequences; None for a batch without a producer id.

    Any negative producer id counts as none, as in Kafka (`hasProducerId`). Sequences count records
    and wrap from 2147483647 to 0, also inside a batch: they are numbers modulo 2**31.
    """
    known = batch.identity
    if known is not None:
        return known
    producer_id = batch.producer_id
    if producer_id < 0:
        return None
    first = batch.base_sequence
    last = (first + batch.last_offset_delta) & SEQUENCE_MASK
    batch.identity = BatchIdentity(producer_id, batch.producer_epoch, first, last)
    return batch.identity
