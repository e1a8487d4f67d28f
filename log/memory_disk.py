"""`MemoryDisk`: a medium in memory that outlives its stores and can lose an unsynced tail.

**Theory.** A killed in-memory node comes back with a new `MemoryStore` on the same disk. The disk
holds one *image* per group, in which an append takes effect at once, and an *undo log* with one
frame per `append` call that is not synced yet. Then

* append: change the image, push a frame (for a plain append: image, old length, old hard state),
* sync: drop the frames it covers; nothing is copied, nothing is applied twice,
* crash: undo the frames from the newest to the oldest one that is to be lost.

What is rare (truncation, snapshot, compaction, deletion) goes to a copy of the group's image, and
its frame keeps the original. Entries are never copied: replicas in one process share them.

**Faults.** A test or a simulator makes syncs take time: with `defer_syncs` set, each `begin_sync`
returns a job and the sync happens when somebody runs it; after `hold_syncs` that run blocks (in a
writer thread) until `release_syncs`. `fail_syncs` breaks the next sync, and with it the store for
good, as a real disk does (promise 4 of `ottla.log.store`). `damage` flips bytes for the next start.
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
    """One group as reads see it."""

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
        """A copy on which `write` took effect, in the order that `Write` states."""
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
        """Entries up to and including `index` are gone."""
        assert index <= self.last_index, (
            f"group {self.group}: compact to {index}, last index {self.last_index}"
        )
        del self.entries[: index + 1 - self.first_index]
        self.first_index = index + 1


class Replaced:
    """Undo record of a write that made a new image: the one before, None when there was none."""

    __slots__ = ("before", "group", "safe")

    def __init__(self, group: GroupId, before: Image | None, safe: LogIndex) -> None:
        self.group = group
        self.before = before
        self.safe = safe
        """Last index that this write left as it was."""


class MetaPut:
    """Undo record of a node value; `before` is None when there was none."""

    __slots__ = ("before", "key")

    def __init__(self, key: str, before: bytes | None) -> None:
        self.key = key
        self.before = before


PlainAppend: TypeAlias = tuple[Image, int, HardState]
"""Undo record of a write that only added entries or a hard state: length and state before."""
Frame: TypeAlias = list[PlainAppend | Replaced | MetaPut]
"""Undo records of one `append` call, in the order of its writes."""


class MemoryDisk:
    """A node's medium in memory: what survives a crash. See the module's text."""

    def __init__(self) -> None:
        self.defer_syncs = False
        """Whether `begin_sync` returns a job for each sync instead of completing at once."""
        self.released = Event()
        """Set unless syncs are held."""
        self.released.set()
        self.sync_error: StoreError | None = None
        """What the next sync fails with."""
        # Below: for the store that owns the disk.
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
        """The machine stops: of the unsynced `append` calls only the `keep` oldest ones survive.

        The open store is dead afterwards, a new one may be opened; injected faults are over.
        """
        self.detach("crashed")
        while len(self.undo) > keep:
            for record in reversed(self.undo.pop()):
                self._revert(record)
        self.heal()

    def hold_syncs(self) -> None:
        """From now on a sync job blocks when it is run, until `release_syncs`."""
        self.released.clear()

    def release_syncs(self) -> None:
        """Let held sync jobs go on."""
        self.released.set()

    def fail_syncs(self, error: StoreError) -> None:
        """From now on syncs fail with `error`, and the store that began one with them."""
        self.sync_error = error

    def heal(self) -> None:
        """Held sync jobs go on, and those to come do not fail."""
        self.released.set()
        self.sync_error = None

    def damage(self, group: GroupId, index: LogIndex) -> None:
        """Flip a bit of that entry, to be found at the next start."""
        self.images[group].damaged += (index,)

    # ---- for stores

    def open(self, disown: Callable[[StoreError], None]) -> None:
        """Give the disk to a store and run recovery; the store before it, if any, is dead.

        `disown(error)` is called when the disk crashes or another store takes it. Raises
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
        """The store that has the disk, if any, is dead; its held sync jobs go on, and fail."""
        if self._disown is not None:
            self._disown(StoreError(f"the disk {reason}"))
            self._disown = None
            self.released.set()

    def sync(self, appends: int) -> None:
        """Everything up to the append call of that number is durable."""
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
        """Per group the last index that no unsynced append touched."""
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
