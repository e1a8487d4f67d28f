"""A follower that applies many entries at once ends where one that applies each by itself ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core_partition import PartitionDriver, batch
from ottla.broker.partition.commands import encode_command
from ottla.raft.types import Entry, EntryKind

ENTRIES = st.one_of(
    st.tuples(st.sampled_from((-1, 1, 2)), st.integers(0, 1), st.integers(1, 3)),
    st.sampled_from(("empty", "expire", "delete")),
)


def log_of(plan):
    """Entries as a leader wrote them: each producer's sequences follow on."""
    entries, offset = [], 0
    sequences: dict[tuple[int, int], int] = {}
    for index, item in enumerate(plan, 1):
        if item == "empty":
            entries.append(Entry(index, 1, EntryKind.EMPTY, b""))
        elif item == "expire":
            entries.append(Entry(index, 1, EntryKind.COMMAND, encode_command("expire", [1])))
        elif item == "delete":
            command = encode_command("delete_records", offset // 2)
            entries.append(Entry(index, 1, EntryKind.COMMAND, command))
        else:
            producer, epoch, count = item
            sequence = sequences.get((producer, epoch), 0)
            sequences[producer, epoch] = sequence + count
            data = batch(producer, sequence if producer >= 0 else -1, count, epoch)
            data.stamp(offset, 1)
            offset += count
            entries.append(Entry(index, 1, EntryKind.BATCH, data))
    return entries


def state(driver):
    """What the entries made of a machine."""
    machine = driver.machine
    shared = machine.state
    offsets = (shared.log_start_offset, shared.high_watermark, shared.index.next_offset)
    order = machine.table.longest_idle()
    return offsets, machine.applied, order, machine.table.digest(), machine.table.snapshot()


@pytest.mark.slow
@given(st.lists(ENTRIES, min_size=1, max_size=40), st.lists(st.integers(1, 40), min_size=1))
def test_it_ends_where_one_by_one_ends(plan, steps):
    entries = log_of(plan)
    slow, quick = PartitionDriver(), PartitionDriver()
    for driver in (slow, quick):
        driver.follow(1, leader=2)
        driver.receive(entries)
    for index in range(1, len(entries) + 1):
        slow.commit(index)
    done = 0
    for step in steps:
        done = min(done + step, len(entries))
        quick.commit(done)
    quick.commit()
    assert state(quick) == state(slow)
