"""The one recovery routine, row by row, and what the memory disk makes of it.

Each row of `CASES` is tried on both sides of the synced mark; the faults that tests and simulators
inject into a `MemoryDisk` (crash, held and failing syncs, damage) are held here as well, since what
they leave behind is what recovery gets to see.
"""

import pytest

import log_kit as kit
from ottla.log.errors import CorruptLogError, StoreError
from ottla.log.memory_store import MemoryDisk, MemoryStore
from ottla.log.recovery import CASES, LogExtent, StoredRecord, recover
from ottla.log.store import Write
from ottla.raft.types import HardState

FIRST = 5


def records(*changes):
    """Well-formed records 5..12 of terms 1 and 2 with some of them replaced (None: dropped)."""
    made = {
        index: StoredRecord(index, kit.command_entry(index, 1 if index < 9 else 2))
        for index in range(FIRST, 13)
    }
    for index, record in changes:
        del made[index]
        if record is not None:
            made[index] = record
    return [made[index] for index in sorted(made)]


FAULTS = {
    "missing": (10, None),
    "damaged": (10, StoredRecord(10, None)),
    "misplaced": (10, StoredRecord(10, kit.command_entry(7, 2))),
    "term goes back": (10, StoredRecord(10, kit.command_entry(10, 1))),
    "term of the future": (10, StoredRecord(10, kit.command_entry(10, 3))),
}


def recovered(found, *, synced_to, term=2):
    return recover(LogExtent(3, FIRST, synced_to, term), found)


def test_every_case_of_the_table_has_a_fault_here():
    assert [case.label for case in CASES] == list(FAULTS)


@pytest.mark.parametrize("synced_to", [4, 8, 12])
def test_a_whole_log_is_kept(synced_to):
    assert recovered(records(), synced_to=synced_to) == 12


@pytest.mark.parametrize("label", FAULTS)
@pytest.mark.parametrize("synced_to", [4, 8, 9])
def test_a_fault_behind_the_mark_cuts_there_whatever_follows(label, synced_to):
    assert recovered(records(FAULTS[label]), synced_to=synced_to) == 9


@pytest.mark.parametrize("label", FAULTS)
@pytest.mark.parametrize("synced_to", [10, 11, 12])
def test_a_fault_at_or_below_the_mark_is_refused_with_its_place(label, synced_to):
    with pytest.raises(CorruptLogError, match=f"group 3, index 10: {label}") as raised:
        recovered(records(FAULTS[label]), synced_to=synced_to)
    assert (raised.value.group, raised.value.index) == (3, 10)


def test_each_fault_is_seen_by_its_own_case_only():
    for label, fault in FAULTS.items():
        with pytest.raises(CorruptLogError) as raised:
            recovered(records(fault), synced_to=12)
        assert f": {label} " in str(raised.value)


@pytest.mark.parametrize("synced_to", [-1, 4])
def test_an_empty_log_is_fine_when_nothing_was_synced(synced_to):
    assert recovered([], synced_to=synced_to) == FIRST - 1


@pytest.mark.parametrize("synced_to", [5, 20])
def test_a_log_that_ends_before_the_mark_is_refused(synced_to):
    with pytest.raises(CorruptLogError, match=f"missing: the log was synced up to {synced_to}"):
        recovered([], synced_to=synced_to)


def test_a_log_whose_head_is_missing_is_refused():
    with pytest.raises(CorruptLogError, match="index 5: missing"):
        recovered(records((5, None)), synced_to=12)


# ---- the memory disk


def filled_disk():
    disk = MemoryDisk()
    store = MemoryStore(disk)
    kit.append_run(store, 1, 4)
    kit.sync(store)
    kit.append_run(store, 5, 8)
    return disk, store


@pytest.mark.parametrize("damaged", [5, 7])
def test_a_damaged_unsynced_entry_that_survived_a_crash_cuts_the_log(damaged):
    disk, _ = filled_disk()
    disk.damage(1, damaged)
    disk.crash(keep=1)
    store = MemoryStore(disk)
    assert store.groups()[0].last_index == damaged - 1
    kit.append_run(store, damaged, 9)
    kit.sync(store)
    disk.crash()
    assert MemoryStore(disk).groups()[0].last_index == 9


@pytest.mark.parametrize("damaged", [1, 4])
def test_a_damaged_synced_entry_is_refused(damaged):
    disk, _ = filled_disk()
    disk.damage(1, damaged)
    disk.crash(keep=1)
    with pytest.raises(CorruptLogError, match=f"group 1, index {damaged}: damaged"):
        MemoryStore(disk)


def test_what_replaced_synced_entries_is_not_synced_itself():
    disk = MemoryDisk()
    store = MemoryStore(disk)
    kit.append_run(store, 1, 6)
    kit.sync(store)
    kit.append_run(store, 3, 5, term=2)
    disk.damage(1, 4)
    disk.crash(keep=1)
    assert MemoryStore(disk).groups()[0].last_index == 3


def test_what_follows_a_snapshot_that_replaced_synced_entries_is_not_synced_itself():
    disk = MemoryDisk()
    store = MemoryStore(disk)
    kit.append_run(store, 1, 30)
    kit.sync(store)
    run = kit.run_of(11, 15)
    store.append([Write(1, snapshot=kit.snapshot_at(10), reset=True, first=11, entries=run)])
    disk.damage(1, 12)
    disk.crash(keep=1)
    assert MemoryStore(disk).groups()[0].last_index == 11


def test_a_crash_keeps_as_many_appends_as_it_is_told():
    def ended(keep):
        disk, store = filled_disk()
        store.append([Write(1, first=6, truncate=True)])
        store.append([Write(1, hard_state=HardState(5, 2)), Write(2, hard_state=HardState(1, 1))])
        assert disk.unsynced_appends == 3
        disk.crash(keep=keep)
        return [
            (each.group, each.hard_state.term, each.last_index)
            for each in MemoryStore(disk).groups()
        ]

    assert [ended(keep) for keep in range(4)] == [
        [(1, 1, 4)],
        [(1, 1, 8)],
        [(1, 1, 5)],
        [(1, 5, 5), (2, 1, 0)],
    ]


def test_a_held_sync_waits_and_nothing_is_durable_before_it_ends():
    disk, store = filled_disk()
    disk.hold_syncs()
    job = store.begin_sync()
    assert job is not None
    assert disk.unsynced_appends == 1
    disk.release_syncs()
    job.run()
    store.finish_sync(job)
    assert disk.unsynced_appends == 0
    assert store.begin_sync() is None


def test_a_failed_sync_ends_the_store_and_not_the_disk():
    disk, store = filled_disk()
    disk.fail_syncs(StoreError("input/output error"))
    job = store.begin_sync()
    assert job is not None
    job.run()
    with pytest.raises(StoreError, match="input/output error"):
        store.finish_sync(job)
    for refused in (store.begin_sync, lambda: store.append([]), lambda: store.put_meta("a", b"")):
        with pytest.raises(StoreError, match="input/output error"):
            refused()
    disk.crash()
    store = MemoryStore(disk)
    assert store.groups()[0].last_index == 4
    kit.append_run(store, 5, 5)
    assert store.begin_sync() is None


@pytest.mark.parametrize("end", [MemoryDisk.crash, MemoryStore], ids=["crash", "another store"])
def test_the_store_of_a_lost_disk_is_dead_and_its_held_sync_fails(end):
    disk, store = filled_disk()
    disk.hold_syncs()
    job = store.begin_sync()
    end(disk)
    job.run()
    with pytest.raises(StoreError, match="the disk"):
        store.finish_sync(job)
    with pytest.raises(StoreError, match="the disk"):
        kit.append_run(store, 9, 9)


def test_replicas_share_the_bytes_of_a_batch():
    entry = kit.batch_entry(1)
    stores = [MemoryStore(MemoryDisk()) for _ in range(3)]
    for store in stores:
        store.append([Write(1, first=1, entries=[entry])])
        (found,) = store.read(1, 1, 1, 0)
        assert found is entry
