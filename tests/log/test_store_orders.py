"""Rare orders of writes, for every store: what folds within one sync, what may leave memory, what a
crash takes back.

A disk store keeps what is not durable in memory and evicts the rest; each of these is a way to take
for durable what has been replaced since, so terms are compared, not only indexes.
"""

import pytest

import log_kit as kit
from ottla.log.store import LogStore, Write
from ottla.raft.types import HardState


@pytest.fixture(params=kit.KITS)
def medium(request, tmp_path):
    """A medium with a store on it."""
    made = kit.KITS[request.param](tmp_path / "node")
    yield made
    made.store.close()


def places(store: LogStore) -> list[tuple[int, int]]:
    return [(entry.index, entry.term) for entry in store.scan(1)]


def amid_a_sync(store: LogStore, *writes: Write) -> None:
    """Append while a sync of what was appended before is under way, and let that end."""
    job = store.begin_sync()
    store.append(writes)
    if job is not None:
        job.run()
        store.finish_sync(job)


def test_what_replaces_durable_entries_and_younger_ones_within_one_sync(medium):
    kit.append_run(medium.store, 1, 4)
    kit.sync(medium.store)
    kit.append_run(medium.store, 5, 6)
    kit.append_run(medium.store, 3, 3, term=2)
    for store in medium.now_and_later():
        assert places(store) == [(1, 1), (2, 1), (3, 2)]


def test_what_replaces_entries_while_they_are_synced(medium):
    kit.append_run(medium.store, 1, 4)
    newer = Write(1, hard_state=HardState(2), first=3, entries=kit.run_of(3, 4, term=2))
    amid_a_sync(medium.store, newer)
    for store in medium.now_and_later():
        assert places(store) == [(1, 1), (2, 1), (3, 2), (4, 2)]


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (
            Write(1, hard_state=HardState(2), first=3, entries=kit.run_of(3, 6, term=2)),
            [(1, 1), (2, 1), (3, 2), (4, 2), (5, 2), (6, 2)],
        ),
        (
            Write(
                1,
                hard_state=HardState(2),
                snapshot=kit.snapshot_at(3, 2),
                reset=True,
                first=4,
                entries=kit.run_of(4, 6, term=2),
            ),
            [(4, 2), (5, 2), (6, 2)],
        ),
    ],
    ids=["truncation", "reset"],
)
def test_what_replaces_durable_entries_while_others_are_synced(medium, write, expected):
    kit.append_run(medium.store, 1, 6)
    kit.sync(medium.store)
    kit.append_run(medium.store, 1, 2, group=2)
    amid_a_sync(medium.store, write)
    for store in medium.now_and_later():
        assert places(store) == expected


def test_a_turn_with_several_writes_to_a_group_is_taken_back_whole(medium):
    kit.append_run(medium.store, 1, 4)
    kit.sync(medium.store)
    before = kit.contents(medium.store)
    medium.store.append(
        [
            Write(1, hard_state=HardState(2, 1), first=5, entries=kit.run_of(5, 6, term=2)),
            Write(1, hard_state=HardState(3, 2)),
            Write(1, first=4, truncate=True),
            Write(1, first=2, entries=kit.run_of(2, 3, term=3)),
        ]
    )
    assert places(medium.store) == [(1, 1), (2, 3), (3, 3)]
    assert kit.contents(medium.crash()) == before
