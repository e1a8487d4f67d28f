"""What recovery has read stays in memory up to the cache's bound: a start decodes it once.

A start read every log twice, which took 3.9 s for 100,000 batches on three nodes. Reads of the
store are counted, not timed.
"""

import pytest

import log_kit as kit
from ottla.log import codec, disk_groups, keys
from ottla.log.codec import encode_entries
from ottla.log.lmdb_store import LmdbStore
from ottla.log.recovery import Kept, StoredRecord
from ottla.log.store import Write

ROOM = 20_000


@pytest.fixture
def folder(tmp_path):
    """Two groups of 60 entries, about 100 bytes each."""
    store = kit.open_lmdb(tmp_path / "node")
    for group in (1, 2):
        for first in range(1, 61, 6):
            kit.append_run(store, first, first + 5, group=group)
        kit.sync(store)
    store.close()
    return tmp_path / "node"


def decoded(monkeypatch, work):
    """How many entries are decoded by `work`."""
    count = 0
    real = codec.decode_entries

    def counting(data):
        nonlocal count
        for entry in real(data):
            count += 1
            yield entry

    with monkeypatch.context() as patched:
        patched.setattr(disk_groups, "decode_entries", counting)
        work()
    return count


def test_a_start_decodes_every_entry_once(folder, monkeypatch):
    def start():
        store = kit.open_lmdb(folder, cache_bytes=1 << 20)
        for group in (1, 2):
            assert [entry.index for entry in store.scan(group)] == list(range(1, 61))
        store.close()

    assert decoded(monkeypatch, start) == 120


@pytest.mark.parametrize("room", [0, 1, 300, 1000, 5000, ROOM])
def test_whatever_is_kept_of_it_a_log_reads_the_same(folder, room):
    store = kit.open_lmdb(folder, cache_bytes=0)
    plain = {group: store.read(group, 1, 60, 1 << 20) for group in (1, 2)}
    store.close()
    store = kit.open_lmdb(folder, cache_bytes=room)
    for group, expected in plain.items():
        assert list(store.scan(group)) == expected
        for first in (1, 29, 30, 31, 60):
            assert store.read(group, first, 60, 1 << 20) == expected[first - 1 :]
    assert store.cached_bytes <= room
    kit.append_run(store, 61, 70)
    kit.sync(store)
    assert [entry.index for entry in store.scan(1)] == list(range(1, 71))
    assert store.cached_bytes <= room
    store.append([Write(1, first=20, truncate=True)])
    kit.append_run(store, 20, 22, term=2)
    kit.sync(store)
    assert [(entry.index, entry.term) for entry in store.scan(1)][18:] == [
        (19, 1),
        (20, 2),
        (21, 2),
        (22, 2),
    ]
    store.close()


def test_what_recovery_cut_is_not_kept(tmp_path):
    """An entry in another's place bears any index, also a lower one."""
    folder = tmp_path / "node"
    store = LmdbStore.open(folder, sync=False)
    kit.append_run(store, 1, 4)
    kit.sync(store)
    store.close()
    found = [*kit.run_of(1, 2), *kit.run_of(1, 1)]
    kit.change_lmdb(folder, keys.chunk_key(1, 1), encode_entries(found))
    store = kit.open_lmdb(folder, cache_bytes=1 << 20)
    assert [entry.index for entry in store.scan(1)] == [1, 2]
    store.close()


def test_the_newest_entries_are_kept():
    entries = kit.run_of(1, 100)
    kept = Kept(10 * entries[0].size)
    for _ in kept.seen(StoredRecord(entry.index, entry) for entry in entries):
        pass
    assert kept.entries == entries[-len(kept.entries) :]
    assert 5 <= len(kept.entries) <= 10
    assert kept.bytes == sum(entry.size for entry in kept.entries)
