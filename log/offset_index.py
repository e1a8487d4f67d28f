"""`OffsetIndex`: between log indexes, which count entries, and Kafka offsets, which count records.

**Theory.** A replica's log is a run of entries with consecutive indexes. An entry that holds a
record batch takes `record_count` offsets, every other entry takes none. So the log is a staircase:
`end_offset(index)` never falls as the index rises, and the entry that holds an offset is the first
one whose end lies beyond it. The index keeps that staircase for the entries in the log, follows
every append, truncation and compaction, and answers in both directions.

**Layout.** Entries lie in *blocks* of 256 consecutive indexes, a block being two plain lists (end
offset, max timestamp). Blocks lie in a `SortedDict` under (base offset, first index), which finds
the block of an offset; an index finds its block by division. An append only notes the entries; they
are filed into their blocks when a block is full, or somebody asks. So an append costs one list
extension, a compaction drops whole blocks without moving what stays, a search looks at two small
sorted lists, and a search by timestamp skips blocks by their largest one.

**Leader epochs** (KIP-101; leader epoch = Raft term): every term that has an entry in the log is
kept in a second `SortedDict`, term -> (first index, start offset). An epoch that wrote no record
shares its start with the next one and is left out of `epoch_starts`, as Kafka's epoch cache does;
it is kept inside because a truncation can bring it back to the end of the log.

The index is memory only: it is rebuilt from the entries after a restart, on top of the
`IndexState` that a snapshot carries for what was compacted away.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sortedcontainers import SortedDict

from ottla.log.types import NO_TIMESTAMP, EpochStart, Millis, Offset, RecordBatch
from ottla.raft.types import Entry, EntryKind, LogIndex, Term

BLOCK_ENTRIES = 256
"""Entries to a block."""

_ANY_INDEX = 1 << 63
_BATCH = EntryKind.BATCH


class IndexState(NamedTuple):
    """What a snapshot keeps of the entries up to `last_index`: enough to go on from there."""

    last_index: LogIndex
    next_offset: Offset
    """Offset behind the last record up to `last_index`."""
    epochs: tuple[EpochStart, ...]
    """Epoch history up to there, oldest first; the last one is the term of `last_index`."""


EMPTY_STATE = IndexState(0, 0, ())
"""Before the first entry."""


class _Block:
    """Consecutive entries `first_index ..`, all in one block number."""

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
        """Only the first `keep` entries stay."""
        del self.ends[keep:], self.max_timestamps[keep:]
        self._largest_of = 0

    def behind(self, gone: int) -> _Block:
        """A block of the entries behind the first `gone` ones."""
        rest = _Block(self.first_index + gone, self.ends[gone - 1])
        rest.ends = self.ends[gone:]
        rest.max_timestamps = self.max_timestamps[gone:]
        return rest

    def first_batch(self, start: int, stop: int) -> LogIndex | None:
        """The first entry at these positions that holds records."""
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
    """The map of one replica's log. See the module's text.

    `first_index .. last_index` are the entries it knows; offsets `first_offset .. next_offset - 1`
    are the records in them.
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
        """Offset of the first record kept, or the one that would be."""
        return self._base_offset

    # ---- following the log

    def extend(self, entries: Sequence[Entry]) -> None:
        """These entries are now the tail of the log; indexes and offsets must follow on."""
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
        """Put into their blocks what was only noted."""
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
        """Entries from `index` on are gone."""
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
        """Entries up to and including `index` are gone; their offsets are no longer found."""
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
        """What a snapshot at `index` must carry; `index` is in the log or the one before it."""
        self._file()
        offset = self.end_offset(index)
        known = [
            EpochStart(term, start)
            for term, (first, start) in self._epochs.items()
            if first <= index
        ]
        return IndexState(index, offset, tuple(_without_empty(known)))

    def restore(self, state: IndexState) -> None:
        """Forget everything and start behind `state`."""
        self._unfiled.clear()
        self._blocks.clear()
        self._by_offset.clear()
        self._epochs.clear()
        for epoch, start in state.epochs:
            # Index 0: no truncation reaches what a snapshot stands for.
            self._epochs[epoch] = (0, start)
        self._base_index = self.last_index = state.last_index
        self._base_offset = self.next_offset = self._filed_offset = state.next_offset
        self._last_term = state.epochs[-1].epoch if state.epochs else 0

    # ---- index <-> offset

    def end_offset(self, index: LogIndex) -> Offset:
        """Offset behind the last record up to and including entry `index`."""
        if index == self.last_index:
            return self.next_offset
        if index == self._base_index:
            return self._base_offset
        block = self._block_of(index)
        return block.ends[index - block.first_index]

    def base_offset(self, index: LogIndex) -> Offset:
        """Offset of the first record of entry `index`, or where it would be."""
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
        """First batch of `first .. last` whose max timestamp is `timestamp` or later, or None.

        By the batch's header: whether a record in it is late enough, a look inside tells
        (`ottla.log.records.first_record_at_or_after`). Blocks without a candidate cost one look.
        """
        wanted = max(timestamp, NO_TIMESTAMP + 1)
        for block, start, stop in self._slices(first, last):
            if block.largest() < wanted:
                continue
            for position in range(start, stop):
                if block.max_timestamps[position] >= wanted:
                    return block.first_index + position
        return None

    def with_max_timestamp(self, first: LogIndex, last: LogIndex) -> LogIndex | None:
        """First batch of `first .. last` with the largest max timestamp, which is that of the first
        one where none has a time; None without a batch."""
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
        """Epoch history, oldest first; epochs that wrote nothing are left out but for the last."""
        self._file()
        return _without_empty(
            [EpochStart(term, start) for term, (_, start) in self._epochs.items()]
        )

    def end_offset_for_epoch(
        self, epoch: Term, log_end: Offset, log_start: Offset = 0
    ) -> EpochStart | None:
        """The largest epoch <= `epoch` and the offset behind its last record.

        `log_end` ends the latest epoch (what the asker may see of the log), `log_start` starts the
        first: epochs that end there or before are forgotten. None when `epoch` is later than every
        epoch in the log, or -1. An epoch before the first one known ends where the first one
        starts. Source: Kafka, LeaderEpochFileCache.endOffsetFor, truncateFromStart (KIP-101,
        KIP-279).
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
        """Keep of the compacted epochs what `state` names, starting no earlier than its offset."""
        later = [(term, at) for term, at in self._epochs.items() if at[0] > state.last_index]
        self._epochs.clear()
        for epoch, start in state.epochs:
            self._epochs[epoch] = (0, start)
        self._epochs.update(later)

    def _slices(self, first: LogIndex, last: LogIndex) -> Iterator[tuple[_Block, int, int]]:
        """The blocks of `first .. last` with the positions in each that belong to the range."""
        first = max(first, self.first_index)
        last = min(last, self.last_index)
        while first <= last:
            block = self._block_of(first)
            stop = min(len(block.ends), last + 1 - block.first_index)
            yield block, first - block.first_index, stop
            first = block.first_index + stop


def _not_below(log_start: Offset, starts: list[EpochStart]) -> list[EpochStart]:
    """What is left of an epoch history when the records below `log_start` are gone."""
    gone = bisect_right(starts, log_start, key=lambda start: start.start_offset) - 1
    return [EpochStart(starts[gone].epoch, log_start), *starts[gone + 1 :]] if gone >= 0 else starts


def _without_empty(starts: list[EpochStart]) -> list[EpochStart]:
    """Leave out epochs that start where the next one does: they wrote no record."""
    return [
        start
        for position, start in enumerate(starts, 1)
        if position == len(starts) or starts[position].start_offset != start.start_offset
    ]
