"""Entries as bytes, for the LMDB store and for the wire between nodes.

| field | bytes | content |
|---|---|---|
| checksum | 4 | CRC-32C of all that follows; of a batch's payload only the first 21 bytes |
| header length | 1 | n |
| header | n | msgpack array: index, term, kind, payload length |
| payload | | a record batch with its stamp, or the entry's bytes |

A batch has its own CRC-32C over everything behind its 21st byte. So together the two checksums
cover each byte once, and no record is read again when a batch gets its stamp. An entry says how
long it is, so several entries are simply joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct

import msgpack

from ottla.log.checksum import crc32c
from ottla.log.errors import DecodeError
from ottla.log.record_batch import crc_matches, read_batch
from ottla.log.types import CRC_COVERS_FROM, STAMP_BYTES, RecordBatch
from ottla.raft.types import Entry, EntryKind

_CHECKSUM = Struct(">I")
_PREFIX = Struct(">IB")
_pack_header = msgpack.Packer(autoreset=True).pack
_unpackb = msgpack.unpackb
_HEADER_FIELDS = 4
_KINDS = {int(kind): kind for kind in EntryKind}
_BEFORE_CRC = slice(STAMP_BYTES, CRC_COVERS_FROM)


def _parts(entry: Entry) -> tuple[bytes, bytes, bytes | memoryview]:
    """The parts of an encoded entry, to be joined; the records of a batch are a view, not a
    copy."""
    payload = entry.payload
    header = _pack_header((entry.index, entry.term, int(entry.kind), len(payload)))
    summed = bytes((len(header),)) + header
    if isinstance(payload, RecordBatch):
        stamp, rest = payload.parts()
        checksum = crc32c(payload.data[_BEFORE_CRC], crc32c(stamp, crc32c(summed)))
        return _CHECKSUM.pack(checksum) + summed, stamp, rest
    assert isinstance(payload, bytes), f"payload of {entry.kind!r} is {type(payload)}"
    return _CHECKSUM.pack(crc32c(payload, crc32c(summed))) + summed, b"", payload


def encode_entries(entries: Sequence[Entry]) -> bytes:
    """The encoded entries, joined; each payload is copied once."""
    return b"".join([part for entry in entries for part in _parts(entry)])


def decode_entries(data: bytes | memoryview) -> Iterator[Entry]:
    """The entries in `data`, one by one. Raises `DecodeError` at the first damaged one."""
    view = memoryview(data)
    position = 0
    while position < len(view):
        entry, position = _decode_at(view, position)
        yield entry


def _decode_at(view: memoryview, start: int) -> tuple[Entry, int]:
    """The entry at `start` and where it ends. Payload bytes are copied out of `view`."""
    if len(view) - start < _PREFIX.size:
        raise DecodeError(f"{len(view) - start} bytes are no entry")
    checksum, header_length = _PREFIX.unpack_from(view, start)
    body = start + _PREFIX.size
    index, term, kind, length = _unpack_header(view[body : body + header_length])
    payload = body + header_length
    end = payload + length
    if length < 0 or end > len(view):
        raise DecodeError(f"entry {index} ends at {end} of {len(view)} bytes")
    summed_end = min(end, payload + CRC_COVERS_FROM) if kind is EntryKind.BATCH else end
    if crc32c(view[start + _CHECKSUM.size : summed_end]) != checksum:
        raise DecodeError(f"checksum of entry {index} does not match")
    data = bytes(view[payload:end])
    return Entry(
        index, term, kind, _read_batch(data, index) if kind is EntryKind.BATCH else data
    ), end


def _unpack_header(header: memoryview) -> tuple[int, int, EntryKind, int]:
    try:
        fields = _unpackb(header)
    except ValueError as error:
        raise DecodeError(f"header of an entry: {error}") from error
    if fields.__class__ is not list or len(fields) != _HEADER_FIELDS:
        raise DecodeError(f"header of an entry is {fields!r:.80}")
    index, term, kind, length = fields
    whole = index.__class__ is int is term.__class__ and kind.__class__ is int is length.__class__
    if not whole or kind not in _KINDS:
        raise DecodeError(f"header of an entry is {fields!r:.80}")
    return index, term, _KINDS[kind], length


def _read_batch(data: bytes, index: int) -> RecordBatch:
    batch = read_batch(data)
    if not isinstance(batch, RecordBatch) or len(batch.data) != len(data):
        raise DecodeError(f"payload of entry {index} is no record batch")
    if not crc_matches(batch):
        raise DecodeError(f"CRC of the batch at index {index} does not match")
    return batch
