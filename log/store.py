"""`LogStore`: the contract of a node's durable log. A node has one store for all its groups.

**Words.** *Append*: the store takes writes, and reads see them from then on. *Sync*: everything
appended before the sync began becomes durable. The *unsynced tail* is what is appended and not yet
synced.

**Promises**, which one test suite checks for every store:

1. Order: writes take effect in the order in which they were appended, across groups.
2. Atomic turn: the writes of one `append` call become durable all together or not at all.
3. Prefix: a crash (of the process or of the machine) keeps everything synced. Of the unsynced tail
   it keeps any prefix of whole `append` calls, never a later call without an earlier one.
4. `finish_sync` returns only when everything that its `begin_sync` covered is durable. If the job
   failed, it raises `StoreError`, and the store refuses every later append and sync. (A disk whose
   fsync failed may have dropped the pages; a later success would not mean that they are durable.)
5. Reads return what was appended, synced or not. Reading an entry at or below the compacted index
   raises `CompactedError`. The result of a read stays valid.
6. A vote, a snapshot and the entries of one write are one unit (promise 2).
7. Opening: what a store shows when it is opened is durable, or becomes durable with its first sync,
   even if nothing is appended before that sync. (A crash may leave an unsynced tail. The restarted
   node counts it as persisted, and may confirm it to others after that sync.) With the flush policy
   *off*, which never flushes, this promise does not hold.

**Threads.** All methods run on the owner's thread; only `SyncJob.run` may run on another one.
Between `begin_sync` and `finish_sync` the owner may append and read, but must not begin another
sync.

**Faulty callers.** The store asserts on a gap in the indexes, a reset without a snapshot, and a
compaction beyond the last entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ottla.raft.types import (
    Entry,
    GroupId,
    HardState,
    LogIndex,
    Snapshot,
    SnapshotMeta,
)


@dataclass(slots=True)
class Write:
    """What one turn of one group writes. The parts take effect in this order:

    `delete` drops the group; then the rest of the write does not count. `snapshot` is stored. With
    `reset` (a snapshot from the leader) it replaces the whole log; without `reset` it only allows
    `compact_to`. `entries` replace everything from `first` on (`first` counts only with `entries`
    or `truncate`). A write to an unknown group creates the group, with a log that begins at index
    1.
    """

    group: GroupId
    hard_state: HardState | None = None
    snapshot: Snapshot | None = None
    reset: bool = False
    """The log becomes empty after `snapshot.meta.index` (before `entries` are written)."""
    first: LogIndex = 0
    truncate: bool = False
    """Entries from `first` on are dropped before `entries` are written."""
    entries: Sequence[Entry] = ()
    compact_to: LogIndex = 0
    """Entries up to and including this index may be deleted; 0 for none."""
    delete: bool = False


@dataclass(slots=True)
class StoredGroup:
    """One group as a restart finds it."""

    group: GroupId
    hard_state: HardState
    snapshot: SnapshotMeta | None
    first_index: LogIndex
    """Index of the first entry that is kept: the compacted index + 1."""
    last_index: LogIndex
    """Index of the last entry; `first_index - 1` if there is none."""


def fit(entries: list[Entry], max_bytes: int) -> list[Entry]:
    """The first of `entries`, as many as fit into `max_bytes`, at least one if there is one."""
    total = 0
    for count, entry in enumerate(entries):
        total += entry.size
        if total > max_bytes and count:
            return entries[:count]
    return entries


class SyncJob(Protocol):
    """The blocking part of a sync. It may run on the writer thread."""

    def run(self) -> None:
        """Write and flush. An error is kept for `finish_sync` instead of raised."""


class LogStore(Protocol):
    """See the module's docstring for what each call promises."""

    def groups(self) -> list[StoredGroup]:
        """Every group this store holds, by id."""

    def scan(self, group: GroupId) -> Iterable[Entry]:
        """All entries of a group in order, for replay after a restart."""

    immediate: bool
    """Whether a sync is usually finished when `begin_sync` returns."""

    def extend(self, group: GroupId, first: LogIndex, entries: Sequence[Entry]) -> bool:
        """Append entries (at least one) that continue a group's log, and sync them if that can be
        done at once. True: they are durable. False: a sync must follow. Raises `StoreError` as
        `append` does."""

    def append(self, writes: Sequence[Write]) -> None:
        """Take in one turn's writes. Raises `StoreError` when the store has failed or is full."""

    def begin_sync(self) -> SyncJob | None:
        """Start a sync of everything appended. None: everything is durable already.

        Raises `StoreError` when the store has failed.
        """

    def finish_sync(self, job: SyncJob) -> None:
        """Take over the outcome of a job that has run. Raises `StoreError` as promise 4 says."""

    def read(self, group: GroupId, first: LogIndex, last: LogIndex, max_bytes: int) -> list[Entry]:
        """Entries `first..last`: at least one, and as many as fit into `max_bytes`.

        Bytes are counted by `Entry.size`. If the log ends before `last`, the result ends with the
        log; it is empty if the log ends before `first`, or if `last < first`. Raises
        `CompactedError` if `first` is compacted or the group does not exist.
        """

    def snapshot(self, group: GroupId) -> Snapshot | None:
        """The group's latest snapshot."""

    def get_meta(self, key: str) -> bytes | None:
        """A small value of the node itself (its id, its cluster id)."""

    def put_meta(self, key: str, value: bytes) -> None:
        """Append a node value; durable with the next sync."""

    def close(self) -> None:
        """Release the store. What was not synced may be lost."""
