"""The audit of sequences by hand-made logs, and against a naive oracle that keeps every number.

A log here is what a broker that checks nothing would have stored; offsets may be lost from it, as
retention and compaction lose them.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.sim.studies.audit.sequences import SEQUENCES, Kind, Ledger, Seen


class Log:
    """Appends batches, without a care for sequences, and audits them."""

    def __init__(self, start=0):
        self.ledger = Ledger()
        self.end = start

    def write(self, first, size, producer=1, epoch=0):
        batch = Seen(self.end, self.end + size - 1, producer, epoch, first, size)
        self.end += size
        return [
            (str(each.kind), each.first, each.last, each.records)
            for each in self.ledger.observe(batch)
        ]

    def lose(self, offsets):
        self.end += offsets


def test_what_is_contiguous_is_clean_and_producers_do_not_mix():
    log = Log()
    for round_ in range(5):
        for producer in (1, 2):
            assert log.write(3 * round_, 3, producer) == []
    assert (log.ledger.sequenced, log.ledger.plain, log.ledger.batches) == (30, 0, 10)


def test_a_jump_is_a_gap():
    log = Log()
    log.write(0, 5)
    assert log.write(8, 2) == [("gap", 5, 7, 3)]
    assert log.write(10, 1) == []


def test_a_log_that_does_not_begin_with_zero_has_a_gap():
    assert Log().write(4, 1) == [("gap", 0, 3, 4)]


def test_a_range_again_is_a_duplicate():
    log = Log()
    log.write(0, 5)
    log.write(5, 5)
    assert log.write(5, 5) == [("duplicate", 5, 9, 5)]
    assert log.write(0, 5) == [("duplicate", 0, 4, 5)]
    assert log.write(10, 5) == []


def test_a_range_that_goes_beyond_is_a_duplicate_in_part():
    log = Log()
    log.write(0, 5)
    assert log.write(3, 4) == [("duplicate", 3, 4, 2)]
    assert log.write(7, 1) == []


def test_what_was_missing_and_comes_late_is_a_reorder():
    log = Log()
    log.write(0, 2)
    assert log.write(6, 2) == [("gap", 2, 5, 4)]
    assert log.write(3, 2) == [("reorder", 3, 4, 2)]
    assert log.write(3, 2) == [("duplicate", 3, 4, 2)]
    assert log.write(2, 5) == [
        ("reorder", 2, 2, 1),
        ("duplicate", 3, 4, 2),
        ("reorder", 5, 5, 1),
        ("duplicate", 6, 6, 1),
    ]
    assert log.write(8, 1) == []


def test_an_epoch_begins_at_zero_and_never_goes_back():
    log = Log()
    log.write(0, 4)
    assert log.write(0, 2, epoch=1) == []
    assert log.write(4, 1, epoch=0) == [("reorder", 4, 4, 1)]
    assert log.write(2, 2, epoch=1) == []
    assert log.write(1, 1, epoch=2) == [("gap", 0, 0, 1)]


def test_retention_at_the_start_is_no_gap():
    log = Log(start=1000)
    assert log.write(250, 5) == []
    assert log.write(255, 5) == []
    assert log.write(265, 5) == [("gap", 260, 264, 5)]
    assert log.ledger.absent == 1000


def test_compaction_in_the_middle_is_no_gap_but_explains_no_more_than_it_took():
    log = Log()
    log.write(0, 10)
    log.lose(20)
    assert log.write(30, 1) == []
    log.lose(5)
    assert log.write(41, 1) == [("gap", 31, 40, 5)]


def test_what_was_absent_before_a_producer_was_seen_explains_nothing_later():
    log = Log(start=100)
    assert log.write(50, 10) == []
    assert log.write(70, 1) == [("gap", 60, 69, 10)]


def test_what_comes_late_of_a_jump_that_was_not_told_makes_up_for_nothing():
    log = Log()
    log.write(0, 5)
    log.lose(5)
    assert log.write(10, 5) == []
    assert log.write(5, 5) == [("reorder", 5, 9, 5)]
    assert log.ledger.filled == 0


def test_of_a_gap_that_was_told_in_part_no_more_is_made_up_for_than_was_told():
    log = Log()
    log.write(0, 1)
    log.lose(4)
    assert log.write(11, 1) == [("gap", 1, 10, 6)]
    assert log.write(21, 1) == [("gap", 12, 20, 9)]
    filled = []
    for first, size in ((3, 3), (7, 4), (1, 2), (12, 1)):
        log.write(first, size)
        filled.append(log.ledger.filled)
    assert filled == [3, 6, 6, 7]


def test_sequences_wrap():
    log = Log(start=SEQUENCES)
    assert log.write(SEQUENCES - 3, 2) == []
    assert log.write(SEQUENCES - 1, 3) == []
    assert log.write(2, 2) == []
    assert log.write(SEQUENCES - 1, 2) == [("duplicate", SEQUENCES - 1, 0, 2)]
    assert log.write(6, 1) == [("gap", 4, 5, 2)]


def test_plain_producers_have_offsets_only():
    log = Log()
    assert log.write(-1, 5, producer=-1, epoch=-1) == []
    assert log.write(0, 1) == []
    assert (log.ledger.plain, log.ledger.absent, log.ledger.next) == (5, 0, 6)


def test_a_million_gaps_keep_memory_bounded():
    log = Log()
    for n in range(3000):
        assert log.write(2 * n + 1, 1) == [("gap", 2 * n, 2 * n, 1)]
    tail = log.ledger.tails[1]
    assert (len(tail.missing), len(tail.told)) == (1000, 1000)


class Naive:
    """One record at a time, every number kept; knows neither ranges nor retention."""

    def __init__(self):
        self.counts = dict.fromkeys(map(str, Kind), 0)
        self.epochs: dict[int, int] = {}
        self.seen: dict[int, set[int]] = {}
        self.told: dict[int, set[int]] = {}
        self.filled = 0

    def record(self, producer, epoch, sequence):
        known = self.epochs.get(producer)
        if known is not None and epoch < known:
            self.counts["reorder"] += 1
            return
        if known is None or epoch > known:
            self.epochs[producer] = epoch
            self.seen[producer], self.told[producer] = set(), set()
        seen, told = self.seen[producer], self.told[producer]
        if sequence in seen:
            self.counts["duplicate"] += 1
        elif seen and sequence < max(seen):
            self.counts["reorder"] += 1
        self.filled += sequence in told - seen
        missing = set(range(sequence)) - seen - told
        self.counts["gap"] += len(missing)
        told |= missing
        seen.add(sequence)


BATCHES = st.tuples(st.integers(0, 25), st.integers(1, 6), st.integers(1, 2), st.integers(0, 2))


@pytest.mark.slow
@given(st.lists(BATCHES, max_size=25))
def test_agrees_with_an_oracle_that_keeps_every_number(batches: list[Any]):
    """Property: whatever lies in a log that lost no offsets, ranges and single numbers agree."""
    log, naive = Log(), Naive()
    counts = dict.fromkeys(map(str, Kind), 0)
    for first, size, producer, epoch in batches:
        for kind, _, _, records in log.write(first, size, producer, epoch):
            counts[kind] += records
        for sequence in range(first, first + size):
            naive.record(producer, epoch, sequence)
    assert counts == naive.counts
    assert log.ledger.filled == naive.filled


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3)), max_size=20), st.data())
def test_a_sound_log_is_clean_whatever_is_deleted_from_it(sizes, data):
    """Property: neither retention nor compaction of whole batches makes a finding."""
    log, following = Log(), dict.fromkeys((1, 2, 3), 0)
    for size, producer in sizes:
        first = following[producer]
        following[producer] += size
        if data.draw(st.booleans()):
            log.lose(size)
        else:
            assert log.write(first, size, producer) == []
