"""Reads and writes one group on disk inside a transaction, under the keys of `ottla.log.keys`.

New entries of a group are stored in chunks of about 64 KiB, one key each, because a key costs more
than a kilobyte of value does. The caller begins and ends the transaction, and runs it again if it
did not fit into the map. No return value points into the transaction's memory, except where a
docstring says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ottla.log import keys
from ottla.log.codec import decode_entries, encode_entries
from ottla.log.errors import CorruptLogError, DecodeError
from ottla.log.group_tail import GroupChange
from ottla.log.recovery import StoredRecord
from ottla.log.store import StoredGroup
from ottla.raft.types import (
    ENTRY_OVERHEAD_BYTES,
    Entry,
    GroupId,
    HardState,
    LogIndex,
    Snapshot,
    SnapshotMeta,
)

CHUNK_BYTES = 64 * 1024
"""Largest size of a chunk; a chunk of a single entry may be larger."""


class Cursor(Protocol):
    """A position among the sorted keys of a transaction (`lmdb.Cursor`). A move returns False if
    there is no such key."""

    def set_range(self, key: bytes) -> bool:
        """Move to the first key that is equal to `key` or larger."""

    def last(self) -> bool:
        """Move to the last key."""

    def next(self) -> bool:
        """Move to the next key."""

    def prev(self) -> bool:
        """Move to the previous key."""

    def key(self) -> bytes | memoryview:
        """The key at this position."""

    def value(self) -> bytes | memoryview:
        """The value at this position, valid until the transaction ends or writes."""

    def delete(self) -> bool:
        """Delete the key and value at this position and move to the next key."""


class Transaction(Protocol):
    """A transaction (`lmdb.Transaction`)."""

    def get(self, key: bytes) -> bytes | memoryview | None:
        """The value under `key`, or None."""

    def put(self, key: bytes, value: bytes) -> bool:
        """Store `value` under `key`, replacing an older one."""

    def delete(self, key: bytes) -> bool:
        """Delete a key. Returns whether it existed."""

    def cursor(self) -> Cursor:
        """A new cursor."""


class DiskGroup:
    """A group's state record: `StoredGroup` without the snapshot, and the synced mark."""

    __slots__ = ("first_index", "group", "hard_state", "last_index", "synced_to")

    def __init__(self, group: GroupId, fields: list[int]) -> None:
        term, vote, self.first_index, self.last_index, self.synced_to = fields
        self.group = group
        self.hard_state = HardState(term, vote)

    def stored(self, snapshot: SnapshotMeta | None) -> StoredGroup:
        """The group as `LogStore.groups` returns it."""
        return StoredGroup(self.group, self.hard_state, snapshot, self.first_index, self.last_index)


# ---- writing


def write_change(txn: Transaction, change: GroupChange, durable: bool) -> None:
    """Write one change of a group.

    `durable`: this transaction's commit is a sync, so the synced mark becomes the last index.
    Compaction only moves `first_index`; `delete_compacted` deletes the entries later.
    """
    group = change.group
    if change.deleted or change.wiped:
        _drop_from(txn, group, 0)
        txn.delete(keys.snapshot_key(group))
    if change.deleted:
        txn.delete(keys.state_key(group))
        return
    before = read_state(txn, group)
    if change.cut_from is not None:
        if before is not None and not change.wiped and change.cut_from <= before.last_index:
            _drop_from(txn, group, change.cut_from)
        _put_chunks(txn, group, change.entries)
    if change.snapshot is not None:
        meta = change.snapshot.meta
        fields = (meta.index, meta.term, meta.voters, change.snapshot.data)
        txn.put(keys.snapshot_key(group), keys.pack_checked(fields))
    synced_to = change.last_index if durable else _mark_left(before, change)
    write_state(txn, group, change.hard_state, (change.first_index, change.last_index, synced_to))


def write_state(
    txn: Transaction,
    group: GroupId,
    hard_state: HardState,
    bounds: tuple[LogIndex, LogIndex, LogIndex],
) -> None:
    """Put a group's state record; `bounds` are first index, last index and synced mark."""
    fields = (hard_state.term, hard_state.vote, *bounds)
    txn.put(keys.state_key(group), keys.pack_checked(fields))


def settle(txn: Transaction, found: DiskGroup, last: LogIndex, durable: bool) -> None:
    """After recovery: drop all entries behind `last` and write the state record. `durable`: this
    transaction's commit is a sync, which also covers what earlier processes wrote."""
    _drop_from(txn, found.group, last + 1)
    synced_to = last if durable else min(found.synced_to, last)
    write_state(txn, found.group, found.hard_state, (found.first_index, last, synced_to))


def delete_compacted(
    txn: Transaction, group: GroupId, bounds: tuple[LogIndex, LogIndex], limit: int
) -> bool:
    """Delete up to `limit` chunks whose entries are all compacted. True when none is left.

    `bounds`: first and last index of the log. A chunk is deleted if the next one begins at or below
    the first index, or if the log is empty.
    """
    first_index, last_index = bounds
    starts: list[LogIndex] = []
    for start, _ in _chunks(txn, group, 0):
        if start > first_index or len(starts) > limit:
            break
        starts.append(start)
    if len(starts) <= limit and last_index < first_index:
        starts.append(keys.LAST_INDEX)
    for start in starts[:-1]:
        txn.delete(keys.chunk_key(group, start))
    return len(starts) <= limit


def _mark_left(before: DiskGroup | None, change: GroupChange) -> LogIndex:
    """The synced mark after a commit that does not sync."""
    if before is None or change.wiped:
        return change.first_index - 1
    if change.cut_from is None:
        return before.synced_to
    return min(before.synced_to, change.cut_from - 1)


def _put_chunks(txn: Transaction, group: GroupId, entries: list[Entry]) -> None:
    start, size = 0, 0
    for position, entry in enumerate(entries):
        length = len(entry.payload)
        if size and size + length > CHUNK_BYTES:
            _put_chunk(txn, group, entries[start:position])
            start, size = position, 0
        size += length + ENTRY_OVERHEAD_BYTES
    if start < len(entries):
        _put_chunk(txn, group, entries[start:] if start else entries)


def _put_chunk(txn: Transaction, group: GroupId, entries: list[Entry]) -> None:
    txn.put(keys.chunk_key(group, entries[0].index), encode_entries(entries))


def _drop_from(txn: Transaction, group: GroupId, first: LogIndex) -> None:
    """Delete entries from `first` on. If `first` is inside a chunk, that chunk is written again,
    shorter."""
    cursor = txn.cursor()
    if cursor.set_range(keys.chunk_key(group, first)):
        while keys.chunk_index(cursor.key(), group) is not None and cursor.delete():
            pass
    start = _seek(cursor, group, first)
    if start is None:
        return
    kept: list[Entry] = []
    try:
        # Count positions, as recovery does: the index in a misplaced entry may be any number.
        for entry in decode_entries(cursor.value()):
            if start + len(kept) == first:
                break
            kept.append(entry)
        else:
            return
    except DecodeError as error:
        if start + len(kept) != first:
            raise CorruptLogError(group, start + len(kept), str(error)) from error
    _put_chunk(txn, group, kept)


# ---- reading


def read_value(txn: Transaction, key: bytes) -> bytes | None:
    """A copy of the value under `key`; None if there is none."""
    value = txn.get(key)
    return None if value is None else bytes(value)


def read_values(txn: Transaction) -> dict[str, bytes]:
    """The node's own values, as given to `put_meta`."""
    found: dict[str, bytes] = {}
    cursor = txn.cursor()
    more = cursor.set_range(keys.META)
    while more and bytes(cursor.key())[:1] == keys.META:
        key = bytes(cursor.key())
        if key not in (keys.FORMAT_KEY, keys.NODE_KEY):
            found[key[len(keys.META) :].decode(errors="replace")] = bytes(cursor.value())
        more = cursor.next()
    return found


def read_state(txn: Transaction, group: GroupId) -> DiskGroup | None:
    """A group's state record. Raises `CorruptLogError` when it is damaged."""
    value = txn.get(keys.state_key(group))
    if value is None:
        return None
    try:
        return DiskGroup(group, keys.unpack_checked(value, 5))
    except DecodeError as error:
        raise CorruptLogError(group, 0, f"state: {error}") from error


def read_groups(txn: Transaction) -> list[DiskGroup]:
    """All groups, in order of their ids. Raises `CorruptLogError` if a state record is damaged, if
    a group has entries or a snapshot but no state record, or if a key has a wrong length."""
    groups: dict[GroupId, DiskGroup] = {}
    for group in _groups_under(txn, keys.STATE, keys.GROUP_KEY_BYTES):
        found = read_state(txn, group)
        assert found is not None, f"group {group} has a key and no value"
        groups[group] = found
    for group in _groups_under(txn, keys.CHUNK, keys.CHUNK_KEY_BYTES):
        if group not in groups:
            raise CorruptLogError(group, 0, "entries without a state")
    for group in _groups_under(txn, keys.SNAPSHOT, keys.GROUP_KEY_BYTES):
        if group not in groups:
            raise CorruptLogError(group, 0, "a snapshot without a state")
    return list(groups.values())


def _groups_under(txn: Transaction, kind: bytes, length: int) -> Iterator[GroupId]:
    """The groups that have keys of this kind, each once. Raises `CorruptLogError` if a key does not
    have `length` bytes."""
    cursor = txn.cursor()
    more = cursor.set_range(kind)
    while more and bytes(cursor.key())[:1] == kind:
        key = bytes(cursor.key())
        if len(key) != length:
            raise CorruptLogError(0, 0, f"key {key!r} is none of a log")
        group = keys.group_of(key[: keys.GROUP_KEY_BYTES])
        yield group
        if kind == keys.CHUNK:
            more = cursor.set_range(keys.chunk_key(group, keys.LAST_INDEX))
        else:
            more = cursor.next()


def read_snapshot(txn: Transaction, group: GroupId) -> Snapshot | None:
    """A group's snapshot. Raises `CorruptLogError` when it is damaged."""
    value = txn.get(keys.snapshot_key(group))
    if value is None:
        return None
    try:
        index, term, voters, data = keys.unpack_checked(value, 4)
    except DecodeError as error:
        raise CorruptLogError(group, 0, f"snapshot: {error}") from error
    return Snapshot(SnapshotMeta(index, term, tuple(voters), len(data)), data)


def read_entries(
    txn: Transaction, group: GroupId, first: LogIndex, last: LogIndex, max_bytes: int
) -> list[Entry]:
    """Entries from `first` on, up to `last`: at least one, and as many more as fit into
    `max_bytes`.

    Raises `CorruptLogError` if one of them is missing or damaged.
    """
    found: list[Entry] = []
    for record in stored_records(txn, group, first):
        entry, expected = record.entry, first + len(found)
        if entry is None or entry.index != expected:
            raise CorruptLogError(group, expected, f"found {record!r:.80} instead")
        max_bytes -= len(entry.payload) + ENTRY_OVERHEAD_BYTES
        if found and max_bytes < 0:
            return found
        found.append(entry)
        if entry.index == last:
            return found
    raise CorruptLogError(group, first + len(found), f"missing: the log should reach {last}")


def stored_records(txn: Transaction, group: GroupId, first: LogIndex) -> Iterator[StoredRecord]:
    """The records of a group on disk from `first` on. In a damaged chunk, everything from the first
    damaged entry on counts as one damaged record."""
    for start, value in _chunks(txn, group, first):
        index = start
        try:
            for entry in decode_entries(value):
                if index >= first:
                    yield StoredRecord(index, entry)
                index += 1
        except DecodeError:
            yield StoredRecord(max(index, first), None)


def _chunks(
    txn: Transaction, group: GroupId, first: LogIndex
) -> Iterator[tuple[LogIndex, bytes | memoryview]]:
    """Chunks of a group, from the one that holds entry `first` on: the index of the first entry,
    and the value, which is valid until the transaction ends or writes."""
    cursor = txn.cursor()
    start = _seek(cursor, group, first + 1)
    if start is None and cursor.set_range(keys.chunk_key(group, first)):
        start = keys.chunk_index(cursor.key(), group)
    while start is not None:
        yield start, cursor.value()
        start = keys.chunk_index(cursor.key(), group) if cursor.next() else None


def _seek(cursor: Cursor, group: GroupId, first: LogIndex) -> LogIndex | None:
    """Move to the last chunk of a group that begins before `first`. Returns the index of its first
    entry; None if there is no such chunk."""
    before = cursor.prev() if cursor.set_range(keys.chunk_key(group, first)) else cursor.last()
    return keys.chunk_index(cursor.key(), group) if before else None
