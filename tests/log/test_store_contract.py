"""The promises of `ottla.log.store`, held against every store.

Each test runs in memory (syncs at once, and as jobs) and on LMDB (with a cache, and reading
everything back). Crashes are in test_store_crash.py, random histories in test_store_machine.py.
"""

import pytest

import log_kit as kit
from ottla.log.errors import CompactedError
from ottla.log.store import Write
from ottla.raft.types import HardState


@pytest.fixture(params=kit.KITS)
def medium(request, tmp_path):
    """A medium with a store on it."""
    made = kit.KITS[request.param](tmp_path / "node")
    yield made
    made.store.close()


def indexes(entries):
    return [entry.index for entry in entries]


def test_a_new_store_is_empty(medium):
    assert medium.store.groups() == []
    assert list(medium.store.scan(7)) == []
    assert medium.store.snapshot(7) is None
    assert medium.store.get_meta("cluster") is None
    assert medium.store.begin_sync() is None


@pytest.mark.parametrize("synced", [False, True])
def test_reads_see_appends_at_once(medium, synced):
    store = medium.store
    expected = [*kit.run_of(1, 3), kit.command_entry(4), *kit.run_of(5, 6)]
    store.append([Write(1, hard_state=HardState(1, 2), first=1, entries=expected)])
    if synced:
        kit.sync(store)
    (found,) = store.groups()
    assert (found.group, found.hard_state, found.first_index, found.last_index) == (
        1,
        HardState(1, 2),
        1,
        6,
    )
    assert list(map(kit.visible, store.scan(1))) == list(map(kit.visible, expected))
    assert list(map(kit.visible, store.read(1, 2, 4, 1 << 20))) == list(
        map(kit.visible, expected[1:4])
    )


@pytest.mark.parametrize("synced", [False, True])
def test_a_read_is_bounded_by_bytes_but_gives_at_least_one(medium, synced):
    store = medium.store
    kit.append_run(store, 1, 5)
    if synced:
        kit.sync(store)
    size = kit.batch_entry(1).size
    assert indexes(store.read(1, 2, 5, 0)) == [2]
    assert indexes(store.read(1, 2, 5, 2 * size - 1)) == [2]
    assert indexes(store.read(1, 2, 5, 2 * size)) == [2, 3]
    assert indexes(store.read(1, 2, 5, 4 * size)) == [2, 3, 4, 5]


def test_a_read_crosses_from_the_disk_into_the_unsynced_tail(medium):
    kit.append_run(medium.store, 1, 3)
    store = medium.restart()
    kit.append_run(store, 4, 6)
    assert indexes(store.read(1, 2, 6, 1 << 20)) == [2, 3, 4, 5, 6]
    size = kit.batch_entry(1).size
    assert indexes(store.read(1, 2, 6, 3 * size)) == [2, 3, 4]
    assert indexes(store.read(1, 2, 6, 2 * size)) == [2, 3]


def test_a_read_ends_at_the_last_entry(medium):
    kit.append_run(medium.store, 1, 3)
    store = medium.restart()
    assert indexes(store.read(1, 2, 9, 1 << 20)) == [2, 3]
    assert store.read(1, 4, 9, 1 << 20) == []
    kit.append_run(store, 4, 4)
    assert indexes(store.read(1, 3, 9, 1 << 20)) == [3, 4]
    assert store.read(1, 5, 9, 1 << 20) == []
    assert store.read(1, 2, 1, 1 << 20) == []


def test_everything_survives_a_restart(medium):
    store = medium.store
    store.append(
        [
            Write(1, hard_state=HardState(3, 2), first=1, entries=kit.run_of(1, 40)),
            Write(2, hard_state=HardState(1, 1), snapshot=kit.snapshot_at(5), reset=True),
        ]
    )
    store.append([Write(1, hard_state=HardState(4, 0))])
    store.append([Write(2, first=6, entries=kit.run_of(6, 7)), Write(9, hard_state=HardState(7))])
    store.put_meta("cluster", b"one")
    before = kit.contents(store)
    assert sorted(before) == [1, 2, 9]
    store = medium.restart()
    assert kit.contents(store) == before
    assert store.get_meta("cluster") == b"one"


@pytest.mark.parametrize("synced", [False, True])
@pytest.mark.parametrize("first", [1, 2, 4, 6, 7])
def test_entries_replace_everything_from_their_first_index_on(medium, synced, first):
    store = medium.store
    kit.append_run(store, 1, 6)
    if synced:
        kit.sync(store)
    kit.append_run(store, first, first + 1, term=2)
    expected = [(i, 1) for i in range(1, first)] + [(first, 2), (first + 1, 2)]
    assert [(entry.index, entry.term) for entry in store.scan(1)] == expected
    store = medium.restart()
    assert [(entry.index, entry.term) for entry in store.scan(1)] == expected


@pytest.mark.parametrize("synced", [False, True])
def test_truncation_without_new_entries(medium, synced):
    store = medium.store
    kit.append_run(store, 1, 6)
    if synced:
        kit.sync(store)
    store.append([Write(1, first=4, truncate=True)])
    assert indexes(store.scan(1)) == [1, 2, 3]
    assert store.groups()[0].last_index == 3
    assert indexes(medium.restart().scan(1)) == [1, 2, 3]


@pytest.mark.parametrize("synced", [False, True])
def test_compacted_entries_are_gone_and_reading_them_says_so(medium, synced):
    store = medium.store
    kit.append_run(store, 1, 6)
    if synced:
        kit.sync(store)
    store.append([Write(1, snapshot=kit.snapshot_at(4), compact_to=4)])
    for current in medium.now_and_later():
        assert indexes(current.scan(1)) == [5, 6]
        assert (current.groups()[0].first_index, current.groups()[0].last_index) == (5, 6)
        assert current.snapshot(1) == kit.snapshot_at(4)
        assert current.groups()[0].snapshot == kit.snapshot_at(4).meta
        with pytest.raises(CompactedError, match="index 4 is gone, the log starts at 5"):
            current.read(1, 4, 6, 1 << 20)
        assert current.read(1, 5, 3, 1 << 20) == [], "a range that ends before it begins"


def test_everything_can_be_compacted_and_the_log_goes_on(medium):
    store = medium.store
    kit.append_run(store, 1, 6)
    kit.sync(store)
    store.append([Write(1, snapshot=kit.snapshot_at(6), compact_to=6)])
    assert (store.groups()[0].first_index, store.groups()[0].last_index) == (7, 6)
    store = medium.restart()
    assert (store.groups()[0].first_index, store.groups()[0].last_index) == (7, 6)
    kit.append_run(store, 7, 8)
    assert indexes(medium.restart().scan(1)) == [7, 8]


@pytest.mark.parametrize("index", [3, 6, 20])
@pytest.mark.parametrize("synced", [False, True])
def test_a_snapshot_from_the_leader_replaces_the_whole_log(medium, synced, index):
    store = medium.store
    kit.append_run(store, 1, 6)
    if synced:
        kit.sync(store)
    snapshot = kit.snapshot_at(index, data=b"x" * 5000)
    store.append([Write(1, snapshot=snapshot, reset=True)])
    for current in medium.now_and_later():
        assert indexes(current.scan(1)) == []
        assert (current.groups()[0].first_index, current.groups()[0].last_index) == (
            index + 1,
            index,
        )
        assert current.snapshot(1) == snapshot
    kit.append_run(medium.store, index + 1, index + 2)
    assert indexes(medium.restart().scan(1)) == [index + 1, index + 2]


@pytest.mark.parametrize("synced", [False, True])
def test_a_deleted_group_leaves_nothing_and_its_id_can_be_used_again(medium, synced):
    store = medium.store
    snapshot = kit.snapshot_at(2)
    kit.append_run(store, 1, 6)
    store.append([Write(1, snapshot=snapshot, compact_to=2)])
    kit.append_run(store, 1, 2, group=2)
    if synced:
        kit.sync(store)
    store.append([Write(1, delete=True)])
    assert [found.group for found in store.groups()] == [2]
    assert store.snapshot(1) is None
    with pytest.raises(CompactedError):
        store.read(1, 3, 4, 1 << 20)
    kit.append_run(store, 1, 3, term=5)
    for current in medium.now_and_later():
        assert [(entry.index, entry.term) for entry in current.scan(1)] == [(1, 5), (2, 5), (3, 5)]
        assert current.snapshot(1) is None
    medium.store.append([Write(1, delete=True)])
    assert [found.group for found in medium.restart().groups()] == [2]
    assert list(medium.store.scan(1)) == []


def test_one_write_does_all_its_parts_in_their_order(medium):
    store = medium.store
    kit.append_run(store, 1, 9)
    store.append(
        [
            Write(
                1,
                hard_state=HardState(4, 1),
                snapshot=kit.snapshot_at(20, 3),
                reset=True,
                first=21,
                entries=kit.run_of(21, 25, term=4),
                compact_to=22,
            )
        ]
    )
    for current in medium.now_and_later():
        (found,) = current.groups()
        assert (found.hard_state, found.first_index, found.last_index) == (HardState(4, 1), 23, 25)
        assert found.snapshot == kit.snapshot_at(20, 3).meta


def test_groups_come_in_order_of_their_ids_and_do_not_mix(medium):
    for group in (300, 2, 70_000, 1):
        kit.append_run(medium.store, 1, group % 7 + 1, group=group)
    store = medium.restart()
    assert [found.group for found in store.groups()] == [1, 2, 300, 70_000]
    for found in store.groups():
        assert indexes(store.scan(found.group)) == list(range(1, found.group % 7 + 2))


@pytest.mark.parametrize(
    "write",
    [
        Write(1, first=5, entries=kit.run_of(5, 5)),
        Write(1, first=5, truncate=True),
        Write(1, compact_to=4),
        Write(1, reset=True),
    ],
    ids=["gap", "truncation behind the end", "compaction behind the end", "reset to nothing"],
)
def test_a_caller_who_breaks_the_log_is_stopped(medium, write):
    kit.append_run(medium.store, 1, 3)
    with pytest.raises(AssertionError, match="group 1"):
        medium.store.append([write])


def test_what_was_read_stays_what_it_was(medium):
    store = medium.store
    kit.append_run(store, 1, 4)
    kit.sync(store)
    held = store.read(1, 1, 4, 1 << 20)
    seen = [kit.visible(entry) for entry in held]
    store.append([Write(1, first=2, entries=kit.run_of(2, 3, term=2))])
    kit.sync(store)
    store.append([Write(1, delete=True)])
    kit.sync(store)
    assert [kit.visible(entry) for entry in held] == seen
