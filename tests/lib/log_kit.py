"""Entries to store, stores to open and kill: what the tests of `log/` share.

A `StoreKit` is a medium with a store on it that can be killed or restarted; `KITS` lists every
store that the contract is held against. `lying_kit` is the negative control.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import lmdb

from ottla.log.build import build_batch, seal
from ottla.log.lmdb_store import LmdbStore
from ottla.log.memory_store import MemoryDisk, MemoryStore
from ottla.log.record_batch import HEADER, HEADER_FIELDS, read_batch
from ottla.log.store import LogStore, SyncJob, Write
from ottla.log.types import RecordBatch
from ottla.raft.types import Entry, EntryKind, HardState, Snapshot, SnapshotMeta

SMALL: dict[str, Any] = {"first_map_bytes": 1 << 20, "zero_step_bytes": 0}
"""LMDB settings that keep a test's folder small."""


def with_header(data: bytes, *, sealed: bool = True, **fields: int) -> bytes:
    """`data` with header fields replaced and, if `sealed`, the CRC made right again."""
    header = dict(zip(HEADER_FIELDS, HEADER.unpack_from(data), strict=True)) | fields
    changed = HEADER.pack(*header.values()) + data[HEADER.size :]
    return seal(changed) if sealed else changed


def parsed(data: bytes) -> RecordBatch:
    """`data` as a batch; it must be one."""
    batch = read_batch(data)
    assert isinstance(batch, RecordBatch), batch
    return batch


def batch_entry(
    index: int,
    term: int = 1,
    offset: int | None = None,
    *,
    values: Sequence[bytes] = (b"v",),
    timestamp: int = 0,
) -> Entry:
    """A batch at `index`, stamped with `offset` (by default index - 1) and its term."""
    batch = parsed(build_batch(values, base_timestamp=timestamp))
    batch.stamp(index - 1 if offset is None else offset, term)
    return Entry(index, term, EntryKind.BATCH, batch)


def command_entry(index: int, term: int = 1, data: bytes = b"command") -> Entry:
    """An entry that holds no record."""
    return Entry(index, term, EntryKind.COMMAND, data)


def run_of(first: int, last: int, term: int = 1) -> list[Entry]:
    """Batches `first .. last`, one record each."""
    return [batch_entry(index, term) for index in range(first, last + 1)]


def snapshot_at(index: int, term: int = 1, data: bytes = b"state") -> Snapshot:
    """A snapshot of three voters."""
    return Snapshot(SnapshotMeta(index, term, (1, 2, 3), len(data)), data)


def visible(entry: Entry) -> tuple[Any, ...]:
    """What of an entry must survive storage, as a value to compare."""
    payload = entry.payload
    if isinstance(payload, RecordBatch):
        payload = dataclasses.replace(payload, data=payload.stamped())
        return entry.index, entry.term, entry.kind, dataclasses.astuple(payload)
    return entry.index, entry.term, entry.kind, payload


def contents(store: LogStore) -> dict[int, tuple[Any, ...]]:
    """Everything a store shows, group by group, as a value to compare."""
    return {
        found.group: (
            found.hard_state,
            found.snapshot,
            store.snapshot(found.group),
            found.first_index,
            found.last_index,
            [visible(entry) for entry in store.scan(found.group)],
        )
        for found in store.groups()
    }


def sync(store: LogStore) -> None:
    """A whole sync, on this thread."""
    job = store.begin_sync()
    if job is not None:
        job.run()
        store.finish_sync(job)


class StoreKit:
    """A medium, the store on it, and ways to end that store."""

    def __init__(self, name: str, opener: Callable[[], LogStore], lose: Callable[[], None]):
        self.name = name
        self._opener = opener
        self._lose = lose
        self.store = opener()

    def crash(self) -> LogStore:
        """The process is killed and starts again: what was not synced is gone."""
        self.store.close()
        self._lose()
        self.store = self._opener()
        return self.store

    def restart(self) -> LogStore:
        """A clean stop and start."""
        sync(self.store)
        self.store.close()
        self.store = self._opener()
        return self.store

    def now_and_later(self) -> Iterator[LogStore]:
        """The store as it is, and after a restart."""
        yield self.store
        yield self.restart()


def memory_kit(_folder: Path) -> StoreKit:
    """In memory, syncs complete at once."""
    disk = MemoryDisk()
    return StoreKit("memory", lambda: MemoryStore(disk), disk.crash)


def deferred_memory_kit(_folder: Path) -> StoreKit:
    """In memory, each sync is a job."""
    disk = MemoryDisk()
    disk.defer_syncs = True
    return StoreKit("deferred", lambda: MemoryStore(disk), disk.crash)


def lmdb_kit(folder: Path, **settings: Any) -> StoreKit:
    """On disk, in small steps."""
    return StoreKit("lmdb", lambda: open_lmdb(folder, **settings), lambda: None)


def open_lmdb(folder: Path, **settings: Any) -> LmdbStore:
    """A store on disk with small steps."""
    return LmdbStore.open(folder, **(SMALL | settings))


def data_of(folder: Path) -> dict[bytes, bytes]:
    """Every key and value of a closed store."""
    with lmdb.open(str(folder), readonly=True) as env, env.begin() as txn:
        return {bytes(key): bytes(value) for key, value in txn.cursor()}


def change_lmdb(folder: Path, key: bytes, value: bytes | None) -> None:
    """Put a value into a closed store behind its back; None deletes."""
    with lmdb.open(str(folder)) as env, env.begin(write=True) as txn:
        assert txn.put(key, value) if value is not None else txn.delete(key)


def in_child(script: str) -> subprocess.CompletedProcess[str]:
    """Run `script` in a Python of its own."""
    run = [sys.executable, "-c", script]
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(run, env=environment, capture_output=True, text=True, check=False)


def uncached_lmdb_kit(folder: Path) -> StoreKit:
    """On disk, without a cache: what is durable is read back."""
    return lmdb_kit(folder, cache_bytes=0)


KITS: dict[str, Callable[[Path], StoreKit]] = {
    "memory": memory_kit,
    "deferred": deferred_memory_kit,
    "lmdb": lmdb_kit,
    "uncached": uncached_lmdb_kit,
}
"""Every store the contract is held against."""


class SyncDoesNothing(MemoryStore):
    """The negative control: answers that a sync is done, and does none."""

    def begin_sync(self) -> SyncJob | None:
        """Claim that everything is durable."""
        return None


def lying_kit() -> StoreKit:
    """A store whose sync does nothing."""
    disk = MemoryDisk()
    return StoreKit("lying", lambda: SyncDoesNothing(disk), disk.crash)


def append_run(store: LogStore, first: int, last: int, term: int = 1, group: int = 1) -> None:
    """One turn that appends batches `first .. last` in `term`."""
    state = HardState(term, 0)
    store.append([Write(group, hard_state=state, first=first, entries=run_of(first, last, term))])
