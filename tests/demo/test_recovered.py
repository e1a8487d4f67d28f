"""What the demo says of producers that are stuck: who, where, and who leads there."""

import asyncio
from types import SimpleNamespace

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
    stage = SimpleNamespace(cluster=SimpleNamespace(describe=lambda: described))
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
