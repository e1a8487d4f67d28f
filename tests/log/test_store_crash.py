"""What a crash may lose, for every store: whole turns, from the end, and nothing acknowledged.

The trace tests hold that a sync lies between an append and its answer. They run against a store
whose sync does nothing as well, and must find it out.
"""

import ctypes
import errno
import os

import pytest

import log_kit as kit
from ottla.log.lmdb_store import LmdbStore
from ottla.log.memory_store import MemoryDisk, MemoryStore
from ottla.log.store import Write
from ottla.raft.types import HardState


@pytest.fixture(params=kit.KITS)
def medium(request, tmp_path):
    """A medium with a store on it."""
    made = kit.KITS[request.param](tmp_path / "node")
    yield made
    made.store.close()


def test_a_crash_keeps_what_was_synced_and_loses_the_rest(medium):
    store = medium.store
    kit.append_run(store, 1, 3)
    store.put_meta("kept", b"1")
    kit.sync(store)
    before = kit.contents(store)
    kit.append_run(store, 4, 6, term=2)
    store.append([Write(2, hard_state=HardState(8, 1))])
    store.put_meta("lost", b"1")
    store = medium.crash()
    assert kit.contents(store) == before
    assert (store.get_meta("kept"), store.get_meta("lost")) == (b"1", None)


@pytest.mark.parametrize(
    "write",
    [
        Write(1, first=2, truncate=True),
        Write(1, hard_state=HardState(9, 0), first=3, entries=kit.run_of(3, 8, term=9)),
        Write(1, snapshot=kit.snapshot_at(3), compact_to=3),
        Write(1, snapshot=kit.snapshot_at(30), reset=True),
        Write(1, delete=True),
    ],
    ids=["truncation", "replacement", "compaction", "reset", "deletion"],
)
def test_a_crash_takes_back_every_kind_of_write(medium, write):
    store = medium.store
    kit.append_run(store, 1, 5)
    kit.sync(store)
    before = kit.contents(store)
    kit.append_run(store, 6, 7)
    store.append([write])
    kit.append_run(store, 1, 2, group=4)
    assert kit.contents(medium.crash()) == before


def test_a_sync_covers_what_was_appended_before_it_began(medium):
    store = medium.store
    kit.append_run(store, 1, 2)
    job = store.begin_sync()
    kit.append_run(store, 3, 4)
    if job is not None:
        job.run()
        store.finish_sync(job)
    (found,) = medium.crash().groups()
    assert found.last_index == 2


def test_appends_go_on_while_a_sync_runs(medium):
    store = medium.store
    kit.append_run(store, 1, 4)
    job = store.begin_sync()
    store.append([Write(1, first=3, entries=kit.run_of(3, 3))])
    kit.append_run(store, 1, 2, group=2)
    assert [entry.index for entry in store.read(1, 1, 9, 1 << 20)] == [1, 2, 3]
    if job is not None:
        job.run()
        store.finish_sync(job)
    assert [entry.index for entry in store.read(1, 1, 9, 1 << 20)] == [1, 2, 3]
    before = kit.contents(store)
    kit.sync(store)
    assert kit.contents(medium.crash()) == before


def test_vote_snapshot_and_entries_of_a_turn_stand_or_fall_together(medium):
    store = medium.store
    kit.append_run(store, 1, 2)
    kit.sync(store)
    turn = [
        Write(1, hard_state=HardState(5, 3), first=3, entries=kit.run_of(3, 4, term=5)),
        Write(2, hard_state=HardState(5, 1), snapshot=kit.snapshot_at(8), reset=True),
    ]
    store.append(turn)
    store = medium.crash()
    assert (store.groups()[0].hard_state, store.groups()[0].last_index) == (HardState(1, 0), 2)
    assert [found.group for found in store.groups()] == [1]
    store.append(turn)
    kit.sync(store)
    store = medium.crash()
    assert (store.groups()[0].hard_state, store.groups()[0].last_index) == (HardState(5, 3), 4)
    assert store.snapshot(2) == kit.snapshot_at(8)


# ---- a sync lies between each append and its answer


def acknowledged_and_found(medium, turns):
    """Append, sync, acknowledge, crash: the last index acknowledged and the last one found."""
    for turn in range(1, turns + 1):
        kit.append_run(medium.store, turn, turn)
        kit.sync(medium.store)
        groups = medium.crash().groups()
        yield turn, groups[0].last_index if groups else 0


def test_each_acknowledged_append_is_synced(medium):
    assert all(found == acknowledged for acknowledged, found in acknowledged_and_found(medium, 5))


def test_negative_control_a_sync_that_does_nothing_is_found_out():
    medium = kit.lying_kit()
    acknowledged, found = next(acknowledged_and_found(medium, 1))
    assert (acknowledged, found) == (1, 0)


CACHESTAT = 451


def dirty_pages(path):
    """Pages of a file that the kernel has not written to the disk (cachestat, Linux 6.5)."""
    libc = ctypes.CDLL(None, use_errno=True)
    whole_file = (ctypes.c_uint64 * 2)(0, 0)
    counted = (ctypes.c_uint64 * 5)()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if libc.syscall(CACHESTAT, descriptor, whole_file, counted, 0):
            raise OSError(ctypes.get_errno(), "cachestat")
    finally:
        os.close(descriptor)
    return counted[1] + counted[2]


@pytest.fixture
def disk_folder(tmp_path):
    """A folder whose file system tells which pages are not on the disk yet."""
    probe = tmp_path / "probe"
    with probe.open("wb", buffering=0) as file:
        file.write(b"x" * 8192)
        try:
            before = dirty_pages(probe)
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP):
                raise
            pytest.skip("needs cachestat (Linux 6.5)")
        os.fdatasync(file.fileno())
    if (before > 0, dirty_pages(probe)) != (True, 0):
        pytest.skip("needs a file system with a disk behind it")
    return tmp_path / "node"


def dirty_after_each_sync(folder, *, sync):
    """Dirty pages of the data file at the moment when an append would be answered."""
    store = LmdbStore.open(folder, sync=sync, **kit.SMALL)
    for turn in range(1, 9):
        kit.append_run(store, turn, turn)
        kit.sync(store)
        yield dirty_pages(folder / "data.mdb")
    store.close()


def test_no_page_of_an_acknowledged_append_is_only_in_the_page_cache(disk_folder):
    assert list(dirty_after_each_sync(disk_folder, sync=True)) == [0] * 8


def test_negative_control_flush_policy_off_leaves_pages_in_the_cache(disk_folder):
    assert sum(dirty_after_each_sync(disk_folder, sync=False)) > 0


@pytest.mark.parametrize(
    "unsynced",
    ["first=4, entries=kit.run_of(4, 6)", "hard_state=HardState(7, 2)"],
    ids=["entries", "a vote"],
)
def test_what_a_start_finds_is_on_the_disk_before_anyone_builds_on_it(disk_folder, unsynced):
    """A process with flush policy off is killed, the next one flushes: what the page cache kept
    would otherwise count as durable, and be acknowledged, without ever having been written."""
    store = LmdbStore.open(disk_folder, **kit.SMALL)
    kit.append_run(store, 1, 3)
    kit.sync(store)
    store.close()
    script = (
        "import os, log_kit as kit\n"
        "from pathlib import Path\n"
        "from ottla.log.store import Write\n"
        "from ottla.raft.types import HardState\n"
        f"store = kit.open_lmdb(Path({str(disk_folder)!r}), sync=False)\n"
        f"store.append([Write(1, {unsynced})])\n"
        "kit.sync(store)\n"
        "os._exit(0)\n"
    )
    assert kit.in_child(script).stderr == ""
    assert dirty_pages(disk_folder / "data.mdb") > 0
    store = LmdbStore.open(disk_folder, **kit.SMALL)
    (found,) = store.groups()
    assert (found.last_index, found.hard_state) in ((6, HardState(1, 0)), (3, HardState(7, 2)))
    assert dirty_pages(disk_folder / "data.mdb") == 0
    store.close()


def test_what_a_crash_left_unsynced_is_synced_before_the_next_promise():
    """In memory, appends that a crash spared are found by the next store; its first sync covers
    them, though it has appended nothing itself."""
    disk = MemoryDisk()
    kit.append_run(MemoryStore(disk), 1, 4)
    disk.crash(keep=1)
    store = MemoryStore(disk)
    assert store.groups()[0].last_index == 4
    kit.sync(store)
    disk.crash()
    assert MemoryStore(disk).groups()[0].last_index == 4
