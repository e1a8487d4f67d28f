"""`LogStore`: the written contract of a node's durable log. One store per node, all its groups.

**Words.** *Append* takes writes in: from then on reads see them. *Sync* makes durable everything
appended before it began. What is appended and not yet synced is the *unsynced tail*.

**Promises**, held by one test suite against every store:

1. Order: writes take effect in the order they were appended, across groups.
2. Atomic turn: the writes of one `append` call become durable all together or not at all.
3. Prefix: a crash (of the process, or of the machine) keeps everything synced and, of the unsynced
   tail, any prefix of whole `append` calls; never a later one without an earlier one.
4. `finish_sync` returns only when everything that its `begin_sync` covered is durable; when the
   job failed, it raises `StoreError`, and the store refuses every append and sync afterwards (a
   disk that failed an fsync once may have dropped the pages: trusting a later success loses data).
5. Reads return what was appended, whether synced or not; entries below the compacted index are
   gone and reading them raises `CompactedError`. What a read returns is the reader's to keep.
6. A vote, a snapshot and the entries of one write are one unit (promise 2).
7. Opening: what a store shows when it is opened is durable, or will be by its first sync, even if
   nothing is appended before. (A crash may spare an unsynced tail; who restarts on it counts it as
   persisted, and may confirm it to others behind that sync.) Without flushing, flush policy *off*,
   neither holds.

**Threads.** All methods run on the owner's thread; only `SyncJob.run` may run in another one.
Between `begin_sync` and `finish_sync` the owner may go on appending and reading, but begins no
second sync.

**Faulty callers.** A gap in the indexes, a reset without a snapshot, compaction beyond the last
entry: assertions, as after them no promise could be kept.
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
    """What one turn of one group writes, in this order of effect.

    `delete` drops the group, and then nothing else of the write counts; `snapshot` is stored and,
    with `reset`, replaces the whole log (one received from the leader), without it only allows
    `compact_to`; `entries` replace everything from `first` on (`first` is read only when `entries`
    is given or `truncate` is set). A write to an unknown group makes it, with its log at index 1.
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
    """Entries up to and including this index may go; 0 for none."""
    delete: bool = False


@dataclass(slots=True)
class StoredGroup:
    """What a restart finds of one group."""

    group: GroupId
    hard_state: HardState
    snapshot: SnapshotMeta | None
    first_index: LogIndex
    """Index of the first entry kept (last compacted index + 1)."""
    last_index: LogIndex
    """Index of the last entry; `first_index - 1` when there is none."""


def fit(entries: list[Entry], max_bytes: int) -> list[Entry]:
    """As many of `entries` as fit `max_bytes`, at least one if there is one."""
    total = 0
    for count, entry in enumerate(entries):
        total += entry.size
        if total > max_bytes and count:
            return entries[:count]
    return entries


class SyncJob(Protocol):
    """The blocking half of a sync: may run in the writer thread."""

    def run(self) -> None:
        """Write and flush. Keeps an error for `finish_sync` instead of raising it."""


class LogStore(Protocol):
    """See the module's text for what each call promises."""

    def groups(self) -> list[StoredGroup]:
        """Every group this store holds, by id."""

    def scan(self, group: GroupId) -> Iterable[Entry]:
        """All entries of a group in order, for replay after a restart."""

    immediate: bool
    """Whether a sync usually takes no time: `begin_sync` then has nothing left to wait for."""

    def extend(self, group: GroupId, first: LogIndex, entries: Sequence[Entry]) -> bool:
        """Append entries (at least one) that continue a group's log, and sync if that takes no
        time. True: they are durable. Raises `StoreError` as `append` does."""

    def append(self, writes: Sequence[Write]) -> None:
        """Take in one turn's writes. Raises `StoreError` when the store has failed or is full."""

    def begin_sync(self) -> SyncJob | None:
        """Start a sync of everything appended; None when it is durable already.

        Raises `StoreError` when the store has failed.
        """

    def finish_sync(self, job: SyncJob) -> None:
        """Take over the outcome of a job that ran. Raises `StoreError` as promise 4 says."""

    def read(self, group: GroupId, first: LogIndex, last: LogIndex, max_bytes: int) -> list[Entry]:
        """Entries `first..last`, as many as fit `max_bytes`, at least one.

        Bytes count as `Entry.size`. Ends at the last entry when `last` lies behind it, so it is
        empty when `first` does; `last < first` is empty too. Raises `CompactedError` when `first`
        is gone, or the group is.
        """

    def snapshot(self, group: GroupId) -> Snapshot | None:
        """The group's latest snapshot."""

    def get_meta(self, key: str) -> bytes | None:
        """A small value of the node itself (its id, its cluster id)."""

    def put_meta(self, key: str, value: bytes) -> None:
        """Append a node value; durable with the next sync."""

    def close(self) -> None:
        """Release the store. What was not synced may be lost."""
