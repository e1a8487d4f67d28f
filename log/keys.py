"""All keys of a node's LMDB folder, and the values under them.

Keys are one letter and big-endian numbers, so that LMDB's byte order is the order of the log.

    meta      "m" name
        may be replaced at any time; FORMAT and NODE are written once
        name: UTF-8
        value: bytes as given to `put_meta`

    state     "s" group
        replaced with every change of its group; exists exactly as long as the group does
        group: uint64
        value: checked msgpack array: term, vote, first_index, last_index, synced_to

    snapshot  "p" group
        replaced by a newer one
        group: uint64
        value: checked msgpack array: index, term, voters, data

    chunk     "e" group index
        written once; rewritten shorter when a truncation falls inside, deleted by truncation,
        compaction and deletion of the group
        group: uint64, index of the first entry in it: uint64
        value: entries with consecutive indexes, joined (`ottla.log.codec`)

*Checked* means: 4 bytes of CRC-32C before the value. A chunk whose entries are all below
`first_index` is garbage that compaction has not deleted yet.
"""

from __future__ import annotations

from struct import Struct

import msgpack

from ottla.log.checksum import crc32c
from ottla.log.errors import DecodeError
from ottla.log.types import Unpacked
from ottla.raft.types import GroupId, LogIndex

FORMAT_VERSION = b"1"
"""Must change whenever the layout above changes."""

META = b"m"
STATE = b"s"
SNAPSHOT = b"p"
CHUNK = b"e"

FORMAT_KEY = META + b"FORMAT"
NODE_KEY = META + b"NODE"

_GROUP = Struct(">cQ")
_CHUNK = Struct(">cQQ")
_CRC = Struct(">I")
GROUP_KEY_BYTES = _GROUP.size
CHUNK_KEY_BYTES = _CHUNK.size
LAST_INDEX: LogIndex = (1 << 64) - 1
"""Larger than every index."""


def meta_key(name: str) -> bytes:
    """The key of the node value `name`."""
    return META + name.encode()


def state_key(group: GroupId) -> bytes:
    """The key of the state of `group`."""
    return _GROUP.pack(STATE, group)


def snapshot_key(group: GroupId) -> bytes:
    """The key of the snapshot of `group`."""
    return _GROUP.pack(SNAPSHOT, group)


def chunk_key(group: GroupId, index: LogIndex) -> bytes:
    """The key of the chunk that begins with entry `index` of `group`."""
    return _CHUNK.pack(CHUNK, group, index)


def group_of(key: bytes | memoryview) -> GroupId:
    """The group of a state or snapshot key."""
    return int(_GROUP.unpack(key)[1])


def chunk_index(key: bytes | memoryview, group: GroupId) -> LogIndex | None:
    """Index of the first entry of a chunk of `group`; None if the key is not a chunk of `group`."""
    if len(key) != CHUNK_KEY_BYTES:
        return None
    kind, of_group, index = _CHUNK.unpack(key)
    return int(index) if kind == CHUNK and of_group == group else None


def pack_checked(fields: tuple[object, ...]) -> bytes:
    """A checked msgpack array."""
    packed: bytes = msgpack.packb(fields)
    return _CRC.pack(crc32c(packed)) + packed


def unpack_checked(value: bytes | memoryview, length: int) -> list[Unpacked]:
    """The `length` fields of a checked value. Raises `DecodeError` if the value is damaged."""
    view = memoryview(value)
    packed = view[_CRC.size :]
    if len(view) < _CRC.size or crc32c(packed) != _CRC.unpack_from(view)[0]:
        raise DecodeError("checksum does not match")
    fields = msgpack.unpackb(packed)
    if not isinstance(fields, list) or len(fields) != length:
        raise DecodeError(f"{length} fields expected")
    return fields
