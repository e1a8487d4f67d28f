"""`DiskStore`: the `LogStore` of a node with a data folder, on one transactional environment.

**Theory.** `append` changes only memory (`ottla.log.group_tail`): reads see the new bounds and
entries at once, and all writes to a group become one pending change. `begin_sync` puts all pending
changes into a job. The writer thread runs the job as one transaction, whose commit is the sync. So
after a crash the disk holds a prefix of the syncs, each with whole turns; this is what promises 1
to 3 and 6 of `ottla.log.store` need. Appends that come while a job runs share the next job (group
commit).

Durable entries stay in memory as long as the cache has room; the oldest are dropped first. So a
recent append is not read back from disk for followers and consumers.

`ottla.log.lmdb_store` provides the environment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from ottla.log import disk_groups, keys
from ottla.log.disk_groups import Transaction
from ottla.log.errors import CompactedError, StoreError
from ottla.log.group_tail import GroupChange, GroupTail
from ottla.log.store import StoredGroup, SyncJob, Write, fit
from ottla.raft.types import (
    ENTRY_OVERHEAD_BYTES,
    Entry,
    GroupId,
    HardState,
    LogIndex,
    Snapshot,
)

RECOVERED_ENTRIES = 256
"""The cache drops entries that recovery has read in groups of this many."""
SCAN_BYTES = 1024 * 1024
"""How many bytes a scan reads in one transaction."""

_T = TypeVar("_T")


class Environment(Protocol):
    """Transactions on one folder. All methods raise `StoreError`."""

    def recovered(self, keep_bytes: int) -> list[tuple[StoredGroup, list[Entry]]]:
        """Run recovery over every group. Returns the groups after it, each with the last entries of
        its log, which recovery has just read: about `keep_bytes` for all groups together."""

    def commit(self, changes: Collection[GroupChange], meta: Mapping[str, bytes]) -> None:
        """Write all changes and node values in one transaction."""

    def read(self, work: Callable[[Transaction], _T]) -> _T:
        """Run `work` in a read transaction and return its result."""

    def close(self) -> None:
        """Release the folder."""


class DiskSyncJob:
    """One transaction with everything appended before it, for the writer thread."""

    __slots__ = ("_environment", "changes", "error", "meta")

    def __init__(
        self,
        environment: Environment,
        changes: Mapping[GroupId, GroupChange],
        meta: Mapping[str, bytes],
    ) -> None:
        self._environment = environment
        self.changes = changes
        self.meta = meta
        self.error: StoreError | None = None
        """Why the sync failed; None if it has not run, or has succeeded."""

    def run(self) -> None:
        """Commit. An error is kept for `finish_sync`."""
        try:
            self._environment.commit(self.changes.values(), self.meta)
        except StoreError as error:
            self.error = error
        except (AssertionError, OSError, ValueError) as error:
            self.error = StoreError(f"sync failed: {error!r}")
            self.error.__cause__ = error


class DiskStore:
    """See the module's docstring, and `ottla.log.store.LogStore` for what each call promises."""

    immediate = False

    def __init__(self, environment: Environment, cache_bytes: int) -> None:
        """Take over `environment` and run recovery. `cache_bytes`: bound of the durable entries in
        memory."""
        self._environment = environment
        self._cache_bytes = cache_bytes
        self._cached: deque[tuple[GroupTail, LogIndex, int]] = deque()
        self.cached_bytes = 0
        """Bytes of entries in memory, as `Entry.size` counts them."""
        self._groups: dict[GroupId, GroupTail] = {}
        for found, entries in environment.recovered(cache_bytes):
            tail = self._groups[found.group] = GroupTail(found, entries)
            for start in range(0, len(entries), RECOVERED_ENTRIES):
                run = entries[start : start + RECOVERED_ENTRIES]
                self._remember(tail, run[-1].index, run)
        self._changes: dict[GroupId, GroupChange] = {}
        self._meta: dict[str, bytes] = {}
        self._job: DiskSyncJob | None = None
        self.failure: StoreError | None = None
        """Why appends and syncs are refused; None while the store works."""

    def groups(self) -> list[StoredGroup]:
        """Every group, by id."""
        return [tail.stored() for _, tail in sorted(self._groups.items())]

    def scan(self, group: GroupId) -> Iterable[Entry]:
        """All entries of a group in order."""
        tail = self._groups.get(group)
        index = tail.first_index if tail else 1
        while tail is not None and index <= tail.last_index:
            if index >= tail.cached_from:
                yield from tail.cached(index, tail.last_index)
                return
            for entry in self.read(group, index, tail.cached_from - 1, SCAN_BYTES):
                yield entry
                index = entry.index + 1

    def append(self, writes: Sequence[Write]) -> None:
        """Take in one turn's writes. Raises `StoreError` when the store has failed."""
        if self.failure is not None:
            raise self.failure
        for write in writes:
            group = write.group
            if write.delete:
                self._delete(group)
                continue
            tail = self._groups.get(group) or self._create(group)
            change = self._changes.get(group)
            if change is None:
                change = self._changes[group] = GroupChange(group)
            tail.apply(write, change)
            if write.entries:
                self._remember(tail, tail.last_index, write.entries)

    def _remember(self, tail: GroupTail, last: LogIndex, entries: Sequence[Entry]) -> None:
        """Count entries that are now in memory; `last` is the index of the last one."""
        size = sum(len(entry.payload) for entry in entries)
        size += ENTRY_OVERHEAD_BYTES * len(entries)
        self._cached.append((tail, last, size))
        self.cached_bytes += size

    def extend(self, group: GroupId, first: LogIndex, entries: Sequence[Entry]) -> bool:
        """Append; a sync has to follow."""
        self.append((Write(group, first=first, entries=entries),))
        return False

    def begin_sync(self) -> SyncJob | None:
        """Put everything appended into a job; None if there is nothing."""
        if self.failure is not None:
            raise self.failure
        assert self._job is None, "a second sync began before the first was finished"
        if not self._changes and not self._meta:
            return None
        for group, change in self._changes.items():
            if not change.deleted:
                self._groups[group].seal(change)
        self._job = DiskSyncJob(self._environment, self._changes, self._meta)
        self._changes = {}
        self._meta = {}
        return self._job

    def finish_sync(self, job: SyncJob) -> None:
        """Take over the outcome of `job`: what it covers is durable. Raises `StoreError` if it
        failed."""
        assert job is self._job, f"job {job!r} is not the one that runs, {self._job!r}"
        if job.error is not None:
            self._fail(job.error)
        if self.failure is not None:
            raise self.failure
        for group in job.changes:
            tail = self._groups.get(group)
            if tail is not None:
                tail.sync_finished()
        self._job = None
        self._evict()

    def read(self, group: GroupId, first: LogIndex, last: LogIndex, max_bytes: int) -> list[Entry]:
        """Entries `first..last` within `max_bytes`; raises `CompactedError`."""
        tail = self._groups.get(group)
        if tail is None or first < tail.first_index:
            raise CompactedError(group, first, tail.first_index if tail else 0)
        if last < first:
            return []
        if first >= tail.cached_from:
            return fit(tail.cached(first, last), max_bytes)
        stop = min(last, tail.cached_from - 1)
        found = self._environment.read(
            lambda txn: disk_groups.read_entries(txn, group, first, stop, max_bytes)
        )
        if found[-1].index == stop < last:
            found = fit(found + tail.cached(stop + 1, last), max_bytes)
        return found

    def snapshot(self, group: GroupId) -> Snapshot | None:
        """The group's latest snapshot."""
        for changes in (self._changes, self._job.changes if self._job else {}):
            change = changes.get(group)
            if change is not None:
                if change.snapshot is not None:
                    return change.snapshot
                if change.deleted or change.wiped:
                    return None
        return self._environment.read(lambda txn: disk_groups.read_snapshot(txn, group))

    def get_meta(self, key: str) -> bytes | None:
        """A small value of the node itself."""
        for values in (self._meta, self._job.meta if self._job else {}):
            if key in values:
                return values[key]
        return self._environment.read(lambda txn: disk_groups.read_value(txn, keys.meta_key(key)))

    def put_meta(self, key: str, value: bytes) -> None:
        """Append a node value; durable with the next sync."""
        if self.failure is not None:
            raise self.failure
        self._meta[key] = value

    def close(self) -> None:
        """Release the folder; what was not synced is lost. No job may be running."""
        self._fail(StoreError("the store was closed"))
        self._environment.close()

    def _create(self, group: GroupId) -> GroupTail:
        tail = self._groups[group] = GroupTail(StoredGroup(group, HardState(), None, 1, 0))
        if group in self._changes:
            # The group was deleted since the last sync: one change deletes and creates it.
            change = self._changes[group] = GroupChange(group)
            change.wipe()
        return tail

    def _delete(self, group: GroupId) -> None:
        tail = self._groups.pop(group, None)
        if tail is not None:
            tail.clear()
        change = self._changes[group] = GroupChange(group)
        change.deleted = True

    def _evict(self) -> None:
        """Drop the oldest durable entries from memory until the cache is within its bound."""
        while self.cached_bytes > self._cache_bytes:
            tail, through, size = self._cached[0]
            if not tail.evict(through):
                return
            self._cached.popleft()
            self.cached_bytes -= size

    def _fail(self, error: StoreError) -> None:
        if self.failure is None:
            self.failure = error
