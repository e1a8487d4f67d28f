"""`MemoryStore`: the `LogStore` of an in-memory node, on a `MemoryDisk` that survives a crash.

An append changes the disk's images at once and adds an undo record; a sync drops undo records. So
the common turn (a few entries, synced at once) costs one `list.extend` and a tuple, and reads are
slices. The bytes of a batch exist once per process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ottla.log.errors import CompactedError, StoreError
from ottla.log.memory_disk import Frame, Image, MemoryDisk, MetaPut, Replaced
from ottla.log.store import StoredGroup, SyncJob, Write, fit
from ottla.raft.types import Entry, GroupId, LogIndex, Snapshot

__all__ = ["MemoryDisk", "MemoryStore", "MemorySyncJob"]


class MemorySyncJob:
    """A sync that is not finished at once: `begin_sync` returns one if syncs are deferred, held or
    failing."""

    __slots__ = ("_store", "appends", "error")

    def __init__(self, store: MemoryStore, appends: int) -> None:
        self._store = store
        self.appends = appends
        """Number of the last append call that it covers."""
        self.error: StoreError | None = None
        """Why the sync failed; None if it has not run, or has succeeded."""

    def run(self) -> None:
        """Wait while syncs are held. `finish_sync` completes the sync on the owner's thread."""
        self._store.disk.released.wait()
        self.error = self._store.failure or self._store.disk.sync_error


class MemoryStore:
    """See the module's docstring, and `ottla.log.store.LogStore` for what each call promises."""

    immediate = True

    def __init__(self, disk: MemoryDisk) -> None:
        """Open `disk`, taking it from the store that had it. Raises `CorruptLogError`."""
        self.disk = disk
        self.failure: StoreError | None = None
        """Why all calls are refused; None while the store works."""
        disk.open(self._fail)

    def groups(self) -> list[StoredGroup]:
        """Every group, by id."""
        return [
            StoredGroup(
                group,
                image.hard_state,
                image.snapshot.meta if image.snapshot else None,
                image.first_index,
                image.last_index,
            )
            for group, image in sorted(self.disk.images.items())
        ]

    def scan(self, group: GroupId) -> Iterable[Entry]:
        """All entries of a group in order."""
        image = self.disk.images.get(group)
        return iter(image.entries[:] if image else ())

    def append(self, writes: Sequence[Write]) -> None:
        """Take in one turn's writes. Raises `StoreError` when the store has failed."""
        if self.failure is not None:
            raise self.failure
        images = self.disk.images
        frame: Frame = []
        for write in writes:
            image = images.get(write.group)
            if (
                image is None
                or write.truncate
                or write.snapshot is not None
                or write.compact_to
                or write.delete
                or write.reset
                or (write.entries and write.first != image.last_index + 1)
            ):
                self._replace(write, image, frame)
                continue
            entries = image.entries
            frame.append((image, len(entries), image.hard_state))
            entries += write.entries
            if write.hard_state is not None:
                image.hard_state = write.hard_state
        self.disk.undo.append(frame)

    def extend(self, group: GroupId, first: LogIndex, entries: Sequence[Entry]) -> bool:
        """`append` and sync in one, for entries that continue a group's log. False: the entries are
        appended but not synced. Raises `StoreError` if the store has failed."""
        disk = self.disk
        image = disk.images.get(group)
        if (
            image is None
            or disk.undo
            or self.failure is not None
            or first != image.first_index + len(image.entries)
            or disk.sync_error is not None
            or disk.defer_syncs
            or not disk.released.is_set()
        ):
            self.append((Write(group, first=first, entries=entries),))
            return False
        image.entries += entries
        disk.synced_appends += 1
        return True

    def begin_sync(self) -> SyncJob | None:
        """Sync at once and return None, or return a job (`ottla.log.memory_disk`, Faults)."""
        disk = self.disk
        if self.failure is not None:
            raise self.failure
        if not disk.undo:
            return None
        appends = disk.synced_appends + len(disk.undo)
        if disk.defer_syncs or disk.sync_error is not None or not disk.released.is_set():
            return MemorySyncJob(self, appends)
        disk.sync(appends)
        return None

    def finish_sync(self, job: SyncJob) -> None:
        """Take over the outcome of `job`: what it covers is durable. Raises `StoreError` if it
        failed."""
        assert isinstance(job, MemorySyncJob), f"a job of another store: {job!r}"
        if job.error is not None:
            self._fail(job.error)
        if self.failure is not None:
            raise self.failure
        self.disk.sync(job.appends)

    def read(self, group: GroupId, first: LogIndex, last: LogIndex, max_bytes: int) -> list[Entry]:
        """Entries `first..last` within `max_bytes`; raises `CompactedError`."""
        image = self.disk.images.get(group)
        if image is None or first < image.first_index:
            raise CompactedError(group, first, image.first_index if image else 0)
        if last < first:
            return []
        found = image.entries[first - image.first_index : last + 1 - image.first_index]
        return fit(found, max_bytes)

    def snapshot(self, group: GroupId) -> Snapshot | None:
        """The group's latest snapshot."""
        image = self.disk.images.get(group)
        return image.snapshot if image else None

    def get_meta(self, key: str) -> bytes | None:
        """A small value of the node itself."""
        return self.disk.meta.get(key)

    def put_meta(self, key: str, value: bytes) -> None:
        """Append a node value; durable with the next sync."""
        if self.failure is not None:
            raise self.failure
        self.disk.undo.append([MetaPut(key, self.disk.meta.get(key))])
        self.disk.meta[key] = value

    def close(self) -> None:
        """Release the disk. What was not synced stays on it until it crashes."""
        if self.failure is None:
            self.disk.detach("was closed")

    def _replace(self, write: Write, image: Image | None, frame: Frame) -> None:
        images = self.disk.images
        if write.delete:
            frame.append(Replaced(write.group, images.pop(write.group, None), 0))
            return
        before = image or Image(write.group)
        images[write.group] = before.changed(write)
        frame.append(Replaced(write.group, image, _safe_index(write, before)))

    def _fail(self, error: StoreError) -> None:
        if self.failure is None:
            self.failure = error


def _safe_index(write: Write, before: Image) -> LogIndex:
    """The last index that `write` does not change."""
    if write.reset:
        return 0
    if write.truncate or write.entries:
        return min(write.first - 1, before.last_index)
    return before.last_index
