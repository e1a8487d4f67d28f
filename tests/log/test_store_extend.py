"""`LogStore.extend`: an append, and a sync where that takes no time."""

import pytest

from log_kit import KITS, StoreKit, contents, sync
from ottla.log.errors import StoreError
from ottla.log.memory_store import MemoryDisk, MemoryStore
from ottla.log.store import Write
from ottla.raft.types import Entry, EntryKind, HardState

BEGIN = Write(1, HardState(1, 0), first=1, entries=[Entry(1, 1, EntryKind.COMMAND, b"1")])


@pytest.fixture(params=KITS)
def kit(request, tmp_path):
    """A medium with a store on it."""
    made = KITS[request.param](tmp_path / "node")
    yield made
    made.store.close()


def entry(index: int) -> Entry:
    return Entry(index, 1, EntryKind.COMMAND, b"%d" % index)


def test_it_appends(kit: StoreKit) -> None:
    store = kit.store
    store.append([BEGIN])
    sync(store)
    durable = store.extend(1, 2, [entry(2), entry(3)])
    assert store.immediate or not durable
    assert store.read(1, 2, 3, 1000) == [entry(2), entry(3)]
    sync(store)
    kept = contents(store)
    assert contents(kit.crash()) == kept


def test_what_it_calls_durable_is(kit: StoreKit) -> None:
    store = kit.store
    store.append([BEGIN])
    sync(store)
    last = 2 if store.extend(1, 2, [entry(2)]) else 1
    assert kit.crash().groups()[0].last_index == last


@pytest.mark.parametrize("first", [2, 3])
def test_it_refuses_to_call_durable_what_waits_behind_an_unsynced_append(first: int) -> None:
    disk = MemoryDisk()
    store = MemoryStore(disk)
    store.append([BEGIN])
    if first == 3:
        assert not store.extend(1, 2, [entry(2)])
    assert not store.extend(1, first, [entry(first)])
    disk.crash()
    assert MemoryStore(disk).groups() == []


@pytest.mark.parametrize("trouble", ["deferred", "held", "failing"])
def test_where_syncs_take_time_or_fail_it_only_appends(trouble: str) -> None:
    disk = MemoryDisk()
    store = MemoryStore(disk)
    store.append([BEGIN])
    sync(store)
    if trouble == "deferred":
        disk.defer_syncs = True
    elif trouble == "held":
        disk.hold_syncs()
    else:
        disk.fail_syncs(StoreError("input/output error"))
    assert not store.extend(1, 2, [entry(2)])
    assert disk.unsynced_appends == 1


def test_on_a_store_that_failed_it_raises() -> None:
    store = MemoryStore(MemoryDisk())
    store.append([BEGIN])
    sync(store)
    store.close()
    with pytest.raises(StoreError):
        store.extend(1, 2, [entry(2)])
