"""`LmdbStore`: a `DiskStore` on one LMDB environment per node.

**Durability** is LMDB's own: `sync` and `metasync` are on, and the map is not writable. A commit
returns when its pages, and then its meta page, are on the disk. Without `sync` (flush policy *off*,
which exists for studies) nothing is flushed, and the synced mark of recovery does not move.

**Room.** If a transaction does not fit into the map, the map doubles and the transaction runs
again. LMDB allows no reader while the map changes, so reads and growth share a lock. The file is
extended with zeros before the space is needed (`ottla.log.folder`). A full disk raises
`DiskFullError`; as after every failed sync, the store then refuses all calls.

**Compaction** only moves the first index. Chunks below it are deleted by the commits that follow, a
few hundred at a time, so that no commit takes long.

**Opening** checks the folder before LMDB maps it, because LMDB ends the process when it finds
damage (`ottla.log.note`, `ottla.log.pages`). Then it runs recovery over every group and deletes
what recovery cut. A folder that has another format, belongs to another node or is in use is refused
with `FormatError`. An open store does not check again: if the disk then changes pages, LMDB can
still end the process (docs/decisions/0029-damaged-folders.md).

**A view** (`LmdbView`) reads a folder and changes nothing, also while another process writes: LMDB
shows each transaction one state of the whole store. LMDB does not reuse pages that an open
transaction can see, so a view's transactions are short.

Keys and values are described in `ottla.log.keys`, the work of a transaction in
`ottla.log.disk_groups`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TypeVar

import lmdb

from ottla.log import disk_groups, keys
from ottla.log.disk_groups import DiskGroup, Transaction
from ottla.log.disk_store import DiskStore
from ottla.log.errors import (
    CompactedError,
    CorruptLogError,
    DamagedFolderError,
    FormatError,
    StoreError,
)
from ottla.log.folder import FolderLock, ZerosAhead, disk_full, has_no_room, in_use, is_full
from ottla.log.group_tail import GroupChange
from ottla.log.note import (
    DATA,
    Note,
    check_data,
    check_values,
    examine,
    sync_folder,
    write_node_note,
)
from ottla.log.recovery import Kept, LogExtent, recover
from ottla.log.store import StoredGroup
from ottla.raft.types import Entry, GroupId, LogIndex, NodeId, Snapshot

FIRST_MAP_BYTES = 64 * 1024 * 1024
MAX_MAP_BYTES = 1 << 40
ZERO_STEP_BYTES = 16 * 1024 * 1024
CACHE_BYTES = 32 * 1024 * 1024
COMPACT_CHUNKS_PER_COMMIT = 256

_T = TypeVar("_T")


class LmdbStore(DiskStore):
    """See the module's docstring, and `ottla.log.store.LogStore` for what each call promises."""

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        node: NodeId | None = None,
        sync: bool = True,
        first_map_bytes: int = FIRST_MAP_BYTES,
        max_map_bytes: int = MAX_MAP_BYTES,
        zero_step_bytes: int = ZERO_STEP_BYTES,
        cache_bytes: int = CACHE_BYTES,
    ) -> LmdbStore:
        """Open the folder `path`, creating it if it does not exist, and run recovery.

        `node`, if given, must be the node that the folder was created for. `sync` False is the
        flush policy *off*. The map begins with `first_map_bytes` and doubles up to `max_map_bytes`,
        the largest size of the store. `zero_step_bytes` says how far the file is extended with
        zeros (0: not at all). `cache_bytes` bounds the durable entries that are kept in memory.

        Raises `FormatError` (another format or node, or in use), `DamagedFolderError` and
        `CorruptLogError` (durable data is damaged), `DiskFullError`, `StoreError`, `OSError`.
        """
        folder = Path(path)
        lock = FolderLock(folder)
        try:
            note = examine(folder)
            environment = LmdbEnvironment(
                folder, lock, sync=sync, map_bytes=(first_map_bytes, max_map_bytes)
            )
        except BaseException:
            lock.close()
            raise
        try:
            environment.check_format(node)
            environment.check_note(note)
            environment.fill_ahead(zero_step_bytes)
            store = cls(environment, cache_bytes)
            environment.write_note()
        except BaseException:
            environment.close(clean=False)
            raise
        return store


class LmdbEnvironment:
    """The LMDB environment of one folder: transactions, growth, format and recovery."""

    def __init__(
        self, folder: Path, lock: FolderLock, *, sync: bool, map_bytes: tuple[int, int]
    ) -> None:
        self._folder = folder
        self._lock = lock
        self._sync = sync
        first, self._max_map_bytes = map_bytes
        self._map_lock = Lock()
        self._compacting: dict[GroupId, tuple[LogIndex, LogIndex]] = {}
        self._zeros: ZerosAhead | None = None
        self._note = Note(0, {})
        try:
            self._lmdb = lmdb.open(
                str(folder), map_size=first, sync=sync, metasync=sync, readahead=False, max_dbs=0
            )
        except (lmdb.InvalidError, lmdb.VersionMismatchError, lmdb.CorruptedError) as error:
            raise FormatError(f"{folder}: no LMDB folder of this version ({error})") from error
        except lmdb.Error as error:
            raise self._error(error) from error
        self._page_bytes = self._lmdb.stat()["psize"]

    def check_format(self, node: NodeId | None) -> None:
        """Write format and node into a new folder; compare them in an old one. Raises
        `FormatError`."""
        found = self.read(lambda txn: disk_groups.read_value(txn, keys.FORMAT_KEY))
        owner = self.read(lambda txn: disk_groups.read_value(txn, keys.NODE_KEY))
        if found is None:
            if self._lmdb.stat()["entries"]:
                raise FormatError(f"{self._folder}: holds something that is not an Ottla log")
            self._in_transaction(lambda txn: txn.put(keys.FORMAT_KEY, keys.FORMAT_VERSION))
            sync_folder(self._folder)
        elif found != keys.FORMAT_VERSION:
            raise FormatError(
                f"{self._folder}: format {_text(found)}, this program reads "
                f"{_text(keys.FORMAT_VERSION)}"
            )
        if node is None:
            return
        name = str(node).encode()
        if owner is None:
            self._in_transaction(lambda txn: txn.put(keys.NODE_KEY, name))
        elif owner != name:
            raise FormatError(f"{self._folder}: belongs to node {_text(owner)}, not {node}")

    def check_note(self, note: Note) -> None:
        """Compare the data with the folder's note. Raises `DamagedFolderError`."""
        self._note = note
        check_values(note, self.read(disk_groups.read_values))

    def write_note(self) -> None:
        """Write a note: the last durable transaction, and the node's own values.

        Without syncs no new transaction is known to be durable. If the disk is too full for a newer
        note, the older one stays and nothing is raised: it is still true. But a first note must be
        written. Raises `StoreError`, `OSError`.
        """
        durable = self._lmdb.info()["last_txnid"] if self._sync else 1
        note = Note(max(durable, self._note.transaction), self.read(disk_groups.read_values))
        if note == self._note:
            return
        try:
            write_node_note(self._folder, note)
        except OSError as error:
            if not is_full(error.errno or 0):
                raise
            if self._note.transaction == 0:
                raise disk_full(self._folder, error) from error
        else:
            self._note = note

    def fill_ahead(self, step_bytes: int) -> None:
        """Extend the data file with zeros, from now on before they are needed."""
        if self._sync and step_bytes:
            self._zeros = ZerosAhead(self._folder / DATA, step_bytes)
            self._zeros.reserve(self._used_bytes())

    def recovered(self, keep_bytes: int) -> list[tuple[StoredGroup, list[Entry]]]:
        """Run recovery over every group and delete what it cuts. Returns the groups after it, each
        with the last entries of its log: about `keep_bytes` for all together.

        Flushes first: an earlier process may have left data in the page cache only (flush policy
        *off*, then signal 9). Without a flush this node could confirm that data to others although
        it is not durable.
        """
        if self._sync:
            try:
                self._lmdb.sync(True)
            except lmdb.Error as error:
                raise self._error(error) from error
        groups = []
        for found in self.read(disk_groups.read_groups):
            kept = Kept(keep_bytes)
            groups.append((self._recover(found, kept), kept.entries))
            keep_bytes -= kept.bytes
        return groups

    def commit(self, changes: Collection[GroupChange], meta: Mapping[str, bytes]) -> None:
        """Write everything in one transaction. Raises `StoreError`: then either nothing or all of
        it is on disk."""
        for change in changes:
            if change.deleted:
                self._compacting.pop(change.group, None)
            elif change.compacted or change.group in self._compacting:
                self._compacting[change.group] = (change.first_index, change.last_index)

        def work(txn: Transaction) -> list[GroupId]:
            for key, value in meta.items():
                txn.put(keys.meta_key(key), value)
            for change in changes:
                disk_groups.write_change(txn, change, self._sync)
            return [
                group
                for group, bounds in self._compacting.items()
                if disk_groups.delete_compacted(txn, group, bounds, COMPACT_CHUNKS_PER_COMMIT)
            ]

        for group in self._in_transaction(work):
            del self._compacting[group]
        if meta:
            self.write_note()
        if self._zeros is not None:
            self._zeros.reserve(self._used_bytes())

    def read(self, work: Callable[[Transaction], _T]) -> _T:
        """Run `work` in a read transaction and return its result, which must not point into the
        transaction's memory."""
        with self._map_lock:
            try:
                with self._lmdb.begin(buffers=True) as txn:
                    return work(txn)
            except lmdb.Error as error:
                raise self._error(error) from error

    def close(self, *, clean: bool = True) -> None:
        """Release everything, the folder's lock last. The note is written only if `clean`, and only
        if the folder at this path is still the one that was opened.

        A forked child releases nothing: LMDB would end the parent's readers instead of the child's.
        """
        if self._lock.inherited:
            return
        if clean:
            with suppress(StoreError, OSError, lmdb.Error):
                if self._lock.is_in_place():
                    self.write_note()
        if self._zeros is not None:
            self._zeros.close()
        self._lmdb.close()
        self._lock.close()

    def _recover(self, found: DiskGroup, kept: Kept) -> StoredGroup:
        group, first = found.group, found.first_index
        extent = LogExtent(group, first, found.synced_to, found.hard_state.term)
        last = self.read(
            lambda txn: recover(extent, kept.seen(disk_groups.stored_records(txn, group, first)))
        )
        if found.synced_to == found.last_index < last:
            # Entries and state are written in one transaction, and all of it was durable.
            raise CorruptLogError(
                group, last, f"should not be there, after the last index {found.last_index}"
            )
        if last != found.last_index or (self._sync and found.synced_to < last):
            self._in_transaction(lambda txn: disk_groups.settle(txn, found, last, self._sync))
            found.last_index = last
        snapshot = self.read(lambda txn: disk_groups.read_snapshot(txn, group))
        if first > 1:
            if snapshot is None:
                raise CorruptLogError(group, first, "the log begins here, without its snapshot")
            self._compacting[group] = (first, last)
        return found.stored(snapshot.meta if snapshot else None)

    def _in_transaction(self, work: Callable[[Transaction], _T]) -> _T:
        while True:
            try:
                with self._lmdb.begin(write=True) as txn:
                    return work(txn)
            except lmdb.MapFullError as error:
                self._grow(error)
            except lmdb.Error as error:
                raise self._error(error) from error

    def _grow(self, reason: lmdb.Error) -> None:
        size = self._lmdb.info()["map_size"]
        if size * 2 > self._max_map_bytes:
            raise disk_full(self._folder, f"limit of {self._max_map_bytes} bytes") from reason
        with self._map_lock:
            self._lmdb.set_mapsize(size * 2)

    def _used_bytes(self) -> int:
        return int((self._lmdb.info()["last_pgno"] + 1) * self._page_bytes)

    def _error(self, error: lmdb.Error) -> StoreError:
        if is_full(getattr(error, "code", 0)):
            return disk_full(self._folder, error)
        # LMDB reports a short write as an input/output error, and does not say whether it was the
        # last write of the commit. So the text names the full disk, but the outcome is indefinite.
        hint = "; there is no room on the disk" if has_no_room(self._folder) else ""
        return StoreError(f"{self._folder}: {error}{hint}")


class LmdbView:
    """Reads a node's folder; see the module's docstring. Call `close` at the end.

    Never open a view in a process that has the folder's `LmdbStore` open: LMDB forbids it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the folder. Raises `FormatError` if it holds no log of Ottla or cannot be read."""
        self._folder = Path(path)
        if not (self._folder / DATA).exists():
            raise FormatError(f"{self._folder}: holds no log")
        self._examine()
        try:
            # A reader without write permission cannot use LMDB's lock file.
            locked = os.access(self._folder / "lock.mdb", os.W_OK)
            self._lmdb = lmdb.open(
                str(self._folder), readonly=True, create=False, lock=locked, max_dbs=0
            )
        except lmdb.Error as error:
            raise FormatError(f"{self._folder}: cannot be read ({error})") from error
        self._lmdb.reader_check()  # else the pages of a killed reader would never be reused
        found = self._read(lambda txn: disk_groups.read_value(txn, keys.FORMAT_KEY))
        if found != keys.FORMAT_VERSION:
            self._lmdb.close()
            raise FormatError(
                f"{self._folder}: format {_text(found or b'none')}, this program reads "
                f"{_text(keys.FORMAT_VERSION)}"
            )

    def _examine(self) -> None:
        """Check the data before LMDB maps it. A store that has the folder open has checked it."""
        if in_use(self._folder):
            return
        try:
            check_data(self._folder)
        except DamagedFolderError as error:
            if not in_use(self._folder):  # Nobody began to write meanwhile.
                raise FormatError(f"{self._folder}: cannot be read ({error})") from error

    def groups(self) -> list[DiskGroup]:
        """Every group by id. Raises `CorruptLogError`."""
        return self._read(disk_groups.read_groups)

    def state(self, group: GroupId) -> DiskGroup | None:
        """A group's bounds and hard state. Raises `CorruptLogError`."""
        return self._read(lambda txn: disk_groups.read_state(txn, group))

    def snapshot(self, group: GroupId) -> Snapshot | None:
        """A group's snapshot. Raises `CorruptLogError`."""
        return self._read(lambda txn: disk_groups.read_snapshot(txn, group))

    def entries(self, group: GroupId, first: LogIndex, max_bytes: int) -> list[Entry]:
        """Entries from `first` on: at least one, and as many as fit into `max_bytes`. Empty if the
        log ends before `first`.

        Raises `CompactedError` if `first` is compacted, `CorruptLogError` if an entry is damaged.
        """

        def work(txn: Transaction) -> list[Entry]:
            state = disk_groups.read_state(txn, group)
            if state is None or first > state.last_index:
                return []
            if first < state.first_index:
                raise CompactedError(group, first, state.first_index)
            return disk_groups.read_entries(txn, group, first, state.last_index, max_bytes)

        return self._read(work)

    def close(self) -> None:
        """Release the folder."""
        self._lmdb.close()

    def _read(self, work: Callable[[Transaction], _T]) -> _T:
        while True:
            try:
                with self._lmdb.begin(buffers=True) as txn:
                    return work(txn)
            except lmdb.MapResizedError:
                self._lmdb.set_mapsize(0)  # the process that writes has made the map larger
            except lmdb.Error as error:
                raise StoreError(f"{self._folder}: {error}") from error


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
