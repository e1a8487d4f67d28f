"""Samples the cluster every 20 ms: leaders, high watermarks, acknowledgements."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ottla.broker.event_loop.native import monotonic_micros
from ottla.demo.ledger import Ledger
from ottla.demo.settings import PARTITIONS, TOPIC
from ottla.demo.stage import Sample, Stage

EVERY = 0.02


async def sample(stage: Stage, ledgers: Sequence[Ledger]) -> None:
    """Add to `stage.samples` until cancelled."""
    while True:
        look(stage, ledgers)
        await asyncio.sleep(EVERY)


def look(stage: Stage, ledgers: Sequence[Ledger]) -> None:
    """Take one sample. Without a leader, a high watermark is that of the last sample."""
    seen = stage.cluster.describe().topics.get(TOPIC, [])
    before = stage.samples[-1].high_watermarks if stage.samples else (0,) * PARTITIONS
    stage.samples.append(
        Sample(
            monotonic_micros(),
            tuple(each.leader for each in seen),
            tuple(
                each.high_watermark if each.leader else old
                for each, old in zip(seen, before, strict=True)
            ),
            tuple(sum(len(ledger.acked[p]) for ledger in ledgers) for p in range(PARTITIONS)),
        )
    )
