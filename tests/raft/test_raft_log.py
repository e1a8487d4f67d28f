"""The index of the log against a model that is nothing but a list, and a disk that is another.

Hypothesis appends, truncates, compacts and installs, and lets the model's disk finish its writes in
order; after each step the index must agree with the list, and believe of the disk what is true.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla.raft.errors import CorruptStateError
from ottla.raft.raft_log import RaftLog, bootstrap, decode_voters
from ottla.raft.types import ENTRY_OVERHEAD_BYTES, Entry, EntryKind, LogIndex, SnapshotMeta, Term
from raft_lone import entries, log_of
from searches import examples


class LogModel(RuleBasedStateMachine):
    """`log` is under test. `model` maps index to entry, `boundary` is (index, term) before it.
    `disk` is what a disk that works in order holds; `writes` are the steps it has yet to do."""

    def __init__(self) -> None:
        super().__init__()
        self.log = log_of([])
        self.model: dict[LogIndex, Entry] = {
            1: Entry(1, 0, EntryKind.CONFIGURATION, b"\x93\x01\x02\x03")
        }
        self.boundary: tuple[LogIndex, Term] = (0, 0)
        self.disk: dict[LogIndex, Entry] = dict(self.model)
        self.snapshot_on_disk: LogIndex = 0
        self.writes: list[tuple[tuple[LogIndex, Term], list[Entry], LogIndex]] = []
        self.term = 1

    @property
    def last(self) -> LogIndex:
        return max(self.model, default=self.boundary[0])

    @rule(sizes=st.lists(st.integers(0, 50), min_size=1, max_size=4), newer=st.integers(0, 2))
    def append(self, sizes: list[int], newer: int) -> None:
        self.term += newer
        batch = [
            Entry(self.last + 1 + place, self.term, EntryKind.BATCH, b"x" * size)
            for place, size in enumerate(sizes)
        ]
        self.log.append(batch)
        self.model.update((entry.index, entry) for entry in batch)
        self._write(batch)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def replace(self, data: st.DataObject) -> None:
        """A new leader's entry takes the place of a tail; sometimes with a term seen before."""
        first = data.draw(st.integers(min(self.model), self.last))
        before = self.model[first - 1].term if first - 1 in self.model else self.boundary[1]
        term = data.draw(st.integers(before, self.term))
        self.log.truncate_from(first)
        for index in [index for index in self.model if index >= first]:
            del self.model[index]
        entry = Entry(first, term, EntryKind.BATCH, b"y" * data.draw(st.integers(0, 9)))
        self.log.append([entry])
        self.model[first] = entry
        self._write([entry])

    def _write(self, batch: list[Entry]) -> None:
        end = (batch[-1].index, batch[-1].term)
        self.log.begin_write(*end)
        self.writes.append((end, batch, 0))

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(min(self.model), self.last))
        term = self.model[index].term
        self.log.compact(SnapshotMeta(index, term, (1, 2, 3), 9))
        self.boundary = (index, term)
        for gone in [each for each in self.model if each <= index]:
            del self.model[gone]

    @rule(ahead=st.integers(-3, 3))
    def install(self, ahead: int) -> None:
        """Also below the end: then the entry there was another one."""
        meta = SnapshotMeta(max(1, self.last + ahead), self.term, (1, 2, 3), 9)
        self.log.install(meta)
        self.boundary = (meta.index, meta.term)
        self.model.clear()
        self.log.begin_write(meta.index, meta.term)
        self.writes.append(((meta.index, meta.term), [], meta.index))

    @precondition(lambda self: self.writes)
    @rule(together=st.integers(1, 3))
    def finish(self, together: int) -> None:
        """The disk finishes one write, or several at once of which each is named."""
        for _ in range(min(together, len(self.writes))):
            end, batch, snapshot = self.writes.pop(0)
            if snapshot:
                self.disk.clear()
                self.snapshot_on_disk = snapshot
            for entry in batch:
                for index in [index for index in self.disk if index >= entry.index]:
                    del self.disk[index]
                self.disk[entry.index] = entry
            self.log.finish_write(*end)

    @rule(index=st.integers(0, 30), term=st.integers(0, 5))
    def finish_nothing(self, index: LogIndex, term: Term) -> None:
        """A completion that names no write under way is ignored."""
        if (index, term) not in [end for end, _, _ in self.writes]:
            assert not self.log.finish_write(index, term)

    @invariant()
    def has_the_same_shape(self) -> None:
        assert (self.log.first_index, self.log.last_index) == (self.boundary[0] + 1, self.last)
        for index in range(-1, self.last + 3):
            entry = self.model.get(index)
            known = self.boundary[1] if index == self.boundary[0] else None
            assert self.log.term_at(index) == (entry.term if entry else known)

    @invariant()
    def has_the_same_sizes(self) -> None:
        sizes = {index: len(e.payload) + ENTRY_OVERHEAD_BYTES for index, e in self.model.items()}
        for after in range(self.boundary[0], self.last + 1):
            for last in range(after, self.last + 1):
                total = sum(sizes[index] for index in range(after + 1, last + 1))
                assert self.log.bytes_between(after, last) == total

    @precondition(lambda self: self.model)
    @invariant()
    def finds_the_longest_range(self) -> None:
        for first in self.model:
            for budget in (0, 40, 90, 10_000):
                end = first
                while end < self.last and self.log.bytes_between(first - 1, end + 1) <= budget:
                    end += 1
                assert self.log.range_end(first, budget) == end

    @invariant()
    def hints_at_the_last_possible_agreement(self) -> None:
        terms = {self.boundary[0]: self.boundary[1], **{i: e.term for i, e in self.model.items()}}
        for index in range(self.boundary[0], self.last + 2):
            for term in range(self.term + 1):
                places = [i for i, t in terms.items() if i <= index and t <= term]
                hint, hint_term = self.log.agreement_hint(index, term)
                if places:
                    assert (hint, hint_term) == (max(places), terms[max(places)])
                else:
                    assert hint == max(self.boundary[0] - 1, 0)

    @invariant()
    def believes_of_the_disk_what_is_true(self) -> None:
        """Everything up to `persisted` is on the disk, as the log has it, and stays there: no
        write under way touches it. And it believes all of that, not less."""
        durable = self.log.persisted
        assert durable <= self.last
        touched = [batch[0].index for _, batch, _ in self.writes if batch]
        for index in range(self.boundary[0] + 1, durable + 1):
            assert self.disk[index] is self.model[index]
            assert all(first > index for first in touched)
        if not self.writes:
            assert durable == self.last


LogModel.TestCase.settings = settings(
    max_examples=examples(25), stateful_step_count=20, deadline=None
)
TestLogModel = LogModel.TestCase


class TestFinishedWrites:
    def test_of_what_a_snapshot_replaced_says_nothing_about_what_follows_it(self) -> None:
        log = log_of([1] * 6)
        log.append(entries(8, [1, 1, 1]))
        log.begin_write(10, 1)
        log.install(SnapshotMeta(9, 2, (1, 2, 3), 9))
        log.begin_write(9, 2)
        assert not log.finish_write(10, 1)
        assert (log.persisted, log.last_index) == (7, 9)
        assert log.finish_write(9, 2)
        assert log.persisted == 9

    def test_that_ended_together_may_be_named_by_the_last(self) -> None:
        log = log_of([1])
        log.append(entries(3, [1, 1]))
        log.begin_write(4, 1)
        log.truncate_from(4)
        log.append(entries(4, [2, 2]))
        log.begin_write(5, 2)
        assert log.finish_write(5, 2)
        assert log.persisted == 5
        assert not log.finish_write(4, 1)


class TestRestore:
    def test_all_of_it_is_persisted(self) -> None:
        log = log_of([1, 1, 2])
        assert (log.first_index, log.last_index, log.persisted, log.last_term) == (1, 4, 4, 2)

    def test_behind_a_snapshot(self) -> None:
        meta = SnapshotMeta(7, 3, (1, 4), 10)
        log = RaftLog.restore(meta, entries(8, [3, 4]))
        assert (log.first_index, log.last_index, log.voters) == (8, 9, (1, 4))
        assert [log.term_at(index) for index in (6, 7, 8, 9, 10)] == [None, 3, 3, 4, None]

    def test_the_last_configuration_counts(self) -> None:
        _, (first,) = bootstrap([1, 2, 3])
        _, (second,) = bootstrap([4, 5])
        second.index = 2
        assert RaftLog.restore(None, [first, second]).voters == (4, 5)

    @pytest.mark.parametrize(("index", "term"), [(3, 1), (1, 1), (2, 0)])
    def test_a_gap_or_a_falling_term_is_a_corrupt_disk(self, index: int, term: int) -> None:
        disk = [*entries(1, [1]), *entries(index, [term])]
        with pytest.raises(CorruptStateError, match=f"entry {index} of term {term} follows"):
            RaftLog.restore(None, disk)

    @pytest.mark.parametrize("payload", [b"", b"\xa1x", b"\x07", b"\x91\xa1x"])
    def test_a_configuration_that_names_no_voters_is_a_corrupt_disk(self, payload: bytes) -> None:
        with pytest.raises(CorruptStateError, match="configuration 1 names no voters"):
            decode_voters(Entry(1, 0, EntryKind.CONFIGURATION, payload))


class TestBootstrap:
    def test_is_the_same_on_every_member(self) -> None:
        (log, first), (_, second) = bootstrap([3, 1, 2]), bootstrap((2, 3, 1, 1))
        assert first == second
        assert log.voters == decode_voters(first[0]) == (1, 2, 3)
        assert (log.last_index, log.last_term, log.persisted) == (1, 0, 1)


class TestInvariants:
    def test_entries_follow_each_other(self) -> None:
        with pytest.raises(AssertionError, match="append at 4, but the log ends at 2"):
            log_of([1]).append(entries(4, [1]))

    def test_terms_do_not_fall(self) -> None:
        with pytest.raises(AssertionError, match="entry 3 has term 1 behind term 2"):
            log_of([2]).append(entries(3, [1, 3]))

    def test_only_what_is_there_is_truncated(self) -> None:
        with pytest.raises(AssertionError, match=r"truncate from 3, but the log is 1\.\.2"):
            log_of([1]).truncate_from(3)

    def test_a_snapshot_is_of_the_log_it_replaces(self) -> None:
        with pytest.raises(AssertionError, match="entry 2 has term 1, the snapshot 2"):
            log_of([1, 1]).compact(SnapshotMeta(2, 2, (1,), 0))
        with pytest.raises(AssertionError, match=r"compact to 9, but the log is 1\.\.3"):
            log_of([1, 1]).compact(SnapshotMeta(9, 1, (1,), 0))
