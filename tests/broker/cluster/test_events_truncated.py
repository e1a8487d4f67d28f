"""The event log names what a deposed leader had appended and a newer leader's log replaced."""

import asyncio

import pytest

from ottla import Cluster
from ottla.broker.client import Client
from ottla.log.records import records_of


async def eventually(look):
    """What `look` finds, once it finds something; it is asked every 10 ms for 10 s."""
    for _ in range(1000):
        if found := await look():
            return found
        await asyncio.sleep(0.01)
    raise AssertionError("waited 10 s in vain")


async def deposed_leader():
    """The events of a cluster whose isolated leader took in two batches that nobody else has."""
    async with Cluster(nodes=3) as cluster:
        await cluster.create_topic("t")
        old = await cluster.leader("t")
        client = await Client.connect(*cluster.addresses[old])
        await client.produce("t", 0, [b"kept"])
        cluster.isolate(old)
        await client.produce("t", 0, [b"lost", b"too"], acks=1)
        await client.produce("t", 0, [b"gone"], acks=1)

        async def new_leader():
            leader = await cluster.leader("t")
            return leader if leader != old else 0

        async def truncations():
            return [each for each in cluster.events if each.kind == "truncated"]

        new = await eventually(new_leader)
        cluster.heal()
        return old, new, await eventually(truncations)


@pytest.fixture(scope="module")
def deposed():
    return asyncio.run(deposed_leader())


def test_a_truncation_names_who_lost_what_to_whom(deposed):
    old, new, (event,) = deposed
    assert (event.node, event.topic, event.partition) == (old, "t", 0)
    assert event.leader == new
    first, second = event.dropped
    # An election may take several terms where the machine is busy.
    assert first.term == second.term < event.term
    assert second.index == first.index + 1


def test_the_records_that_were_lost_can_be_read_from_it(deposed):
    _, _, (event,) = deposed
    lost = [record for entry in event.dropped for record in records_of(entry.payload)]
    assert [record.value for record in lost] == [b"lost", b"too", b"gone"]
    assert [record.offset for record in lost] == [1, 2, 3]
