"""Whoever is left elects, and soon: faults of every kind against clusters without clients.

Written after a follower once did not stand for election for 10 s, in a run that was not recorded.
"""

import asyncio

import pytest

from broker_elections import TOPIC, Ordeal
from ottla import Cluster, Topic


def ordeal(seed, *, rounds, folder=None, nodes=3, timeout_ms=100):
    async def play():
        cluster = Cluster(
            nodes=nodes,
            data_dir=folder,
            topics=[Topic(TOPIC, 5, replication_factor=3)],
            seed=seed,
            election_timeout_ms=timeout_ms,
            heartbeat_ms=timeout_ms // 5,
            sync_stall_ms=timeout_ms,
        )
        async with cluster as running:
            ordeal = Ordeal(running, seed, disks=folder is None)
            await ordeal.led()
            for number in range(rounds):
                await (ordeal.burst() if number % 3 == 2 else ordeal.one())

    asyncio.run(play())


@pytest.mark.slow
def test_whoever_is_left_elects():
    ordeal(seed=1, rounds=9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "stored", "nodes"),
    [(2, "memory", 5), (3, "memory", 3), (2, "lmdb", 3), (3, "lmdb", 5)],
)
def test_whoever_is_left_elects_again_and_again(seed, stored, nodes, tmp_path):
    folder = tmp_path if stored == "lmdb" else None
    ordeal(seed, rounds=40, folder=folder, nodes=nodes, timeout_ms=50 * seed)
