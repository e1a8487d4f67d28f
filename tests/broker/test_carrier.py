"""What the carrier puts into a message that the core left without bytes."""

from __future__ import annotations

import asyncio

from broker_core_partition import batch as batch_of
from ottla.broker.async_cluster import AsyncCluster
from ottla.broker.carrier import Carrier
from ottla.broker.topic import Topic
from ottla.log.build import build_batch
from ottla.log.memory_store import MemoryDisk, MemoryStore
from ottla.log.store import Write
from ottla.raft.messages import AppendEntries
from ottla.raft.types import Entry, EntryKind

GROUP = 7


class Sent:
    """Whoever carries messages: keeps them."""

    def __init__(self):
        self.messages = []

    def send(self, sender, to, message):
        self.messages.append(message)


def test_a_message_gets_the_whole_range_it_names_and_none_when_it_is_compacted():
    store, sent = MemoryStore(MemoryDisk()), Sent()
    entries = [Entry(index, 1, EntryKind.BATCH, batch_of(count=index)) for index in range(1, 5)]
    store.append([Write(GROUP, first=1, entries=entries), Write(GROUP, compact_to=1)])
    carrier = Carrier(1, store, sent)
    carrier.send(AppendEntries(GROUP, 1, 2, 1, 1, 1, 4, 0))
    carrier.send(AppendEntries(GROUP, 1, 2, 1, 0, 0, 4, 0))
    (message,) = sent.messages
    assert message.entries == entries[1:]


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
