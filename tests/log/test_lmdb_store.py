"""What only the store on LMDB has: a folder of its own, a map that grows, a disk that fills.

Also how far compaction goes with each sync. What happens to damaged values is in
test_lmdb_damage.py; what every store promises, in test_store_contract.py.
"""

import os
import subprocess
import sys
from types import SimpleNamespace

import lmdb
import pytest

import log_kit as kit
from ottla.log import keys
from ottla.log.errors import DamagedFolderError, DiskFullError, FormatError, StoreError
from ottla.log.store import Write
from ottla.raft.types import HardState


@pytest.fixture
def folder(tmp_path):
    """Where a store may be made."""
    return tmp_path / "node"


def large_run(first, last, size):
    return [kit.batch_entry(index, values=[b"x" * size]) for index in range(first, last + 1)]


def append_large(store, first, last, size):
    run = large_run(first, last, size)
    store.append([Write(1, hard_state=HardState(1, 0), first=first, entries=run)])


# ---- the folder


def test_a_folder_in_use_is_refused_in_one_line(folder):
    store = kit.open_lmdb(folder)
    with pytest.raises(FormatError, match=r"^[^\n]*in use by another process or store$"):
        kit.open_lmdb(folder)
    store.close()
    kit.open_lmdb(folder).close()


@pytest.mark.slow
def test_a_second_process_is_refused(folder):
    store = kit.open_lmdb(folder)
    script = f"from ottla.log.lmdb_store import LmdbStore; LmdbStore.open({str(folder)!r})"
    ended = kit.in_child(script)
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (
        1,
        f"ottla.log.errors.FolderInUseError: {folder}: in use by another process or store",
    )
    store.close()


def test_a_folder_of_another_format_is_refused(folder):
    kit.open_lmdb(folder).close()
    kit.change_lmdb(folder, keys.FORMAT_KEY, b"99")
    with pytest.raises(FormatError, match=r"^[^\n]*format 99, this program reads 1$"):
        kit.open_lmdb(folder)
    assert kit.data_of(folder)[keys.FORMAT_KEY] == b"99"


def test_a_folder_of_something_else_is_refused(folder):
    with lmdb.open(str(folder)) as env, env.begin(write=True) as txn:
        txn.put(b"somebody", b"else")
    with pytest.raises(FormatError, match="not an Ottla log"):
        kit.open_lmdb(folder)
    assert kit.data_of(folder) == {b"somebody": b"else"}


def test_a_data_file_that_is_no_lmdb_file_is_refused(folder):
    folder.mkdir()
    (folder / "data.mdb").write_bytes(b"no database" * 1000)
    with pytest.raises(DamagedFolderError, match=r"^meta page 0 of data.mdb is damaged"):
        kit.open_lmdb(folder)


def test_a_folder_of_another_node_is_refused(folder):
    kit.open_lmdb(folder, node=1).close()
    kit.open_lmdb(folder, node=1).close()
    kit.open_lmdb(folder).close()
    with pytest.raises(FormatError, match="belongs to node 1, not 2"):
        kit.open_lmdb(folder, node=2)


def test_a_refused_folder_is_not_left_locked(folder):
    kit.open_lmdb(folder, node=1).close()
    with pytest.raises(FormatError):
        kit.open_lmdb(folder, node=2)
    kit.open_lmdb(folder, node=1).close()


# ---- room


def test_the_map_grows_while_entries_are_read(folder):
    store = kit.open_lmdb(folder, first_map_bytes=256 * 1024, cache_bytes=0)
    for first in range(1, 41, 4):
        append_large(store, first, first + 3, 100_000)
        kit.sync(store)
        assert store.read(1, first, first, 1)[0].index == first
    store.close()
    store = kit.open_lmdb(folder, first_map_bytes=256 * 1024)
    assert [entry.index for entry in store.scan(1)] == list(range(1, 41))
    store.close()


@pytest.mark.parametrize(
    "gone",
    [
        Write(1, delete=True),
        Write(1, first=3, truncate=True),
        Write(1, snapshot=kit.snapshot_at(5), reset=True),
    ],
    ids=["deleted", "truncated", "reset"],
)
def test_what_never_became_durable_keeps_nothing_else_in_memory(folder, gone):
    store = kit.open_lmdb(folder, cache_bytes=0)
    kit.append_run(store, 1, 9)
    store.append([gone])
    others = kit.run_of(1, 3)
    store.append([Write(2, hard_state=HardState(1, 0), first=1, entries=others)])
    kit.sync(store)
    (found,) = store.read(2, 1, 1, 1)
    assert found is not others[0], "still in memory, beyond the cache's bound"
    store.close()


@pytest.mark.parametrize("size", [1_000, 700_000])
def test_zeros_ahead_never_reach_what_is_stored(folder, size):
    store = kit.open_lmdb(folder, zero_step_bytes=1 << 20, cache_bytes=0)
    for first in range(1, 13, 3):
        append_large(store, first, first + 2, size)
        kit.sync(store)
    before = kit.contents(store)
    store.close()
    store = kit.open_lmdb(folder)
    assert kit.contents(store) == before
    assert store.groups()[0].last_index == 12
    store.close()


@pytest.mark.slow
def test_the_file_is_filled_ahead_of_its_use(folder):
    store = kit.open_lmdb(folder, zero_step_bytes=1 << 20)
    sizes = []
    for first in range(1, 60):
        append_large(store, first, first, 20_000)
        kit.sync(store)
        sizes.append((folder / "data.mdb").stat().st_size)
    store.close()
    assert len(set(sizes)) < 8, "the file grew with nearly every commit"


def test_a_full_store_says_so_and_keeps_what_was_durable(folder):
    store = kit.open_lmdb(folder, max_map_bytes=1 << 20)
    append_large(store, 1, 2, 100_000)
    kit.sync(store)
    append_large(store, 3, 30, 100_000)
    job = store.begin_sync()
    assert job is not None
    job.run()
    with pytest.raises(DiskFullError, match="no room on the disk") as raised:
        store.finish_sync(job)
    assert raised.value.definite
    for refused in (store.begin_sync, lambda: store.append([]), lambda: store.put_meta("a", b"")):
        with pytest.raises(DiskFullError):
            refused()
    store.close()
    store = kit.open_lmdb(folder)
    assert store.groups()[0].last_index == 2
    append_large(store, 3, 4, 10)
    kit.sync(store)
    store.close()


FULL_DISK = """
import sys, log_kit as kit
from ottla.log.errors import DiskFullError
from ottla.log.lmdb_store import LmdbStore
store = LmdbStore.open(sys.argv[1], zero_step_bytes=1 << 20)
index = 0
try:
    while True:
        index += 1
        kit.append_run(store, index, index)
        kit.sync(store)
except DiskFullError as error:
    print("acknowledged", index - 1, error)
store.close()
store = LmdbStore.open(sys.argv[1], zero_step_bytes=0)
print("found", store.groups()[0].last_index)
"""


@pytest.mark.slow
def test_a_full_disk_is_a_clear_error_and_loses_nothing_acknowledged(tmp_path):
    mounted = f"mount -t tmpfs -o size=400k none {tmp_path} && "
    run = [sys.executable, "-c", FULL_DISK, str(tmp_path / "node")]
    quoted = " ".join(f"'{word}'" if "\n" not in word else '"$SCRIPT"' for word in run)
    isolated = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    try:
        subprocess.run([*isolated, mounted + "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs user namespaces to mount a small disk")
    environment = {"SCRIPT": FULL_DISK, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ended = subprocess.run(
        [*isolated, mounted + quoted],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    acknowledged, found = (line.split() for line in ended.stdout.splitlines())
    assert "no room on the disk" in " ".join(acknowledged)
    assert int(found[1]) >= int(acknowledged[1]) > 10


@pytest.mark.parametrize(("blocks", "told"), [(0, "; there is no room on the disk"), (1 << 20, "")])
def test_an_input_output_error_on_a_full_disk_says_that_it_is_full(
    folder, monkeypatch, blocks, told
):
    """LMDB calls a short write so; whether it was the last one of the commit nobody knows."""
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=blocks, f_frsize=4096))

    def short_write(*_, **__):
        raise lmdb.DiskError("mdb_txn_commit: Input/output error")

    monkeypatch.setattr(lmdb, "open", short_write)
    with pytest.raises(StoreError) as raised:
        kit.open_lmdb(folder)
    assert str(raised.value) == f"{folder}: mdb_txn_commit: Input/output error{told}"
    assert not raised.value.definite


# ---- compaction


def chunk_starts(folder):
    return [key[-1] for key in sorted(kit.data_of(folder)) if key[:1] == keys.CHUNK]


def test_the_entries_of_one_sync_are_cut_into_chunks(folder):
    """So that a compaction can let go of some of them, and a read need not decode them all."""
    store = kit.open_lmdb(folder)
    append_large(store, 1, 4, 30_000)
    append_large(store, 5, 5, 200_000)
    append_large(store, 6, 6, 10)
    kit.sync(store)
    assert [entry.index for entry in store.scan(1)] == [1, 2, 3, 4, 5, 6]
    store.close()
    assert chunk_starts(folder) == [1, 3, 5, 6]


@pytest.mark.parametrize(
    ("upto", "left"),
    [(3, [1, 5, 6, 9]), (4, [5, 6, 9]), (5, [6, 9]), (7, [6, 9]), (8, [9]), (12, [])],
)
def test_compaction_deletes_exactly_the_chunks_below_the_log(folder, upto, left):
    store = kit.open_lmdb(folder)
    for first, last in ((1, 4), (5, 5), (6, 8), (9, 12)):
        kit.append_run(store, first, last)
        kit.sync(store)
    store.append([Write(1, snapshot=kit.snapshot_at(upto), compact_to=upto)])
    kit.sync(store)
    store.close()
    assert chunk_starts(folder) == left
    store = kit.open_lmdb(folder)
    assert [entry.index for entry in store.scan(1)] == list(range(upto + 1, 13))
    store.close()


@pytest.mark.slow
def test_a_large_compaction_is_spread_over_syncs_and_goes_on_after_a_restart(folder):
    store = kit.open_lmdb(folder, sync=False)
    for index in range(1, 601):
        kit.append_run(store, index, index)
        kit.sync(store)
    counts = []
    store.append([Write(1, snapshot=kit.snapshot_at(599), compact_to=599)])
    kit.sync(store)
    store.close()
    counts.append(len(chunk_starts(folder)))
    for term in (700, 701):
        store = kit.open_lmdb(folder)
        assert [entry.index for entry in store.scan(1)] == [600]
        store.append([Write(2, hard_state=HardState(term, 1))])
        kit.sync(store)
        store.close()
        counts.append(len(chunk_starts(folder)))
    assert counts == [344, 88, 1]
