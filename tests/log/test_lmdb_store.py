"""What only the store on LMDB has: a folder, a map that grows, a disk that fills, damaged bytes.

Damage is done through LMDB itself, behind the store's back: its pages stay well-formed, only the
values are wrong, which LMDB does not notice and our checksums must.
"""

import os
import subprocess
import sys

import lmdb
import pytest

import log_kit as kit
from ottla.log import keys
from ottla.log.errors import CorruptLogError, DiskFullError, FormatError, StoreError
from ottla.log.lmdb_store import LmdbStore
from ottla.log.store import Write
from ottla.raft.types import HardState


@pytest.fixture
def folder(tmp_path):
    """Where a store may be made."""
    return tmp_path / "node"


def opened(folder, **settings):
    return LmdbStore.open(folder, **(kit.SMALL | settings))


def large_run(first, last, size):
    return [kit.batch_entry(index, values=[b"x" * size]) for index in range(first, last + 1)]


def append_large(store, first, last, size):
    run = large_run(first, last, size)
    store.append([Write(1, hard_state=HardState(1, 0), first=first, entries=run)])


def data_of(folder):
    """Every key and value of a closed store."""
    with lmdb.open(str(folder), readonly=True) as env, env.begin() as txn:
        return dict(txn.cursor())


def change(folder, key, value):
    """Put a value into a closed store behind its back; None deletes."""
    with lmdb.open(str(folder)) as env, env.begin(write=True) as txn:
        assert txn.put(key, value) if value is not None else txn.delete(key)


def in_child(script):
    """Run `script` in a Python of its own."""
    run = [sys.executable, "-c", script]
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(run, env=environment, capture_output=True, text=True, check=False)


# ---- the folder


def test_a_folder_in_use_is_refused_in_one_line(folder):
    store = opened(folder)
    with pytest.raises(FormatError, match=r"^[^\n]*in use by another process or store$"):
        opened(folder)
    store.close()
    opened(folder).close()


def test_a_second_process_is_refused(folder):
    store = opened(folder)
    script = f"from ottla.log.lmdb_store import LmdbStore; LmdbStore.open({str(folder)!r})"
    ended = in_child(script)
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (
        1,
        f"ottla.log.errors.FormatError: {folder}: in use by another process or store",
    )
    store.close()


def test_a_folder_of_another_format_is_refused(folder):
    opened(folder).close()
    change(folder, keys.FORMAT_KEY, b"99")
    with pytest.raises(FormatError, match=r"^[^\n]*format 99, this program reads 1$"):
        opened(folder)
    assert data_of(folder)[keys.FORMAT_KEY] == b"99"


def test_a_folder_of_something_else_is_refused(folder):
    with lmdb.open(str(folder)) as env, env.begin(write=True) as txn:
        txn.put(b"somebody", b"else")
    with pytest.raises(FormatError, match="not an Ottla log"):
        opened(folder)
    assert data_of(folder) == {b"somebody": b"else"}


def test_a_data_file_that_is_no_lmdb_file_is_refused(folder):
    folder.mkdir()
    (folder / "data.mdb").write_bytes(b"no database" * 1000)
    with pytest.raises(FormatError, match=r"^[^\n]*no LMDB folder of this version"):
        opened(folder)


def test_a_folder_of_another_node_is_refused(folder):
    opened(folder, node=1).close()
    opened(folder, node=1).close()
    opened(folder).close()
    with pytest.raises(FormatError, match="belongs to node 1, not 2"):
        opened(folder, node=2)


def test_a_refused_folder_is_not_left_locked(folder):
    opened(folder, node=1).close()
    with pytest.raises(FormatError):
        opened(folder, node=2)
    opened(folder, node=1).close()


# ---- room


def test_the_map_grows_while_entries_are_read(folder):
    store = opened(folder, first_map_bytes=256 * 1024, cache_bytes=0)
    for first in range(1, 41, 4):
        append_large(store, first, first + 3, 100_000)
        kit.sync(store)
        assert store.read(1, first, first, 1)[0].index == first
    store.close()
    store = opened(folder, first_map_bytes=256 * 1024)
    assert [entry.index for entry in store.scan(1)] == list(range(1, 41))
    store.close()


@pytest.mark.parametrize("size", [1_000, 700_000])
def test_zeros_ahead_never_reach_what_is_stored(folder, size):
    store = opened(folder, zero_step_bytes=1 << 20, cache_bytes=0)
    for first in range(1, 13, 3):
        append_large(store, first, first + 2, size)
        kit.sync(store)
    before = kit.contents(store)
    store.close()
    store = opened(folder)
    assert kit.contents(store) == before
    assert store.groups()[0].last_index == 12
    store.close()


def test_the_file_is_filled_ahead_of_its_use(folder):
    store = opened(folder, zero_step_bytes=1 << 20)
    sizes = []
    for first in range(1, 60):
        append_large(store, first, first, 20_000)
        kit.sync(store)
        sizes.append((folder / "data.mdb").stat().st_size)
    store.close()
    assert len(set(sizes)) < 8, "the file grew with nearly every commit"


def test_a_full_store_says_so_and_keeps_what_was_durable(folder):
    store = opened(folder, max_map_bytes=1 << 20)
    append_large(store, 1, 2, 100_000)
    kit.sync(store)
    append_large(store, 3, 30, 100_000)
    job = store.begin_sync()
    job.run()
    with pytest.raises(DiskFullError, match="no room on the disk") as raised:
        store.finish_sync(job)
    assert raised.value.definite
    for refused in (store.begin_sync, lambda: store.append([]), lambda: store.put_meta("a", b"")):
        with pytest.raises(DiskFullError):
            refused()
    store.close()
    store = opened(folder)
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


# ---- damage


def flipped(value, at):
    return value[:at] + bytes([value[at] ^ 0x40]) + value[at + 1 :]


def stored_in_three_chunks(folder):
    """Three turns of four entries each, synced one by one; closed."""
    store = opened(folder)
    for first in (1, 5, 9):
        kit.append_run(store, first, first + 3)
        kit.sync(store)
    snapshot = kit.snapshot_at(1)
    store.append([Write(1, snapshot=snapshot)])
    kit.sync(store)
    store.close()


@pytest.mark.parametrize("at", [0, 2, 5, 8, 20, 33, 60, 80, -1])
def test_a_flipped_bit_in_durable_entries_is_refused(folder, at):
    stored_in_three_chunks(folder)
    key = keys.chunk_key(1, 5)
    value = data_of(folder)[key]
    change(folder, key, flipped(value, at % len(value)))
    with pytest.raises(CorruptLogError, match=r"group 1, index [5-8]: damaged though synced up to"):
        opened(folder)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (keys.state_key(1), "group 1, index 0: state"),
        (keys.snapshot_key(1), "group 1, index 0: snapshot"),
    ],
)
def test_a_flipped_bit_in_state_or_snapshot_is_refused(folder, key, reason):
    stored_in_three_chunks(folder)
    change(folder, key, flipped(data_of(folder)[key], 7))
    with pytest.raises(CorruptLogError, match=reason):
        opened(folder)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (keys.chunk_key(1, 1), "group 1, index 1: missing though synced up to 12"),
        (keys.chunk_key(1, 5), "group 1, index 5: missing though synced up to 12"),
        (keys.chunk_key(1, 9), "group 1, index 9: missing: the log was synced up to 12"),
        (keys.state_key(1), "group 1, index 0: entries without a state"),
    ],
)
def test_something_durable_that_is_missing_is_refused(folder, key, reason):
    stored_in_three_chunks(folder)
    change(folder, key, None)
    with pytest.raises(CorruptLogError, match=reason):
        opened(folder)


def test_a_refused_folder_can_be_opened_again_when_it_is_repaired(folder):
    stored_in_three_chunks(folder)
    key = keys.chunk_key(1, 5)
    value = data_of(folder)[key]
    change(folder, key, flipped(value, 9))
    with pytest.raises(CorruptLogError):
        opened(folder)
    change(folder, key, value)
    store = opened(folder)
    assert store.groups()[0].last_index == 12
    store.close()


def test_damage_found_while_reading_is_an_error_not_an_answer(folder):
    stored_in_three_chunks(folder)
    store = opened(folder)
    key = keys.chunk_key(1, 5)
    script = (
        "import lmdb\n"
        f"with lmdb.open({str(folder)!r}) as env, env.begin(write=True) as txn:\n"
        f"    value = txn.get({key!r})\n"
        f"    txn.put({key!r}, value[:-1] + b'?')\n"
    )
    assert in_child(script).stderr == ""
    assert len(store.read(1, 1, 7, 1 << 20)) == 7
    with pytest.raises(CorruptLogError, match="group 1, index 8"):
        store.read(1, 1, 8, 1 << 20)
    store.close()


def test_a_closed_store_refuses_to_read(folder):
    stored_in_three_chunks(folder)
    store = opened(folder)
    store.close()
    with pytest.raises(StoreError):
        store.read(1, 1, 4, 1 << 20)


@pytest.mark.parametrize("at", [3, 90])
def test_with_flush_policy_off_a_torn_tail_is_cut(folder, at):
    store = opened(folder)
    kit.append_run(store, 1, 4)
    kit.sync(store)
    store.close()
    store = opened(folder, sync=False)
    for first in (5, 7, 9):
        kit.append_run(store, first, first + 1, term=2)
        kit.sync(store)
    store.close()
    key = keys.chunk_key(1, 7)
    change(folder, key, flipped(data_of(folder)[key], at))
    store = opened(folder)
    assert [entry.index for entry in store.scan(1)] in ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6, 7])
    last = store.groups()[0].last_index
    kit.append_run(store, last + 1, last + 2, term=3)
    kit.sync(store)
    store.close()
    store = opened(folder)
    assert store.groups()[0].last_index == last + 2
    store.close()


# ---- compaction


def chunk_starts(folder):
    return [key[-1] for key in sorted(data_of(folder)) if key[:1] == keys.CHUNK]


@pytest.mark.parametrize(
    ("upto", "left"),
    [(3, [1, 5, 6, 9]), (4, [5, 6, 9]), (5, [6, 9]), (7, [6, 9]), (8, [9]), (12, [])],
)
def test_compaction_deletes_exactly_the_chunks_below_the_log(folder, upto, left):
    store = opened(folder)
    for first, last in ((1, 4), (5, 5), (6, 8), (9, 12)):
        kit.append_run(store, first, last)
        kit.sync(store)
    store.append([Write(1, snapshot=kit.snapshot_at(upto), compact_to=upto)])
    kit.sync(store)
    store.close()
    assert chunk_starts(folder) == left
    store = opened(folder)
    assert [entry.index for entry in store.scan(1)] == list(range(upto + 1, 13))
    store.close()


def test_a_large_compaction_is_spread_over_syncs_and_goes_on_after_a_restart(folder):
    store = opened(folder, sync=False)
    for index in range(1, 601):
        kit.append_run(store, index, index)
        kit.sync(store)
    counts = []
    store.append([Write(1, snapshot=kit.snapshot_at(599), compact_to=599)])
    kit.sync(store)
    store.close()
    counts.append(len(chunk_starts(folder)))
    for term in (700, 701):
        store = opened(folder)
        assert [entry.index for entry in store.scan(1)] == [600]
        store.append([Write(2, hard_state=HardState(term, 1))])
        kit.sync(store)
        store.close()
        counts.append(len(chunk_starts(folder)))
    assert counts == [344, 88, 1]
