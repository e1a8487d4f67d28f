"""Snapshots: equal for equal prefixes, restored to the same, and never trusted.

What a peer or a disk hands in is refused with a sentence, number by number, and a refused snapshot
leaves the table as it was.
"""

from collections import OrderedDict

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.idempotency.errors import SnapshotError
from ottla.idempotency.rulebooks import RULEBOOKS
from ottla.idempotency.snapshot import TAG, decode, digest_of, seen_of
from ottla.idempotency.table import ProducerTable
from ottla.log.types import BatchIdentity

entries = st.lists(
    st.builds(
        BatchIdentity,
        st.one_of(st.integers(0, 3), st.just(2**63 - 1)),
        st.sampled_from([0, 1, 32767]),
        st.sampled_from([0, 1, 2**31 - 1]),
        st.sampled_from([0, 1, 2**31 - 1]),
    ),
    max_size=20,
)


def fresh():
    return ProducerTable(RULEBOOKS["reference"], 10)


def apply_all(table, written, now=0):
    for index, who in enumerate(written, 1):
        table.apply(who, index * 10, -1, index=index, term=1, now=now)
    return table


@pytest.mark.slow
@given(entries)
def test_restoring_gives_the_same_table(written):
    table = apply_all(fresh(), written)
    restored = fresh()
    restored.restore(table.snapshot())
    assert restored.describe() == table.describe()
    assert restored.digest() == table.digest()
    assert restored.snapshot() == table.snapshot()
    assert restored.longest_idle() == table.longest_idle()
    assert len(restored) == len({who.producer_id for who in written})


@pytest.mark.parametrize("timestamp", [-(2**63), -1000, -2, -1, 0, 2**63 - 1])
def test_whatever_time_a_client_s_batch_was_accepted_with_comes_back(timestamp):
    """Times below -1 were stored, and refused when read back: no replica could take the snapshot,
    and a node that had stored it could not start again."""
    table = fresh()
    table.apply(BatchIdentity(7, 0, 0, 4), 10, timestamp, index=2, term=1)
    restored = fresh()
    restored.restore(table.snapshot())
    assert restored.digest() == table.digest()


@pytest.mark.slow
@given(entries, st.integers(0, 20))
def test_a_snapshot_ahead_of_the_log_is_not_changed_by_replaying_it(written, start):
    table = apply_all(fresh(), written)
    restored = fresh()
    restored.restore(table.snapshot())
    for index, who in list(enumerate(written, 1))[start:]:
        restored.apply(who, index * 10, -1, index=index, term=1)
        restored.apply_expire([who.producer_id], index=index)
    assert restored.snapshot() == table.snapshot()


@pytest.mark.slow
@given(entries, st.integers(0, 20))
def test_rewinding_and_replaying_what_was_rewound_changes_nothing(written, index):
    table = apply_all(fresh(), written)
    before = table.snapshot()
    table.rewind(index, index * 10 + 1)
    assert table.applied_index == min(index, len(written))
    fresh().restore(table.snapshot())  # it can be snapshotted in between
    for at, who in list(enumerate(written, 1))[index:]:
        table.apply(who, at * 10, -1, index=at, term=2)
    assert table.snapshot() == before


@pytest.mark.slow
@given(entries, st.randoms(use_true_random=False))
def test_the_digest_does_not_depend_on_the_order_in_memory(written, random):
    table = apply_all(fresh(), written)
    state = decode(table.snapshot(), 5)
    shuffled = list(state.producers.items())
    random.shuffle(shuffled)
    assert digest_of(seen_of(state._replace(producers=OrderedDict(shuffled)))) == table.digest()


@pytest.mark.parametrize(
    "changed",
    [
        [[7, 1, 2, [[0, 4, 10, -1]]]],
        [[7, 0, 1, [[0, 4, 10, -1]]]],
        [[7, 0, 2, [[0, 5, 10, -1]]]],
        [[7, 0, 2, [[0, 4, 11, -1]]]],
        [[7, 0, 2, [[0, 4, 10, 0]]]],
        [[8, 0, 2, [[0, 4, 10, -1]]]],
        [],
    ],
)
def test_the_digest_sees_everything_a_decision_sees(changed):
    one, other = fresh(), fresh()
    one.restore(msgpack.packb([TAG, 9, False, [[7, 0, 2, [[0, 4, 10, -1]]]]]))
    other.restore(msgpack.packb([TAG, 9, False, changed]))
    assert one.digest() != other.digest()


def test_who_was_forgotten_is_in_it():
    never, once = fresh(), apply_all(fresh(), [BatchIdentity(7, 0, 0, 4)])
    once.apply_expire([7], index=2)
    never.apply_expire([7], index=2)
    assert (once.forgotten.plain(), never.forgotten.plain()) == ([-1, [[7, 0, 4]]], False)
    assert once.digest() != never.digest()
    restored = fresh()
    restored.restore(once.snapshot())
    assert restored.forgotten.plain() == [-1, [[7, 0, 4]]]
    restored.restore(never.snapshot())
    assert not restored.forgotten


@pytest.mark.parametrize(("said", "floor"), [(False, -1), (True, 2**63 - 1)])
def test_snapshots_that_do_not_say_who_was_forgotten_are_read(said, floor):
    """Logs of version 0.1 say only whether anybody was: then it may have been anybody."""
    table = fresh()
    table.restore(msgpack.packb([TAG, 9, said, []]))
    assert table.forgotten.floor == floor
    assert table.forgotten.may_resume(BatchIdentity(7, 0, 5, 9)) is said


def test_speculation_and_idle_times_are_not_in_it():
    quiet = apply_all(fresh(), [BatchIdentity(7, 0, 0, 4)])
    busy = apply_all(fresh(), [BatchIdentity(7, 0, 0, 4)], now=12345)
    busy.begin(BatchIdentity(7, 1, 0, 4), 1)
    busy.begin(BatchIdentity(8, 0, 0, 4), 1)
    assert busy.snapshot() == quiet.snapshot()
    assert busy.digest() == quiet.digest()


def test_idle_times_start_anew():
    table = fresh()
    table.restore(apply_all(fresh(), [BatchIdentity(7, 0, 0, 4)], now=5).snapshot(), now=1000)
    assert table.idle_since(1000) == []
    assert table.idle_since(1001) == [7]


def test_nothing_is_restored_over_requests_in_flight():
    table = fresh()
    table.begin(BatchIdentity(7, 0, 0, 4), 1)
    with pytest.raises(AssertionError, match="1 requests in flight"):
        table.restore(fresh().snapshot())


BATCH = [0, 4, 10, -1]
GOOD = [TAG, 9, False, [[7, 0, 2, [BATCH]]]]


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({}, "not a snapshot of producers: Unexpected type header"),
        ([], "snapshot is None, this version reads 'producers/2'"),
        (["producers/1", 9, []], "snapshot is 'producers/1', this version reads 'producers/2'"),
        ([TAG, 9, []], "snapshot is not an array of 4"),
        ([TAG, 9, 1, []], "forgotten is not an array of 2"),
        ([TAG, 9, [-2, []], []], "floor of the forgotten is -2"),
        ([TAG, 9, [-1, 7], []], "forgotten: not an array of at most 1000"),
        ([TAG, 9, [-1, [*range(1001)]], []], "forgotten: not an array of at most 1000"),
        ([TAG, 9, [-1, [7]], []], "forgotten producer is not an array of 3"),
        ([TAG, 9, [-1, [[True, 0, 4]]], []], "forgotten id is True"),
        ([TAG, 9, [-1, [[7, -32769, 4]]], []], "forgotten epoch is -32769"),
        ([TAG, 9, [-1, [[7, 0, 2**31]]], []], "forgotten sequence is 2147483648"),
        ([TAG, -1, False, []], "applied index is -1"),
        ([TAG, True, False, []], "applied index is True"),
        ([TAG, 9, False, {}], "not a snapshot of producers: Unexpected type header"),
        ([TAG, 9, False, [7]], "producer is not an array of 4"),
        ([TAG, 9, False, [[7, 0, 2]]], "producer is not an array of 4"),
        ([TAG, 9, False, [[-1, 0, 2, [BATCH]]]], "producer id is -1"),
        ([TAG, 9, False, [["7", 0, 2, [BATCH]]]], "producer id is '7'"),
        ([TAG, 9, False, [[7, 32768, 2, [BATCH]]]], "epoch is 32768"),
        ([TAG, 9, False, [[7, 0, 10, [BATCH]]]], r"last index 10 is not in 1\.\.9"),
        ([TAG, 9, False, [[7, 0, 0, [BATCH]]]], r"last index 0 is not in 1\.\.9"),
        (
            [TAG, 9, False, [[7, 0, 3, [BATCH]], [8, 0, 2, [BATCH]]]],
            r"last index 2 is not in 3\.\.9",
        ),
        ([TAG, 9, False, [[7, 0, 2, [BATCH]], [7, 0, 3, [BATCH]]]], "producer 7 comes twice"),
        ([TAG, 9, False, [[7, 0, 2, None]]], "producer 7: window is not an array of at most 5"),
        (
            [TAG, 9, False, [[7, 0, 2, [BATCH] * 6]]],
            "producer 7: window is not an array of at most 5",
        ),
        ([TAG, 9, False, [[7, 0, 2, [[0, 4, 10]]]]], "finished batch is not an array of 4"),
        ([TAG, 9, False, [[7, 0, 2, [[-1, 4, 10, -1]]]]], "first sequence is -1"),
        ([TAG, 9, False, [[7, 0, 2, [[0, 2**31, 10, -1]]]]], "last sequence is 2147483648"),
        ([TAG, 9, False, [[7, 0, 2, [[0, 4, -1, -1]]]]], "base offset is -1"),
        ([TAG, 9, False, [[7, 0, 2, [[0, 4, 10, 2**63]]]]], "timestamp is 9223372036854775808"),
        ([TAG, 9, False, [[7, 0, 2, [[0, 4, 10, 1.5]]]]], "timestamp is 1.5"),
    ],
)
def test_what_is_wrong_is_said(value, complaint):
    table = apply_all(fresh(), [BatchIdentity(1, 0, 0, 4)])
    before = table.snapshot()
    with pytest.raises(SnapshotError, match=complaint):
        table.restore(msgpack.packb(value))
    assert table.snapshot() == before, "a refused snapshot changes nothing"


@given(st.data())
def test_broken_bytes_are_an_error_or_a_snapshot_never_anything_else(data):
    good = bytearray(msgpack.packb(GOOD))
    position = data.draw(st.integers(0, len(good) - 1))
    good[position] = data.draw(st.integers(0, 255))
    cut = bytes(good[: data.draw(st.integers(0, len(good)))])
    table = fresh()
    try:
        table.restore(cut)
    except SnapshotError:
        assert len(table) == 0
    else:
        assert table.snapshot() == cut or len(table) <= 1


@given(st.binary(max_size=40))
def test_noise_is_an_error(noise):
    with pytest.raises(SnapshotError):
        fresh().restore(noise)
