"""`GroupTail`: what a disk store keeps of one group in memory, and its change that is not on disk.

Reads see an append at once; the disk gets it with the next sync. So per group the store keeps the
bounds of the log, the newest entries (all that are not durable, and as many older ones as the cache
allows), and one `GroupChange`: the net effect of all writes since the last `begin_sync`. So a sync
writes only what is left of these writes: fifty turns with one entry each become one run of fifty.

Invariant: an entry of `first_index .. last_index` that is not in `entries` is durable on disk, or
is written by the running job, and no pending change concerns it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.log.store import StoredGroup, Write
from ottla.raft.types import Entry, GroupId, HardState, LogIndex, Snapshot


class GroupChange:
    """The net effect of some writes to one group. Fields take effect in this order."""

    __slots__ = (
        "compacted",
        "cut_from",
        "deleted",
        "entries",
        "first_index",
        "group",
        "hard_state",
        "last_index",
        "snapshot",
        "wiped",
    )

    def __init__(self, group: GroupId) -> None:
        self.group = group
        self.deleted = False
        """The group is deleted; the fields below do not count."""
        self.wiped = False
        """Entries and snapshot on disk are deleted."""
        self.cut_from: LogIndex | None = None
        """Entries on disk from this index on are deleted; None if no entry is written or
        dropped."""
        self.entries: list[Entry] = []
        """New entries, consecutive from `cut_from` on."""
        self.snapshot: Snapshot | None = None
        self.compacted = False
        """`first_index` rose: older entries may be deleted."""
        # `seal` fills these in when the sync begins.
        self.hard_state = HardState()
        self.first_index: LogIndex = 1
        self.last_index: LogIndex = 0

    def replace_from(self, first: LogIndex, entries: Sequence[Entry]) -> None:
        """Replace everything from `first` on by `entries`."""
        if self.cut_from is None or first < self.cut_from:
            self.cut_from = first
            self.entries = list(entries)
        else:
            self.entries[first - self.cut_from :] = entries

    def wipe(self) -> None:
        """Drop all entries and the snapshot on disk, and the entries of this change."""
        self.wiped = True
        self.cut_from = None
        self.entries = []


class GroupTail:
    """See the module's docstring. Used on the thread that owns the store."""

    __slots__ = (
        "_covered",
        "cached_from",
        "entries",
        "first_index",
        "group",
        "hard_state",
        "snapshot",
        "synced_to",
    )

    def __init__(self, found: StoredGroup, entries: list[Entry] | None = None) -> None:
        """The group as recovery found it. `entries`: the last entries of its log, to be cached."""
        self.group = found.group
        self.hard_state = found.hard_state
        self.snapshot = found.snapshot
        self.first_index = found.first_index
        self.entries: list[Entry] = entries or []
        self.cached_from: LogIndex = found.last_index + 1 - len(self.entries)
        """Index of the first of `entries`."""
        self.synced_to = found.last_index
        """Last index known to be durable."""
        self._covered = found.last_index
        """Last index that the running sync makes durable."""

    @property
    def last_index(self) -> LogIndex:
        """Index of the last entry; `first_index - 1` when there is none."""
        return self.cached_from + len(self.entries) - 1

    def stored(self) -> StoredGroup:
        """The group as `LogStore.groups` returns it."""
        return StoredGroup(
            self.group, self.hard_state, self.snapshot, self.first_index, self.last_index
        )

    def apply(self, write: Write, change: GroupChange) -> None:
        """Apply a write without `delete` here and in `change`, in the order that `Write` states."""
        if write.hard_state is not None:
            self.hard_state = write.hard_state
        if write.snapshot is not None:
            self.snapshot = write.snapshot.meta
            change.snapshot = write.snapshot
        if write.reset:
            assert write.snapshot is not None, f"group {self.group}: reset without a snapshot"
            self._reset(write.snapshot.meta.index + 1)
            change.wipe()
        if write.truncate or write.entries:
            self._replace_from(write.first, write.entries)
            change.replace_from(write.first, write.entries)
        if write.compact_to >= self.first_index:
            self._compact_to(write.compact_to)
            change.compacted = True

    def seal(self, change: GroupChange) -> None:
        """The sync of `change` begins: fill in the hard state and the bounds of now."""
        change.hard_state = self.hard_state
        change.first_index = self.first_index
        change.last_index = self._covered = self.last_index

    def sync_finished(self) -> None:
        """What the last sealed change wrote is durable, as far as it is still in the log."""
        self.synced_to = max(self.synced_to, self._covered)

    def clear(self) -> None:
        """The group is deleted: keep none of its entries."""
        self._reset(1)

    def evict(self, through: LogIndex) -> bool:
        """Drop entries up to `through` from memory. False if they are not durable yet.

        Entries that were truncated since count as dropped.
        """
        through = min(through, self.last_index)
        if through > self.synced_to:
            return False
        gone = through + 1 - self.cached_from
        if gone > 0:
            del self.entries[:gone]
            self.cached_from += gone
        return True

    def cached(self, first: LogIndex, last: LogIndex) -> list[Entry]:
        """The entries `first .. last` from memory; `first` must be at or above `cached_from`."""
        return self.entries[first - self.cached_from : last + 1 - self.cached_from]

    def _reset(self, first: LogIndex) -> None:
        self.first_index = self.cached_from = first
        self.entries = []
        self.synced_to = self._covered = first - 1

    def _replace_from(self, first: LogIndex, entries: Sequence[Entry]) -> None:
        assert self.first_index <= first <= self.last_index + 1, (
            f"group {self.group}: {first} does not follow on {self.first_index}..{self.last_index}"
        )
        if first <= self.last_index:
            self.synced_to = min(self.synced_to, first - 1)
            self._covered = min(self._covered, first - 1)
        if first < self.cached_from:
            self.cached_from = first
            self.entries = list(entries)
        else:
            self.entries[first - self.cached_from :] = entries

    def _compact_to(self, index: LogIndex) -> None:
        assert index <= self.last_index, (
            f"group {self.group}: compact to {index}, last index {self.last_index}"
        )
        self.first_index = index + 1
        gone = self.first_index - self.cached_from
        if gone > 0:
            del self.entries[:gone]
            self.cached_from = self.first_index
