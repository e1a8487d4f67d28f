"""What the sender puts into a message that the core left without bytes, and when.

It reads back so much from the store in a turn of the event loop, in the order in which it was asked
to send, and a snapshot once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from broker_core_partition import batch as batch_of
from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.driver.hosted import unheard
from ottla.broker.driver.reading import READ_ENTRIES, Reading
from ottla.broker.driver.sender import SNAPSHOTS_KEPT, MessageSender
from ottla.broker.topics.topic import Topic
from ottla.log.build import build_batch
from ottla.log.memory_store import MemoryDisk, MemoryStore
from ottla.log.store import Write
from ottla.raft.messages import AppendEntries, InstallSnapshot
from ottla.raft.types import Entry, EntryKind, Snapshot, SnapshotMeta

GROUP = 7


class Sent:
    """Whoever carries messages: keeps them."""

    def __init__(self):
        self.messages = []

    def send(self, sender, to, message):
        self.messages.append(message)


TERM = 1
"""In which messages are sent."""


def sender_of(store, sent, later, term_of=lambda _: TERM):
    """A sender of node 1; what waits until the loop has been around lies in `later`."""
    reading = Reading(store, later=later.append, submit=unheard, broken=unheard)
    return MessageSender(1, store, sent, reading=reading, term_of=term_of)


def test_a_message_gets_the_whole_range_it_names_and_none_when_it_is_compacted():
    store, sent = MemoryStore(MemoryDisk()), Sent()
    entries = [Entry(index, 1, EntryKind.BATCH, batch_of(count=index)) for index in range(1, 5)]
    store.append([Write(GROUP, first=1, entries=entries), Write(GROUP, compact_to=1)])
    sender = sender_of(store, sent, [])
    sender.send(AppendEntries(GROUP, 1, 2, 1, 1, 1, 4, 0))
    sender.send(AppendEntries(GROUP, 1, 2, 1, 0, 0, 4, 0))
    (message,) = sent.messages
    assert message.entries == entries[1:]


def written(count):
    """A store with so many entries of `TERM`."""
    store = MemoryStore(MemoryDisk())
    entries = [Entry(index, TERM, EntryKind.EMPTY, b"") for index in range(1, count + 1)]
    store.append([Write(GROUP, first=1, entries=entries)])
    return store


def append(first, last):
    """A message that names this range."""
    return AppendEntries(GROUP, 1, 2, TERM, first - 1, TERM, last, 0)


def test_so_many_entries_are_read_back_at_once_and_the_others_in_order_later():
    """A follower that was away cost 81 ms of one turn of the loop for 100,000 batches, and far more
    where they came from a disk."""
    store, sent = written(3 * READ_ENTRIES), Sent()
    later: list[Callable[[], None]] = []
    sender = sender_of(store, sent, later)
    for part in range(6):
        first = part * READ_ENTRIES // 2 + 1
        sender.send(append(first, first + READ_ENTRIES // 2 - 1))
    sender.send(append(3 * READ_ENTRIES + 1, 3 * READ_ENTRIES))  # an empty one overtakes nothing
    counts = []
    while later:
        counts.append(sum(len(each.entries) for each in sent.messages))
        later.pop(0)()
    assert counts == [READ_ENTRIES, 2 * READ_ENTRIES, 3 * READ_ENTRIES]
    assert [each.prev_index for each in sent.messages] == [
        *range(0, 3 * READ_ENTRIES, READ_ENTRIES // 2),
        3 * READ_ENTRIES,
    ]


@pytest.mark.parametrize("groups", [1, SNAPSHOTS_KEPT])
def test_a_snapshot_is_read_once_however_many_chunks_it_has(groups, monkeypatch):
    """It was read and checked as a whole for each chunk of 256 KB: of 20 MB, 76 times."""
    store, sent, reads = MemoryStore(MemoryDisk()), Sent(), []
    data = bytes(range(100))
    for group in range(groups):
        snapshot = Snapshot(SnapshotMeta(5, TERM, (1, 2), len(data)), data)
        store.append([Write(group, snapshot=snapshot, reset=True)])
    read = store.snapshot

    def noted(group):
        reads.append(group)
        return read(group)

    monkeypatch.setattr(store, "snapshot", noted)
    sender = sender_of(store, sent, [])
    for offset in range(0, 100, 10):
        for group in range(groups):
            sender.send(InstallSnapshot(group, 1, 2, TERM, 5, TERM, (1, 2), offset, 10, 100))
    assert b"".join(each.chunk for each in sent.messages if each.group == 0) == data
    assert reads == list(range(groups))
    sender.send(InstallSnapshot(0, 1, 2, TERM, 4, TERM, (1, 2), 0, 10, 100))
    assert len(sent.messages) == 10 * groups, "another snapshot has taken its place"


def test_what_stands_in_line_when_its_leadership_ends_is_not_sent():
    """Other entries may stand there by then."""
    store, sent, terms = written(2 * READ_ENTRIES), Sent(), [TERM]
    later: list[Callable[[], None]] = []
    sender = sender_of(store, sent, later, lambda _: terms[-1])
    sender.send(append(1, READ_ENTRIES))
    sender.send(append(READ_ENTRIES + 1, 2 * READ_ENTRIES))
    terms.append(TERM + 1)
    later.pop()()
    assert [each.last_index for each in sent.messages] == [READ_ENTRIES]


def test_a_follower_catches_up_however_small_the_requests_of_clients_must_be():
    """Messages between nodes were cut at the limit of a client's request, and the follower ignored
    what was shorter than it said: it never caught up."""

    async def story():
        cluster = AsyncCluster(nodes=3, topics=[Topic("t")], max_request_bytes=3000)
        try:
            await cluster.start()
            leader = await cluster.leader("t")
            away = next(node for node in (1, 2, 3) if node != leader)
            await cluster.kill(away)
            for _ in range(10):
                batch = build_batch([b"x" * 1000])
                await cluster.replicate_in_stages("t", 0, batch).replicated
            await cluster.restart(away)
            await cluster.transfer_leadership("t", 0, to=away, timeout=5)
            assert await cluster.leader("t") == away
        finally:
            await cluster.stop()

    asyncio.run(story())
