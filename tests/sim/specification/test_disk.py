"""What a life may find on its disk, and what not."""

import pytest

from ottla.sim.specification.trace import Entry
from sim_traces import Traced, led, refuses

A, B, C = Entry(1, 11), Entry(1, 12), Entry(1, 13)


def test_what_is_durable_is_found():
    traced = led(A, B)
    traced.start(2, traced.found(2))
    with refuses("it cannot hold term 1, vote 1, 3 entries"):
        traced.start(2, traced.found(2, entries=3))


def test_a_group_that_was_durable_is_found():
    traced = led()
    with refuses("the disk held term 1, vote 1, 2 entries"):
        traced.start(2)


@pytest.mark.parametrize("kept", [2, 3, 4, 5])
def test_of_later_writes_the_first_few_are_found_and_of_the_last_a_part(kept):
    traced = _unsynced()
    traced.start(1, traced.found(1, entries=kept))
    assert len(traced.member(1).durable.log) == kept


def test_no_later_write_is_found_without_an_earlier_one():
    traced = _unsynced()
    found = traced.found(1)
    with refuses("and 2 later writes; it cannot hold"):
        traced.start(1, found._replace(entries=(*found.entries[:2], C)))


def test_an_entry_is_found_as_it_was_written():
    """A torn write that recovery does not cut off."""
    traced = _unsynced()
    found = traced.found(1)
    with refuses("it cannot hold"):
        traced.start(1, found._replace(entries=(*found.entries[:-1], C._replace(mark=99))))


def test_messages_of_an_earlier_life_are_forgotten():
    traced = led(A)
    traced.carry("heartbeat?", 1, 2, 1, commit=3)
    traced.start(2, traced.found(2))
    with refuses("it can know 0 entries committed, not 3"):
        traced.commit(2, 3)


def test_a_log_that_begins_with_a_snapshot_is_found():
    traced = led(A, B)
    traced.write(1, snapshot=(3, 1))
    traced.sync(1)
    found = traced.found(1)
    traced.start(1, found._replace(first=4, entries=found.entries[3:]))
    assert traced.member(1).commit == 3


def test_a_log_begins_with_its_voters():
    traced = Traced()
    traced.spec.member(1, 2)
    with refuses("a log begins with the entry that names the voters"):
        traced.step("write", 1, (_write(entries=(A,)),), 2)


def test_members_of_a_deleted_group_are_not_judged():
    """A node that restarts may open the group anew before it learns that it is deleted."""
    traced = led(A)
    traced.write(2, delete=True)
    traced.sync(2)
    traced.start(2)
    traced.commit(3, 99)


def _unsynced() -> Traced:
    traced = led()
    traced.write(1, first=3, entries=(A, B))
    traced.write(1, first=5, entries=(C,))
    return traced


def _write(**fields):
    from ottla.sim.specification.trace import Write

    return Write(1, first=1, **fields)
