"""Index of a member's log: the terms, the sizes and the durability of its entries.

Payloads are not kept here; they pass through `Ready` on their way to the store. The index holds:

* **Terms as runs.** A log has few terms and many entries, so terms are a short list of (first
  index, term). The runs also cover the *boundary*, the entry just before `first_index`. An empty
  log has the boundary 0 with term 0 (figure 2: the entry before the first). In a compacted log the
  boundary is the last entry of the snapshot. So `term_at` needs no special case for it.
* **Sizes as running totals.** The size of a range is one subtraction; the longest range within a
  byte budget is one binary search.
* **Writes in flight.** The caller's disk finishes writes later. A finished write counts only for
  entries that are still in the log (see `finish_write`).
* **Voters**, from the latest CONFIGURATION entry or snapshot.

Invariants: `snapshot.index == first_index - 1` if there is a snapshot; `persisted <= last_index`
(it may be below the boundary while the snapshot is still being written); terms never fall from one
run to the next.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence

import msgpack

from ottla.raft.errors import CorruptStateError
from ottla.raft.types import (
    Entry,
    EntryKind,
    LogIndex,
    NodeId,
    SnapshotMeta,
    Term,
)


class RaftLog:
    """Terms, sizes and durability of entries `first_index .. last_index`. `bootstrap` or
    `RaftLog.restore` makes it; only the core that owns it changes it."""

    __slots__ = (
        "_run_first",
        "_run_term",
        "_totals",
        "_writes",
        "first_index",
        "last_index",
        "persisted",
        "snapshot",
        "voters",
    )

    def __init__(self, snapshot: SnapshotMeta | None) -> None:
        """An empty log that begins behind `snapshot`, or at index 1."""
        self._writes: deque[tuple[LogIndex, Term, LogIndex]] = deque()
        # Writes that the disk has not finished, oldest first: index and term of the last entry, and
        # the last index for which the write still counts.
        self._begin_behind(snapshot)
        self.voters: tuple[NodeId, ...] = snapshot.voters if snapshot else ()
        """The voters; empty until a configuration is known (such a member only follows)."""

    def _begin_behind(self, snapshot: SnapshotMeta | None) -> None:
        boundary, term = (snapshot.index, snapshot.term) if snapshot else (0, 0)
        self.snapshot = snapshot
        """Replaces all entries before `first_index`; None if there are none."""
        self.first_index: LogIndex = boundary + 1
        self.last_index: LogIndex = boundary
        self.persisted: LogIndex = boundary
        """The disk holds the entries of this log up to here."""
        self._run_first = [boundary]
        self._run_term = [term]
        self._totals = array("q", [0])
        # _totals[i] is the size of all entries from first_index through first_index - 1 + i, plus
        # a constant that compaction leaves behind.

    @classmethod
    def restore(cls, snapshot: SnapshotMeta | None, entries: Iterable[Entry]) -> RaftLog:
        """The index of a log that was read from disk; all entries count as persisted.

        Reads index, term, kind and size of each entry, and the payload of configurations only.
        Raises `CorruptStateError` if an index is missing or terms go back.
        """
        log = cls(snapshot)
        log.learn(entries)
        return log

    def learn(self, entries: Iterable[Entry]) -> None:
        """As `restore`, for a log that is read in parts: add the next part."""
        last, term, total = self.last_index, self.last_term, self._totals[-1]
        add, configuration = self._totals.append, EntryKind.CONFIGURATION
        for entry in entries:
            if entry.index != last + 1 or entry.term < term:
                raise CorruptStateError(
                    f"entry {entry.index} of term {entry.term} follows entry {last} of term {term}"
                )
            last += 1
            total += entry.size
            add(total)
            if entry.term != term:
                term = entry.term
                self._run_first.append(last)
                self._run_term.append(term)
            if entry.kind is configuration:
                self.voters = decode_voters(entry)
        self.last_index = self.persisted = last

    # -- reading

    @property
    def last_term(self) -> Term:
        """Term of the last entry, or of the boundary when there is none."""
        return self._run_term[-1]

    def term_at(self, index: LogIndex) -> Term | None:
        """The term of an entry or of the boundary; None for an index outside the log."""
        if index > self.last_index:
            return None
        if index >= self._run_first[-1]:
            return self._run_term[-1]
        if index < self._run_first[0]:
            return None
        return self._run_term[bisect_right(self._run_first, index) - 1]

    def bytes_between(self, after: LogIndex, last: LogIndex) -> int:
        """Size of entries `after + 1 .. last` in bytes; compacted entries count as 0."""
        boundary = self.first_index - 1
        after = max(after, boundary)
        if last <= after:
            return 0
        return self._totals[last - boundary] - self._totals[after - boundary]

    def range_end(self, first: LogIndex, budget: int) -> LogIndex:
        """The last index of the longest range that begins at `first` and fits into `budget` bytes;
        at least `first`, which must be within `first_index .. last_index`."""
        boundary = self.first_index - 1
        limit = self._totals[first - 1 - boundary] + budget
        if self._totals[-1] <= limit:
            return self.last_index
        fits = boundary + bisect_right(self._totals, limit, first - boundary) - 1
        return max(first, fits)

    def agreement_hint(self, index: LogIndex, term: Term) -> tuple[LogIndex, Term]:
        """The last index at or before `index` whose term is at most `term`, and that term.

        Another log has `term` at `index`. Terms never fall along a log, so between the returned
        index and `index` the two logs cannot agree. Follower and leader each skip whole terms by
        this (thesis 3.5; paper 5.3, end). An index below the boundary is returned unchanged with
        term 0, because its term is not known.
        """
        index = min(index, self.last_index)
        position = bisect_right(self._run_first, index) - 1
        while position >= 0:
            if self._run_term[position] <= term:
                return index, self._run_term[position]
            index = self._run_first[position] - 1
            position -= 1
        return max(index, 0), 0

    # -- changing

    def continues(self, prev_index: LogIndex, term: Term) -> bool:
        """Whether `prev_index` is the last entry, and of this term."""
        return prev_index == self.last_index and term == self._run_term[-1]

    def append(self, entries: Sequence[Entry]) -> None:
        """Add entries behind the last one; they are not persisted yet."""
        first = entries[0].index
        assert first == self.last_index + 1, (
            f"append at {first}, but the log ends at {self.last_index}"
        )
        total = self._totals[-1]
        add = self._totals.append
        for entry in entries:
            total += entry.size
            add(total)
        self.last_index = first + len(entries) - 1
        if entries[-1].term != self._run_term[-1]:  # equal ends have equal terms between them
            self._append_runs(entries)
        if not self.voters:
            self._learn_voters(entries)

    def _append_runs(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            last_term = self._run_term[-1]
            if entry.term != last_term:
                assert entry.term > last_term, (
                    f"entry {entry.index} has term {entry.term} behind term {last_term}"
                )
                self._run_first.append(entry.index)
                self._run_term.append(entry.term)

    def _learn_voters(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.kind is EntryKind.CONFIGURATION:
                self.voters = decode_voters(entry)

    def truncate_from(self, index: LogIndex) -> None:
        """Drop entry `index` and all later ones: entries of a new leader replace them."""
        boundary = self.first_index - 1
        assert boundary < index <= self.last_index, (
            f"truncate from {index}, but the log is {self.first_index}..{self.last_index}"
        )
        del self._totals[index - boundary :]
        while self._run_first[-1] >= index:
            del self._run_first[-1], self._run_term[-1]
        self.last_index = index - 1
        self.persisted = min(self.persisted, index - 1)
        self._writes = deque((end, term, min(to, index - 1)) for end, term, to in self._writes)

    def compact(self, meta: SnapshotMeta) -> None:
        """Drop all entries up to `meta.index`: a stored snapshot replaces them."""
        assert self.first_index <= meta.index <= self.last_index, (
            f"compact to {meta.index}, but the log is {self.first_index}..{self.last_index}"
        )
        term = self.term_at(meta.index)
        assert term == meta.term, f"entry {meta.index} has term {term}, the snapshot {meta.term}"
        del self._totals[: meta.index - self.first_index + 1]
        position = bisect_right(self._run_first, meta.index) - 1
        del self._run_first[:position], self._run_term[:position]
        self._run_first[0] = meta.index
        self.first_index = meta.index + 1
        self.snapshot = meta

    def install(self, meta: SnapshotMeta) -> None:
        """Replace the whole log by a snapshot of the leader, which is not persisted yet."""
        self._writes = deque((end, term, 0) for end, term, _ in self._writes)
        persisted = min(self.persisted, meta.index - 1)  # the disk has another entry at `index`
        self._begin_behind(meta)
        self.persisted = persisted
        self.voters = meta.voters

    # -- what the disk does

    def begin_write(self, index: LogIndex, term: Term) -> None:
        """A `Ready` was handed out; its last entry (or snapshot) is `index` of `term`."""
        self._writes.append((index, term, index))

    def finish_write(self, index: LogIndex, term: Term) -> bool:
        """The disk finished the write whose last entry this is, and every earlier write. Returns
        whether `persisted` grew.

        It is not enough to compare the entry's term with the log's: an entry may be truncated,
        replaced, and sent again by a third leader while all three writes are in flight (append
        ABA). Writes finish in order, so this is the oldest write with this last entry; a truncation
        has lowered the index for which it counts. A caller that joins several writes may name only
        the last; then `persisted` may be too low until the next write. An entry that ends no write
        in flight is ignored.
        """
        writes = self._writes
        if writes and writes[0][0] == index and writes[0][1] == term:  # nearly always
            durable = writes.popleft()[2]
        else:
            durable = self._take_through(index, term)
        if durable <= self.persisted:
            return False
        self.persisted = durable
        return True

    def _take_through(self, index: LogIndex, term: Term) -> LogIndex:
        """Remove the writes up to the oldest one that ends in this entry. Returns the highest index
        for which one of them counts; 0 if there is no such write."""
        writes = self._writes
        if not any(end == index and of == term for end, of, _ in writes):
            return 0
        durable, ended = 0, False
        while not ended:
            end, of, to = writes.popleft()
            durable = max(durable, to)
            ended = end == index and of == term
        return durable


def bootstrap(voters: Iterable[NodeId]) -> tuple[RaftLog, list[Entry]]:
    """The first log of each member of a fresh group, and its entries, which the caller must store.

    Entry 1 of term 0 names the voters. It is the same on every member, so it needs no election. The
    caller stores it with `HardState()` in the transaction that creates the group.
    """
    members = sorted(dict.fromkeys(voters))
    payload: bytes = msgpack.packb(members)
    entries = [Entry(1, 0, EntryKind.CONFIGURATION, payload)]
    return RaftLog.restore(None, entries), entries


def decode_voters(entry: Entry) -> tuple[NodeId, ...]:
    """The voters that a CONFIGURATION entry names. Raises `CorruptStateError` if it names none."""
    payload = entry.payload
    assert isinstance(payload, bytes), f"configuration {entry.index} is a {type(payload)}"
    try:
        members = msgpack.unpackb(payload)
        return tuple(sorted(int(member) for member in members))
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise CorruptStateError(f"configuration {entry.index} names no voters") from error
