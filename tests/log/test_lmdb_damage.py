"""Damaged values in an LMDB folder: refused where they were durable, cut where they were not.

Damage is done through LMDB itself, behind the store's back: its pages stay well-formed, only the
values are wrong, which LMDB does not notice and our checksums must.
"""

import pytest

import log_kit as kit
from ottla.log import keys
from ottla.log.codec import encode_entries
from ottla.log.errors import CorruptLogError, StoreError
from ottla.log.store import Write


@pytest.fixture
def folder(tmp_path):
    """Where a store may be made."""
    return tmp_path / "node"


def flipped(value, at):
    return value[:at] + bytes([value[at] ^ 0x40]) + value[at + 1 :]


def change_behind_its_back(folder, key, changed):
    """Put what `changed` says (in Python, of the old `value`) into the folder of an open store."""
    script = (
        "import lmdb\n"
        f"with lmdb.open({str(folder)!r}) as env, env.begin(write=True) as txn:\n"
        f"    value = txn.get({key!r})\n"
        f"    txn.put({key!r}, {changed})\n"
    )
    assert kit.in_child(script).stderr == ""


def stored_in_three_chunks(folder):
    """Three turns of four entries each, synced one by one; closed."""
    store = kit.open_lmdb(folder)
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
    value = kit.data_of(folder)[key]
    kit.change_lmdb(folder, key, flipped(value, at % len(value)))
    with pytest.raises(CorruptLogError, match=r"group 1, index [5-8]: damaged though synced up to"):
        kit.open_lmdb(folder)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (keys.state_key(1), "group 1, index 0: state"),
        (keys.snapshot_key(1), "group 1, index 0: snapshot"),
    ],
)
def test_a_flipped_bit_in_state_or_snapshot_is_refused(folder, key, reason):
    stored_in_three_chunks(folder)
    kit.change_lmdb(folder, key, flipped(kit.data_of(folder)[key], 7))
    with pytest.raises(CorruptLogError, match=reason):
        kit.open_lmdb(folder)


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
    kit.change_lmdb(folder, key, None)
    with pytest.raises(CorruptLogError, match=reason):
        kit.open_lmdb(folder)


def test_a_refused_folder_can_be_opened_again_when_it_is_repaired(folder):
    stored_in_three_chunks(folder)
    key = keys.chunk_key(1, 5)
    value = kit.data_of(folder)[key]
    kit.change_lmdb(folder, key, flipped(value, 9))
    with pytest.raises(CorruptLogError):
        kit.open_lmdb(folder)
    kit.change_lmdb(folder, key, value)
    store = kit.open_lmdb(folder)
    assert store.groups()[0].last_index == 12
    store.close()


def test_damage_found_while_reading_is_an_error_not_an_answer(folder):
    stored_in_three_chunks(folder)
    store = kit.open_lmdb(folder, cache_bytes=0)
    change_behind_its_back(folder, keys.chunk_key(1, 5), "value[:-1] + b'?'")
    assert len(store.read(1, 1, 7, 1 << 20)) == 7
    with pytest.raises(CorruptLogError, match="group 1, index 8"):
        store.read(1, 1, 8, 1 << 20)
    store.close()


def test_an_entry_in_the_place_of_another_is_an_error_not_an_answer(folder):
    stored_in_three_chunks(folder)
    store = kit.open_lmdb(folder, cache_bytes=0)
    change_behind_its_back(folder, keys.chunk_key(1, 5), f"txn.get({keys.chunk_key(1, 9)!r})")
    assert len(store.read(1, 1, 4, 1 << 20)) == 4
    with pytest.raises(CorruptLogError, match="group 1, index 5: found"):
        store.read(1, 1, 5, 1 << 20)
    store.close()


def test_a_closed_store_refuses_to_read(folder):
    stored_in_three_chunks(folder)
    store = kit.open_lmdb(folder, cache_bytes=0)
    store.close()
    with pytest.raises(StoreError):
        store.read(1, 1, 4, 1 << 20)


@pytest.mark.parametrize("at", [3, 90])
def test_with_flush_policy_off_a_torn_tail_is_cut(folder, at):
    store = kit.open_lmdb(folder)
    kit.append_run(store, 1, 4)
    kit.sync(store)
    store.close()
    store = kit.open_lmdb(folder, sync=False)
    for first in (5, 7, 9):
        kit.append_run(store, first, first + 1, term=2)
        kit.sync(store)
    store.close()
    key = keys.chunk_key(1, 7)
    kit.change_lmdb(folder, key, flipped(kit.data_of(folder)[key], at))
    store = kit.open_lmdb(folder)
    assert [entry.index for entry in store.scan(1)] in ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6, 7])
    last = store.groups()[0].last_index
    kit.append_run(store, last + 1, last + 2, term=3)
    kit.sync(store)
    store.close()
    store = kit.open_lmdb(folder)
    assert store.groups()[0].last_index == last + 2
    store.close()


def test_with_flush_policy_off_what_replaced_durable_entries_is_not_durable(folder):
    store = kit.open_lmdb(folder)
    kit.append_run(store, 1, 6)
    kit.sync(store)
    store.close()
    store = kit.open_lmdb(folder, sync=False)
    kit.append_run(store, 3, 5, term=2)
    kit.sync(store)
    store.close()
    key = keys.chunk_key(1, 3)
    kit.change_lmdb(folder, key, flipped(kit.data_of(folder)[key], 8))
    store = kit.open_lmdb(folder)
    assert store.groups()[0].last_index == 2
    store.close()


def test_what_is_cut_is_gone_even_if_it_bears_a_lower_index(folder):
    """An entry of the right form in the wrong place (D4) once stayed in its chunk: a later start
    took it for damage to what had been synced behind it, and refused the folder."""
    store = kit.open_lmdb(folder, sync=False)
    kit.append_run(store, 1, 4)
    kit.sync(store)
    store.close()
    found = [*kit.run_of(1, 2), *kit.run_of(1, 1)]
    kit.change_lmdb(folder, keys.chunk_key(1, 1), encode_entries(found))
    store = kit.open_lmdb(folder)
    assert store.groups()[0].last_index == 2
    kit.append_run(store, 3, 4, term=2)
    kit.sync(store)
    store.close()
    store = kit.open_lmdb(folder)
    assert [(entry.index, entry.term) for entry in store.scan(1)] == [
        (1, 1),
        (2, 1),
        (3, 2),
        (4, 2),
    ]
    store.close()


def test_what_a_start_found_and_flushed_is_durable_from_then_on(folder):
    store = kit.open_lmdb(folder, sync=False)
    kit.append_run(store, 1, 4)
    kit.sync(store)
    store.close()
    kit.open_lmdb(folder).close()
    key = keys.chunk_key(1, 1)
    kit.change_lmdb(folder, key, flipped(kit.data_of(folder)[key], 9))
    with pytest.raises(CorruptLogError, match="group 1, index 1: damaged though synced up to 4"):
        kit.open_lmdb(folder)


def test_with_flush_policy_off_a_snapshot_that_replaced_durable_entries_is_no_damage(folder):
    store = kit.open_lmdb(folder)
    kit.append_run(store, 1, 6)
    kit.sync(store)
    store.close()
    store = kit.open_lmdb(folder, sync=False)
    store.append([Write(1, snapshot=kit.snapshot_at(3, 2), reset=True)])
    kit.sync(store)
    store.close()
    store = kit.open_lmdb(folder)
    assert (store.groups()[0].first_index, store.groups()[0].last_index) == (4, 3)
    store.close()
