"""`OffsetIndex` against a list of entries that is searched from the front.

The naive index answers the same questions by looking at every entry since the beginning, so it
needs no blocks, no sorted keys and no bookkeeping under truncation and compaction.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import log_kit as kit
from ottla.log.offset_index import BLOCK_ENTRIES, EMPTY_STATE, IndexState, OffsetIndex
from ottla.log.types import EpochStart, RecordBatch


def records_in(entry):
    return entry.payload.record_count if isinstance(entry.payload, RecordBatch) else 0


def time_of(entry):
    return entry.payload.max_timestamp if isinstance(entry.payload, RecordBatch) else -1


class NaiveIndex:
    """The same questions, answered by looking at every entry since the beginning."""

    def __init__(self):
        self.entries = []
        self.base = 0

    @property
    def last(self):
        return len(self.entries)

    def end(self, index):
        return sum(map(records_in, self.entries[:index]))

    def index_of(self, offset):
        end = 0
        for each in self.entries:
            end += records_in(each)
            if end > offset:
                return each.index
        raise AssertionError(f"no record {offset}, the log ends at {end}")

    def kept(self, first, last):
        return self.entries[max(first, self.base + 1) - 1 : last]

    def first_with_timestamp(self, timestamp, first, last):
        wanted = max(timestamp, -1)
        with_records = [each for each in self.kept(first, last) if records_in(each)]
        late = [each.index for each in with_records if time_of(each) >= wanted]
        return late[0] if late else None

    def with_max_timestamp(self, first, last):
        timed = [each for each in self.kept(first, last) if time_of(each) >= 0]
        return max(timed, key=lambda each: (time_of(each), -each.index)).index if timed else None

    def epoch_starts(self, index):
        """Kafka's rule: noted when an epoch starts, dropped when the next one starts there."""
        starts: dict[int, int] = {}
        at = 0
        for each in self.entries[:index]:
            if each.term not in starts:
                starts = {term: start for term, start in starts.items() if start < at}
                starts[each.term] = at
            at += records_in(each)
        return [EpochStart(*start) for start in starts.items()]

    def end_of_epoch(self, epoch, log_end):
        starts = self.epoch_starts(self.last)
        if not starts or epoch == -1 or epoch > starts[-1].epoch:
            return None
        later = [start for start in starts if start.epoch > epoch]
        earlier = [start for start in starts if start.epoch <= epoch]
        return EpochStart(
            earlier[-1].epoch if earlier else epoch,
            later[0].start_offset if later else log_end,
        )


class IndexMachine(RuleBasedStateMachine):
    """Appends, truncations, compactions and restarts, in any order."""

    def __init__(self):
        super().__init__()
        self.index = OffsetIndex()
        self.naive = NaiveIndex()
        self.term = 1

    @rule(
        kinds=st.lists(st.integers(0, 3), max_size=8),
        new_term=st.booleans(),
        time=st.integers(-1, 50),
    )
    def append(self, kinds, new_term, time):
        self.term += new_term
        run, offset = [], self.naive.end(self.naive.last)
        for index, count in enumerate(kinds, self.naive.last + 1):
            if count:
                values = [b"x" * count] * count
                moment = time + index % 3
                run.append(
                    kit.batch_entry(index, self.term, offset, values=values, timestamp=moment)
                )
            else:
                run.append(kit.command_entry(index, self.term))
            offset += count
        self.index.extend(run)
        self.naive.entries += run

    @rule(count=st.integers(BLOCK_ENTRIES - 3, 2 * BLOCK_ENTRIES + 3), empty=st.booleans())
    def append_blocks(self, count, empty):
        if self.naive.last < 4 * BLOCK_ENTRIES:
            first, offset = self.naive.last + 1, self.naive.end(self.naive.last)
            run = [
                kit.command_entry(index, self.term)
                if empty
                else kit.batch_entry(index, self.term, offset + index - first, timestamp=index % 40)
                for index in range(first, first + count)
            ]
            self.index.extend(run)
            self.naive.entries += run

    @rule(data=st.data())
    def truncate(self, data):
        first = data.draw(st.integers(self.naive.base + 1, self.naive.last + 2))
        self.index.truncate_from(first)
        del self.naive.entries[first - 1 :]
        self.term += 1

    @rule(data=st.data())
    def compact(self, data):
        upto = data.draw(st.integers(max(0, self.naive.base - 1), self.naive.last))
        self.index.compact_to(upto)
        self.naive.base = max(self.naive.base, upto)

    @rule()
    def restart(self):
        state = self.index.state_at(self.naive.base)
        self.index = OffsetIndex(state)
        self.index.extend(self.naive.entries[self.naive.base :])

    @invariant()
    def bounds_agree(self):
        assert (self.index.first_index, self.index.last_index) == (
            self.naive.base + 1,
            self.naive.last,
        )
        assert (self.index.first_offset, self.index.next_offset) == (
            self.naive.end(self.naive.base),
            self.naive.end(self.naive.last),
        )

    @invariant()
    def epochs_agree(self):
        assert self.index.epoch_starts() == self.naive.epoch_starts(self.naive.last)

    @rule(data=st.data())
    def ask_for_places(self, data):
        index = data.draw(st.integers(self.naive.base, self.naive.last))
        assert self.index.end_offset(index) == self.naive.end(index)
        assert self.index.state_at(index) == IndexState(
            index, self.naive.end(index), tuple(self.naive.epoch_starts(index))
        )
        start, end = self.naive.end(self.naive.base), self.naive.end(self.naive.last)
        if start < end:
            offset = data.draw(st.integers(start, end - 1))
            assert self.index.index_of(offset) == self.naive.index_of(offset)
            found = self.index.index_of(offset)
            assert self.index.base_offset(found) == self.naive.end(found - 1)

    @rule(data=st.data(), timestamp=st.integers(-2, 60))
    def ask_for_ranges(self, data, timestamp):
        if self.naive.base == self.naive.last:
            return
        first = data.draw(st.integers(self.naive.base + 1, self.naive.last))
        last = data.draw(st.integers(first, self.naive.last))
        asked = (first, last)
        assert self.index.first_with_timestamp(
            timestamp, *asked
        ) == self.naive.first_with_timestamp(timestamp, *asked)
        assert self.index.with_max_timestamp(*asked) == self.naive.with_max_timestamp(*asked)

    @rule(epoch=st.integers(-3, 30))
    def ask_for_epochs(self, epoch):
        assert self.index.end_offset_for_epoch(epoch, 77_777) == self.naive.end_of_epoch(
            epoch, 77_777
        )


@pytest.mark.slow
def test_the_index_answers_as_the_log_itself_would():
    run_state_machine_as_test(
        IndexMachine, settings=settings(max_examples=40, stateful_step_count=25)
    )


def filled():
    index = OffsetIndex()
    index.extend(
        [
            kit.command_entry(1, 1),
            kit.batch_entry(2, 1, 0, values=[b"a", b"b", b"c"], timestamp=10),
            kit.command_entry(3, 4),
            kit.command_entry(4, 6),
            kit.batch_entry(5, 6, 3, timestamp=30),
        ]
    )
    return index


def test_offsets_count_records_and_indexes_count_entries():
    index = filled()
    assert [index.end_offset(each) for each in range(6)] == [0, 0, 3, 3, 3, 4]
    assert [index.index_of(offset) for offset in range(4)] == [2, 2, 2, 5]


def test_timestamps_of_truncated_batches_are_forgotten():
    index = filled()
    assert index.first_with_timestamp(20, 1, 5) == 5
    assert index.with_max_timestamp(1, 5) == 5
    index.truncate_from(5)
    index.extend([kit.batch_entry(5, 6, 3, timestamp=5)])
    assert index.first_with_timestamp(20, 1, 5) is None
    assert index.with_max_timestamp(1, 5) == 2
    index.truncate_from(5)
    index.extend([kit.batch_entry(5, 6, 3, timestamp=90)])
    assert index.first_with_timestamp(80, 1, 5) == 5
    assert index.with_max_timestamp(1, 5) == 5


def test_the_time_of_the_newest_batch_itself_is_found():
    index = filled()
    assert index.first_with_timestamp(30, 1, 5) == 5
    assert index.first_with_timestamp(31, 1, 5) is None


def test_an_epoch_that_wrote_nothing_is_left_out_and_comes_back_with_a_truncation():
    index = filled()
    assert index.epoch_starts() == [EpochStart(1, 0), EpochStart(6, 3)]
    index.truncate_from(4)
    assert index.epoch_starts() == [EpochStart(1, 0), EpochStart(4, 3)]


@pytest.mark.parametrize(
    ("epoch", "end"),
    [
        (-2, EpochStart(-2, 0)),
        (-1, None),
        (0, EpochStart(0, 0)),
        (1, EpochStart(1, 3)),
        (3, EpochStart(1, 3)),
        (4, EpochStart(1, 3)),
        (5, EpochStart(1, 3)),
        (6, EpochStart(6, 4)),
        (7, None),
    ],
)
def test_the_end_of_an_epoch_as_kafka_answers_it(epoch, end):
    assert filled().end_offset_for_epoch(epoch, 4) == end


@pytest.mark.parametrize(
    ("log_start", "epoch", "end"),
    [
        (2, 0, EpochStart(0, 2)),
        (2, 1, EpochStart(1, 3)),
        (3, 0, EpochStart(0, 3)),
        (3, 1, EpochStart(1, 3)),
        (3, 5, EpochStart(5, 3)),
        (4, 1, EpochStart(1, 4)),
        (4, 5, EpochStart(5, 4)),
        (4, 6, EpochStart(6, 4)),
        (4, -1, None),
    ],
)
def test_what_lies_below_the_log_start_has_no_epochs_any_more(log_start, epoch, end):
    """An epoch none of whose records is left ends where the log starts, and names itself."""
    assert filled().end_offset_for_epoch(epoch, 4, log_start) == end


def test_a_block_that_was_emptied_is_not_found_by_its_old_offset():
    index = OffsetIndex()
    index.extend([kit.batch_entry(each) for each in range(1, BLOCK_ENTRIES + 3)])
    index.truncate_from(BLOCK_ENTRIES)
    index.truncate_from(BLOCK_ENTRIES - 6)
    index.extend([kit.command_entry(each, 2) for each in range(250, 270)])
    offset = index.next_offset
    index.extend([kit.batch_entry(270 + each, 2, offset + each) for each in range(20)])
    assert [index.index_of(offset + each) for each in range(20)] == list(range(270, 290))


def test_an_epoch_goes_on_when_what_followed_it_is_truncated():
    """A new leader has more of the earlier epoch than the leader in between had."""
    index = filled()
    index.truncate_from(3)
    index.extend([kit.batch_entry(3, 1, 3), kit.batch_entry(4, 7, 4)])
    assert index.epoch_starts() == [EpochStart(1, 0), EpochStart(7, 4)]


def test_what_a_snapshot_replaced_is_forgotten_though_it_was_never_filed():
    index = OffsetIndex()
    index.extend([kit.batch_entry(1)])
    index.restore(IndexState(9, 40, (EpochStart(1, 0), EpochStart(2, 30))))
    index.extend([kit.batch_entry(10, 2, 40)])
    assert index.index_of(40) == 10
    assert index.epoch_starts() == [EpochStart(1, 0), EpochStart(2, 30)]


def test_no_epoch_has_an_end_in_an_empty_log():
    assert OffsetIndex().end_offset_for_epoch(0, 0) is None
    assert OffsetIndex().state_at(0) == EMPTY_STATE


def test_a_compacted_log_goes_on_where_its_snapshot_ends():
    index = filled()
    state = index.state_at(4)
    index.compact_to(4)
    restored = OffsetIndex(state)
    restored.extend([kit.batch_entry(5, 6, 3, timestamp=30)])
    for each in (index, restored):
        assert (each.first_index, each.first_offset, each.next_offset) == (5, 3, 4)
        assert each.epoch_starts() == [EpochStart(1, 0), EpochStart(6, 3)]
        assert each.index_of(3) == 5


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (lambda index: index.extend([kit.command_entry(7, 6)]), "entry 7 follows index 5"),
        (lambda index: index.extend([kit.batch_entry(6, 6, 9)]), "base offset 9, log end 4"),
        (lambda index: index.extend([kit.command_entry(6, 5)]), "term 5 at index 6 after term 6"),
        (lambda index: index.index_of(4), "offset 4 outside 0..3"),
        (lambda index: index.end_offset(6), "index 6 outside 1..5"),
        (lambda index: index.compact_to(6), "compact to 6, last index 5"),
        (lambda index: index.truncate_from(0), "truncate from 0, compacted to 0"),
    ],
)
def test_a_broken_invariant_names_both_numbers(wrong, reason):
    with pytest.raises(AssertionError, match=reason):
        wrong(filled())
