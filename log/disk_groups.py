"""What one transaction does to, or reads of, a group on disk, in terms of `ottla.log.keys`.

New entries of a group go under few keys, in chunks of about 64 KiB, because a key costs more than a
kilobyte of value does. Everything here works inside a transaction that somebody else begins, ends
and, when it did not fit the map, runs again; nothing that is returned points into it.
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
"""Size at which a chunk is closed; a single entry may be larger."""


class Cursor(Protocol):
    """A place among the sorted keys of a transaction (`lmdb.Cursor`)."""

    def set_range(self, key: bytes) -> bool:
        """Go to the first key at or behind `key`."""

    def last(self) -> bool:
        """Go to the last key."""

    def next(self) -> bool:
        """Go on by one."""

    def prev(self) -> bool:
        """Go back by one."""

    def key(self) -> bytes | memoryview:
        """The key here."""

    def value(self) -> bytes | memoryview:
        """The value here, valid until the transaction ends or writes."""

    def delete(self) -> bool:
        """Delete what is here and go on by one."""


class Transaction(Protocol):
    """A transaction (`lmdb.Transaction`)."""

    def get(self, key: bytes) -> bytes | memoryview | None:
        """The value under `key`, or None."""

    def put(self, key: bytes, value: bytes) -> bool:
        """Put a value in the place of the one under `key`."""

    def delete(self, key: bytes) -> bool:
        """Delete a key; whether it was there."""

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
        """The group as `LogStore.groups` names it."""
        return StoredGroup(self.group, self.hard_state, snapshot, self.first_index, self.last_index)


# ---- writing


def write_change(txn: Transaction, change: GroupChange, durable: bool) -> None:
    """Bring a group from its state before `change` to its state after it.

    `durable`: this transaction's commit is a sync, so the synced mark goes to the last entry.
    Compaction only moves `first_index`; `delete_compacted` deletes.
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
    """Recovery: the log ends with `last`. `durable`: this transaction's commit is a sync, of all
    that earlier processes wrote as well."""
    _drop_from(txn, found.group, last + 1)
    synced_to = last if durable else min(found.synced_to, last)
    write_state(txn, found.group, found.hard_state, (found.first_index, last, synced_to))


def delete_compacted(
    txn: Transaction, group: GroupId, bounds: tuple[LogIndex, LogIndex], limit: int
) -> bool:
    """Delete up to `limit` chunks whose entries all lie below the log; True when none is left.

    `bounds` are first and last index. A chunk goes when the next one begins at or below the first
    index, or when the log is empty.
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
    """Delete entries from `first` on; a chunk that `first` falls into is written again, shorter."""
    cursor = txn.cursor()
    if cursor.set_range(keys.chunk_key(group, first)):
        while keys.chunk_index(cursor.key(), group) is not None and cursor.delete():
            pass
    start = _seek(cursor, group, first)
    if start is None:
        return
    kept: list[Entry] = []
    try:
        # By their places, as recovery counts them: a misplaced entry may bear any index.
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
    """A copy of the value under `key`, None without one."""
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
    """Every group by id. Raises `CorruptLogError` also for entries or a snapshot of a group without
    a state, and for a key of another length than such keys have."""
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
    """The groups that have keys of a kind, each once. The keys are `length` bytes long."""
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
    """Entries `first .. last`, at least one and as many more as fit `max_bytes`.

    All of them are on disk. Raises `CorruptLogError` when one is not, or is damaged.
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
    """What lies on disk of a group from `first` on; where a chunk is damaged, so is its rest."""
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
    """Chunks of a group, from the one that holds entry `first` on."""
    cursor = txn.cursor()
    start = _seek(cursor, group, first + 1)
    if start is None and cursor.set_range(keys.chunk_key(group, first)):
        start = keys.chunk_index(cursor.key(), group)
    while start is not None:
        yield start, cursor.value()
        start = keys.chunk_index(cursor.key(), group) if cursor.next() else None


def _seek(cursor: Cursor, group: GroupId, first: LogIndex) -> LogIndex | None:
    """Go to the last chunk of a group that begins before `first`; its start, None without one."""
    before = cursor.prev() if cursor.set_range(keys.chunk_key(group, first)) else cursor.last()
    return keys.chunk_index(cursor.key(), group) if before else None
