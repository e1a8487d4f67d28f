"""`MemoryDisk`: a disk in memory that outlives its stores and can lose an unsynced tail.

**Theory.** A killed in-memory node restarts with a new `MemoryStore` on the same disk. The disk
holds one *image* per group, in which an append takes effect at once. It also holds an *undo log*
with one frame for each `append` call that is not synced yet. The operations are:

* append: change the image and push a frame (for a plain append: image, old length, old hard state),
* sync: drop the frames that it covers; nothing is copied,
* crash: undo the frames that are to be lost, the newest first.

Rare writes (truncation, snapshot, compaction, deletion) change a copy of the group's image, and the
frame keeps the original. Entries are never copied: replicas in one process share them.

**Faults.** A test or a simulator can make syncs take time. With `defer_syncs`, each `begin_sync`
returns a job, and the sync happens when the job is run. After `hold_syncs`, a running job blocks
(in a writer thread) until `release_syncs`. `fail_syncs` makes the next sync fail; after that the
store refuses all calls, as with a real disk (promise 4 of `ottla.log.store`). `damage` makes the
next start find an entry damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import TypeAlias

from ottla.log.errors import StoreError
from ottla.log.recovery import LogExtent, StoredRecord, recover
from ottla.log.store import Write
from ottla.raft.types import Entry, GroupId, HardState, LogIndex, Snapshot


class Image:
    """One group in the state that reads see."""

    __slots__ = ("damaged", "entries", "first_index", "group", "hard_state", "snapshot")

    def __init__(self, group: GroupId) -> None:
        self.group = group
        self.hard_state = HardState()
        self.snapshot: Snapshot | None = None
        self.first_index: LogIndex = 1
        self.entries: list[Entry] = []
        self.damaged: tuple[LogIndex, ...] = ()

    @property
    def last_index(self) -> LogIndex:
        """Index of the last entry; `first_index - 1` when there is none."""
        return self.first_index + len(self.entries) - 1

    def changed(self, write: Write) -> Image:
        """A copy with `write` applied, in the order that `Write` states."""
        image = Image(self.group)
        image.hard_state = write.hard_state or self.hard_state
        image.snapshot = write.snapshot or self.snapshot
        if write.reset:
            assert write.snapshot is not None, f"group {self.group}: reset without a snapshot"
            image.first_index = write.snapshot.meta.index + 1
        else:
            image.first_index = self.first_index
            image.entries = self.entries[:]
            image.damaged = self.damaged
        if write.truncate or write.entries:
            image.replace_from(write.first, write.entries)
        if write.compact_to >= image.first_index:
            image.compact_to(write.compact_to)
        return image

    def replace_from(self, first: LogIndex, entries: Sequence[Entry]) -> None:
        """Everything from `first` on is replaced by `entries`."""
        keep = first - self.first_index
        assert 0 <= keep <= len(self.entries), (
            f"group {self.group}: {first} does not follow on {self.first_index}..{self.last_index}"
        )
        self.entries[keep:] = entries
        self.damaged = tuple(index for index in self.damaged if index < first)

    def compact_to(self, index: LogIndex) -> None:
        """Drop entries up to and including `index`."""
        assert index <= self.last_index, (
            f"group {self.group}: compact to {index}, last index {self.last_index}"
        )
        del self.entries[: index + 1 - self.first_index]
        self.first_index = index + 1


class Replaced:
    """Undo record of a write that made a new image. `before`: the old image, or None."""

    __slots__ = ("before", "group", "safe")

    def __init__(self, group: GroupId, before: Image | None, safe: LogIndex) -> None:
        self.group = group
        self.before = before
        self.safe = safe
        """The last index that this write did not change."""


class MetaPut:
    """Undo record of a node value. `before`: the old value, or None."""

    __slots__ = ("before", "key")

    def __init__(self, key: str, before: bytes | None) -> None:
        self.key = key
        self.before = before


PlainAppend: TypeAlias = tuple[Image, int, HardState]
"""Undo record of a write that only added entries or set the hard state: image, old number of
entries, old hard state."""
Frame: TypeAlias = list[PlainAppend | Replaced | MetaPut]
"""Undo records of one `append` call, in the order of its writes."""


class MemoryDisk:
    """A node's disk in memory: what survives a crash. See the module's docstring."""

    def __init__(self) -> None:
        self.defer_syncs = False
        """Whether `begin_sync` returns a job for each sync instead of completing at once."""
        self.released = Event()
        """Set unless syncs are held."""
        self.released.set()
        self.sync_error: StoreError | None = None
        """The error of the next sync; None if it will succeed."""
        # The fields below are for the store that owns the disk.
        self.images: dict[GroupId, Image] = {}
        self.meta: dict[str, bytes] = {}
        self.undo: list[Frame] = []
        self.synced_appends = 0
        self._disown: Callable[[StoreError], None] | None = None

    # ---- for tests and simulators

    @property
    def unsynced_appends(self) -> int:
        """How many `append` calls a crash may still lose."""
        return len(self.undo)

    def crash(self, keep: int = 0) -> None:
        """The machine crashes: of the unsynced `append` calls only the `keep` oldest ones survive.

        The open store refuses all calls afterwards, and a new one may be opened. Injected faults
        end.
        """
        self.detach("crashed")
        while len(self.undo) > keep:
            for record in reversed(self.undo.pop()):
                self._revert(record)
        self.heal()

    def hold_syncs(self) -> None:
        """From now on a sync job that is run blocks until `release_syncs`."""
        self.released.clear()

    def release_syncs(self) -> None:
        """Let blocked sync jobs continue."""
        self.released.set()

    def fail_syncs(self, error: StoreError) -> None:
        """From now on syncs fail with `error`; the store whose sync fails refuses all later
        calls."""
        self.sync_error = error

    def heal(self) -> None:
        """Let blocked sync jobs continue, and let later syncs succeed."""
        self.released.set()
        self.sync_error = None

    def damage(self, group: GroupId, index: LogIndex) -> None:
        """Mark that entry as damaged; the next start finds it so."""
        self.images[group].damaged += (index,)

    # ---- for stores

    def open(self, disown: Callable[[StoreError], None]) -> None:
        """Give the disk to a store and run recovery. A store that had the disk fails from now on.

        `disown(error)` will be called when the disk crashes or another store takes it. Raises
        `CorruptLogError` as `ottla.log.recovery` says.
        """
        self.detach("was taken over by another store")
        marks = self._synced_marks()
        for group, image in self.images.items():
            extent = LogExtent(group, image.first_index, marks[group], image.hard_state.term)
            records = (
                StoredRecord(index, None if index in image.damaged else entry)
                for index, entry in enumerate(image.entries, image.first_index)
            )
            image.replace_from(recover(extent, records) + 1, ())
        self._disown = disown

    def detach(self, reason: str) -> None:
        """Take the disk from its store, if any: the store and its blocked sync jobs fail."""
        if self._disown is not None:
            self._disown(StoreError(f"the disk {reason}"))
            self._disown = None
            self.released.set()

    def sync(self, appends: int) -> None:
        """Everything up to append call number `appends` is durable."""
        covered = appends - self.synced_appends
        if covered > 0:
            del self.undo[:covered]
            self.synced_appends = appends

    def _revert(self, record: PlainAppend | Replaced | MetaPut) -> None:
        if isinstance(record, tuple):
            image, length, hard_state = record
            del image.entries[length:]
            image.hard_state = hard_state
        elif isinstance(record, Replaced):
            if record.before is None:
                self.images.pop(record.group, None)
            else:
                self.images[record.group] = record.before
        elif record.before is None:
            self.meta.pop(record.key, None)
        else:
            self.meta[record.key] = record.before

    def _synced_marks(self) -> dict[GroupId, LogIndex]:
        """Per group, the last index that no unsynced append has changed."""
        marks = {group: image.last_index for group, image in self.images.items()}
        for frame in self.undo:
            for record in frame:
                if isinstance(record, tuple):
                    group, safe = record[0].group, record[0].first_index + record[1] - 1
                elif isinstance(record, Replaced):
                    group, safe = record.group, record.safe
                else:
                    continue
                marks[group] = min(marks.get(group, safe), safe)
        return marks
