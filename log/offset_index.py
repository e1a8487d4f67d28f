"""`OffsetIndex`: maps log indexes, which count entries, to Kafka offsets, which count records.

**Theory.** A replica's log is a run of entries with consecutive indexes. An entry with a record
batch takes `record_count` offsets; every other entry takes none. So `end_offset(index)` never falls
as the index rises, and the entry that holds an offset is the first one whose end offset is larger.
The index keeps the end offsets of the entries in the log, follows every append, truncation and
compaction, and maps in both directions.

**Layout.** Entries are in *blocks* of 256 consecutive indexes. A block is two lists: end offsets
and max timestamps. A `SortedDict` with the keys (base offset, first index) finds the block of an
offset; a division finds the block of an index. An append only collects the entries. They are put
into blocks when a block is full or somebody asks. So an append costs one list extension, a
compaction drops whole blocks, a search looks at two small sorted lists, and a search by timestamp
skips a block whose largest timestamp is too small.

**Leader epochs** (KIP-101; leader epoch = Raft term): a second `SortedDict` has every term with an
entry in the log: term -> (first index, start offset). An epoch without a record starts at the same
offset as the next epoch, and `epoch_starts` leaves it out, as Kafka's epoch cache does. The index
keeps it, because after a truncation it may be the last epoch of the log.

The index exists only in memory. After a restart it is built again from the `IndexState` of the
snapshot, which covers the compacted entries, and the entries of the log.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sortedcontainers import SortedDict

from ottla.log.types import NO_TIMESTAMP, EpochStart, Millis, Offset, RecordBatch
from ottla.raft.types import Entry, EntryKind, LogIndex, Term

BLOCK_ENTRIES = 256
"""Entries in a block."""

_ANY_INDEX = 1 << 63
_BATCH = EntryKind.BATCH


class IndexState(NamedTuple):
    """What a snapshot keeps of the entries up to `last_index`, so that an index can begin there."""

    last_index: LogIndex
    next_offset: Offset
    """The offset after the last record up to `last_index`."""
    epochs: tuple[EpochStart, ...]
    """The epoch history up to `last_index`, oldest first; the last one is the term of that
    entry."""


EMPTY_STATE = IndexState(0, 0, ())
"""Before the first entry."""


class _Block:
    """Consecutive entries from `first_index` on, all of one block number."""

    __slots__ = (
        "_largest",
        "_largest_of",
        "base_offset",
        "ends",
        "first_index",
        "max_timestamps",
    )

    def __init__(self, first_index: LogIndex, base_offset: Offset):
        self.first_index = first_index
        self.base_offset = base_offset
        self.ends: list[Offset] = []
        self.max_timestamps: list[Millis] = []
        self._largest = NO_TIMESTAMP
        self._largest_of = 0

    def cut(self, keep: int) -> None:
        """Keep only the first `keep` entries."""
        del self.ends[keep:], self.max_timestamps[keep:]
        self._largest_of = 0

    def behind(self, gone: int) -> _Block:
        """A new block without the first `gone` entries."""
        rest = _Block(self.first_index + gone, self.ends[gone - 1])
        rest.ends = self.ends[gone:]
        rest.max_timestamps = self.max_timestamps[gone:]
        return rest

    def first_batch(self, start: int, stop: int) -> LogIndex | None:
        """Index of the first entry at positions `start .. stop - 1` that holds records, or None."""
        before = self.ends[start - 1] if start else self.base_offset
        position = bisect_right(self.ends, before, start, stop)
        return self.first_index + position if position < stop else None

    def largest(self) -> Millis:
        """The largest timestamp of the block, computed again only after it changed."""
        if self._largest_of != len(self.max_timestamps):
            self._largest = max(self.max_timestamps)
            self._largest_of = len(self.max_timestamps)
        return self._largest


class OffsetIndex:
    """The index of one replica's log. See the module's docstring.

    It covers the entries `first_index .. last_index` and their records, which have the offsets
    `first_offset .. next_offset - 1`.
    """

    def __init__(self, state: IndexState = EMPTY_STATE):
        self._blocks: dict[int, _Block] = {}
        self._by_offset = SortedDict()
        self._epochs = SortedDict()
        self._base_index: LogIndex = 0
        self._base_offset: Offset = 0
        self.last_index: LogIndex = 0
        """Index of the last entry; `first_index - 1` when there is none."""
        self.next_offset: Offset = 0
        """Offset that the next record gets: the log end offset."""
        self._unfiled: list[Entry] = []
        self._filed_offset: Offset = 0
        self._last_term: Term = 0
        self.restore(state)

    # ---- what it covers

    @property
    def first_index(self) -> LogIndex:
        """Index of the first entry kept."""
        return self._base_index + 1

    @property
    def first_offset(self) -> Offset:
        """Offset of the first record that is kept; if there is none, of the next record."""
        return self._base_offset

    # ---- following the log

    def extend(self, entries: Sequence[Entry]) -> None:
        """Add entries at the end of the log. Asserts that their indexes and offsets continue it."""
        if not entries:
            return
        last, before = entries[-1], self.last_index
        index = self.last_index = before + len(entries)
        unfiled = self._unfiled
        unfiled += entries
        if last.index != index or last.kind is not _BATCH or len(unfiled) >= BLOCK_ENTRIES:
            self._file()
            return
        batch: RecordBatch = last.payload
        assert len(entries) > 1 or batch.base_offset == self.next_offset, (
            f"batch at index {index} has base offset {batch.base_offset}, log end "
            f"{self.next_offset}"
        )
        self.next_offset = batch.base_offset + batch.last_offset_delta + 1

    def _file(self) -> None:
        """Put the collected entries into blocks."""
        unfiled, self._unfiled = self._unfiled, []
        if not unfiled:
            return
        index = self.last_index - len(unfiled)
        offset = self._filed_offset
        term = self._last_term
        block = self._blocks.get(index // BLOCK_ENTRIES)
        for entry in unfiled:
            index += 1
            assert entry.index == index, f"entry {entry.index} follows index {index - 1}"
            if block is None or index % BLOCK_ENTRIES == 0:
                block = _Block(index, offset)
                self._add_block(block)
            if entry.term != term:
                term = entry.term
                self._start_epoch(term, index, offset)
            if entry.kind is _BATCH:
                batch: RecordBatch = entry.payload
                assert batch.base_offset == offset, (
                    f"batch at index {index} has base offset {batch.base_offset}, log end {offset}"
                )
                offset += batch.last_offset_delta + 1
                block.max_timestamps.append(batch.max_timestamp)
            else:
                block.max_timestamps.append(NO_TIMESTAMP)
            block.ends.append(offset)
        self.next_offset = self._filed_offset = offset
        self._last_term = term

    def truncate_from(self, index: LogIndex) -> None:
        """Drop the entries from `index` on."""
        assert index > self._base_index, f"truncate from {index}, compacted to {self._base_index}"
        if index > self.last_index:
            return
        self._file()
        while self._epochs and self._epochs.peekitem()[1][0] >= index:
            self._epochs.popitem()
        for number in range(self.last_index // BLOCK_ENTRIES, index // BLOCK_ENTRIES, -1):
            self._drop_block(number)
        block = self._block_of(index)
        keep = index - block.first_index
        block.cut(keep)
        self.next_offset = block.ends[-1] if keep else block.base_offset
        self._filed_offset = self.next_offset
        if not keep:
            self._drop_block(index // BLOCK_ENTRIES)
        self.last_index = index - 1
        self._last_term = self._epochs.peekitem()[0] if self._epochs else 0

    def compact_to(self, index: LogIndex) -> None:
        """Drop entries up to and including `index`; their offsets can no longer be found."""
        if index <= self._base_index:
            return
        assert index <= self.last_index, f"compact to {index}, last index {self.last_index}"
        self._file()
        state = self.state_at(index)
        for number in range(self.first_index // BLOCK_ENTRIES, index // BLOCK_ENTRIES):
            self._drop_block(number)
        block = self._block_of(index)
        gone = index + 1 - block.first_index
        self._drop_block(index // BLOCK_ENTRIES)
        if gone < len(block.ends):
            self._add_block(block.behind(gone))
        self._forget_epochs(state)
        self._base_index = index
        self._base_offset = state.next_offset

    def state_at(self, index: LogIndex) -> IndexState:
        """The state for a snapshot at `index`, which must be in the log or just before it."""
        self._file()
        offset = self.end_offset(index)
        known = [
            EpochStart(term, start)
            for term, (first, start) in self._epochs.items()
            if first <= index
        ]
        return IndexState(index, offset, tuple(_without_empty(known)))

    def restore(self, state: IndexState) -> None:
        """Drop everything and begin after `state.last_index`."""
        self._unfiled.clear()
        self._blocks.clear()
        self._by_offset.clear()
        self._epochs.clear()
        for epoch, start in state.epochs:
            # Index 0, because no truncation reaches entries that a snapshot replaces.
            self._epochs[epoch] = (0, start)
        self._base_index = self.last_index = state.last_index
        self._base_offset = self.next_offset = self._filed_offset = state.next_offset
        self._last_term = state.epochs[-1].epoch if state.epochs else 0

    # ---- index <-> offset

    def end_offset(self, index: LogIndex) -> Offset:
        """The offset after the last record up to and including entry `index`."""
        if index == self.last_index:
            return self.next_offset
        if index == self._base_index:
            return self._base_offset
        block = self._block_of(index)
        return block.ends[index - block.first_index]

    def base_offset(self, index: LogIndex) -> Offset:
        """Offset of the first record of entry `index`; of the next record if it has none."""
        return self.end_offset(index - 1)

    def index_of(self, offset: Offset) -> LogIndex:
        """Index of the entry that holds record `offset`; it must be in the log."""
        assert self._base_offset <= offset < self.next_offset, (
            f"offset {offset} outside {self._base_offset}..{self.next_offset - 1}"
        )
        self._file()
        position = self._by_offset.bisect_right((offset, _ANY_INDEX)) - 1
        block: _Block = self._by_offset.peekitem(position)[1]
        return block.first_index + bisect_right(block.ends, offset)

    # ---- timestamps

    def first_with_timestamp(
        self, timestamp: Millis, first: LogIndex, last: LogIndex
    ) -> LogIndex | None:
        """The first batch of `first .. last` whose max timestamp is `timestamp` or later, or None.

        Only headers are compared: `ottla.log.records.first_record_at_or_after` then searches the
        batch for the record. A batch without a time is behind the times below -1.
        """
        wanted = max(timestamp, NO_TIMESTAMP)
        for block, start, stop in self._slices(first, last):
            if wanted == NO_TIMESTAMP:  # any batch; but an entry that is none has no time either
                found = block.first_batch(start, stop)
                if found is not None:
                    return found
                continue
            if block.largest() < wanted:
                continue
            for position in range(start, stop):
                if block.max_timestamps[position] >= wanted:
                    return block.first_index + position
        return None

    def with_max_timestamp(self, first: LogIndex, last: LogIndex) -> LogIndex | None:
        """The first batch of `first .. last` with the largest max timestamp. If no batch has a
        timestamp, the first batch; None if there is no batch."""
        best, found = NO_TIMESTAMP, None
        for block, start, stop in self._slices(first, last):
            if block.largest() <= best and found is not None:
                continue
            largest = max(block.max_timestamps[start:stop])
            if largest > best:
                best = largest
                found = block.first_index + block.max_timestamps.index(largest, start)
            elif found is None:
                found = block.first_batch(start, stop)
        return found

    # ---- leader epochs

    def epoch_starts(self) -> list[EpochStart]:
        """Epoch history, oldest first. Epochs without a record are left out, except the last."""
        self._file()
        return _without_empty(
            [EpochStart(term, start) for term, (_, start) in self._epochs.items()]
        )

    def end_offset_for_epoch(
        self, epoch: Term, log_end: Offset, log_start: Offset = 0
    ) -> EpochStart | None:
        """The largest epoch <= `epoch`, and the offset after its last record.

        The latest epoch ends at `log_end`, which is as far as the asker may read. The first epoch
        starts at `log_start`; epochs that end there or before do not count. An epoch before the
        first known one ends where the first one starts. None if `epoch` is -1 or later than every
        epoch in the log. Source: Kafka, LeaderEpochFileCache.endOffsetFor, truncateFromStart
        (KIP-101, KIP-279).
        """
        starts = _not_below(log_start, self.epoch_starts())
        if epoch == -1 or not starts or epoch > starts[-1].epoch:
            return None
        higher = bisect_right(starts, epoch, key=lambda start: start.epoch)
        if higher == len(starts):
            return EpochStart(starts[-1].epoch, log_end)
        found = starts[higher - 1].epoch if higher else epoch
        return EpochStart(found, starts[higher].start_offset)

    # ---- inside

    def _add_block(self, block: _Block) -> None:
        self._blocks[block.first_index // BLOCK_ENTRIES] = block
        self._by_offset[block.base_offset, block.first_index] = block

    def _drop_block(self, number: int) -> None:
        block = self._blocks.pop(number)
        del self._by_offset[block.base_offset, block.first_index]

    def _block_of(self, index: LogIndex) -> _Block:
        assert self._base_index < index <= self.last_index, (
            f"index {index} outside {self._base_index + 1}..{self.last_index}"
        )
        self._file()
        return self._blocks[index // BLOCK_ENTRIES]

    def _start_epoch(self, term: Term, index: LogIndex, offset: Offset) -> None:
        assert term > self._last_term_kept(), (
            f"term {term} at index {index} after term {self._last_term_kept()}"
        )
        self._epochs[term] = (index, offset)

    def _last_term_kept(self) -> Term:
        return self._epochs.peekitem()[0] if self._epochs else 0

    def _forget_epochs(self, state: IndexState) -> None:
        """Replace the epochs of compacted entries by those of `state`."""
        later = [(term, at) for term, at in self._epochs.items() if at[0] > state.last_index]
        self._epochs.clear()
        for epoch, start in state.epochs:
            self._epochs[epoch] = (0, start)
        self._epochs.update(later)

    def _slices(self, first: LogIndex, last: LogIndex) -> Iterator[tuple[_Block, int, int]]:
        """The blocks of entries `first .. last`, each with the first position in the range and the
        position after the last."""
        first = max(first, self.first_index)
        last = min(last, self.last_index)
        while first <= last:
            block = self._block_of(first)
            stop = min(len(block.ends), last + 1 - block.first_index)
            yield block, first - block.first_index, stop
            first = block.first_index + stop


def _not_below(log_start: Offset, starts: list[EpochStart]) -> list[EpochStart]:
    """The epoch history without the records below `log_start`."""
    gone = bisect_right(starts, log_start, key=lambda start: start.start_offset) - 1
    return [EpochStart(starts[gone].epoch, log_start), *starts[gone + 1 :]] if gone >= 0 else starts


def _without_empty(starts: list[EpochStart]) -> list[EpochStart]:
    """Leave out epochs that start at the same offset as the next one: they have no record."""
    return [
        start
        for position, start in enumerate(starts, 1)
        if position == len(starts) or starts[position].start_offset != start.start_offset
    ]
