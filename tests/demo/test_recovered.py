"""When the demo takes the cluster for healthy, and what it says of producers that are stuck."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.demo import nemesis
from ottla.demo.ledger import Ack
from ottla.demo.producers import ConfluentWriter
from ottla.demo.settings import TOPIC, DemoSettings
from ottla.demo.work import Work


def test_a_producer_that_is_not_acknowledged_is_named_with_the_leader_of_its_partition(
    monkeypatch,
):
    monkeypatch.setattr(nemesis, "PATIENCE", 0.05)
    writer = ConfluentWriter(DemoSettings(), "nowhere:1", 3)
    led = [SimpleNamespace(leader=1 + number, leader_epoch=4) for number in range(3)]
    described = SimpleNamespace(topics={TOPIC: led})
    stage: Any = SimpleNamespace(cluster=SimpleNamespace(describe=lambda: described))
    scene = nemesis.Scene(stage, Work([writer]), 0)

    async def others_go_on():
        await asyncio.sleep(0.01)
        for partition in (0, 2):
            writer.ledger.acked[partition].append(Ack(b"", 0))

    async def wait():
        await asyncio.gather(nemesis.recovered(scene), others_go_on())

    with pytest.raises(nemesis.MissingError) as told:
        asyncio.run(wait())
    assert str(told.value) == (
        "waited 0.05 s in vain for every producer to be acknowledged on every partition: "
        "not confluent on partition 1, which node 2 leads in term 4"
    )


class Cluster:
    """Partition 1 is led by node 3, and node 2 is to lead it; notes when it is handed back."""

    def __init__(self, acked):
        self.acked = acked
        self.leaders = [1, 3, 3]
        self.handed_back: list[int] = []

    def describe(self):
        member = SimpleNamespace(term=2, last_index=9, commit_index=9)
        everywhere = dict.fromkeys((1, 2, 3), member)
        images = [
            SimpleNamespace(leader=leader, leader_epoch=2, members=everywhere, replicas=(number,))
            for number, leader in enumerate(self.leaders, 1)
        ]
        return SimpleNamespace(topics={TOPIC: images})

    async def leader(self, topic, partition):
        return self.leaders[partition]

    async def transfer_leadership(self, topic, partition, to):
        assert (partition, to) == (1, 2)
        self.leaders[1] = to
        self.handed_back = [len(lane) for lane in self.acked]


def test_nobody_leads_again_before_every_writer_knows_who_led_in_between():
    """librdkafka, told of another leader and of the old one again before it had left it, stayed
    with the wrong node: no record of partition 1 was acknowledged for 45 s."""
    writer = ConfluentWriter(DemoSettings(), "nowhere:1", 3)
    cluster = Cluster(writer.ledger.acked)
    stage: Any = SimpleNamespace(cluster=cluster)
    scene = nemesis.Scene(stage, Work([writer]), 0)

    async def write():
        for _ in range(20):
            await asyncio.sleep(0.005)
            for lane in writer.ledger.acked:
                lane.append(Ack(b"", 0))

    async def wait():
        await asyncio.gather(nemesis.healthy(scene), write())

    asyncio.run(wait())
    assert len(cluster.handed_back) == 3
    assert min(cluster.handed_back) > 0
