"""A stop or a restart that is cancelled amid a sync: the disk is closed all the same.

The store was told of a second sync before the first was finished, and its folder stayed in use.
"""

import asyncio
import threading
import time
from contextlib import suppress

import pytest

from ottla import Cluster
from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.config import Settings
from ottla.broker.errors import OttlaError
from ottla.log.disk_store import DiskSyncJob

FAST: Settings = {"election_timeout_ms": 100, "heartbeat_ms": 10}


def threads():
    """Names of those that a cluster has started."""
    return [each.name for each in threading.enumerate() if each.name.startswith("ottla")]


@pytest.fixture
def slow_syncs(monkeypatch):
    """While it is set, a sync is under way whenever a node stops."""
    commit, slow = DiskSyncJob.run, threading.Event()

    def run(job):
        if slow.is_set():
            time.sleep(0.2)
        commit(job)

    monkeypatch.setattr(DiskSyncJob, "run", run)
    return slow


@pytest.mark.slow
def test_a_program_that_ends_amid_a_sync_of_a_stop_leaves_no_folder_in_use(tmp_path, slow_syncs):
    cluster = AsyncCluster(3, data_dir=tmp_path, **FAST)

    async def amid_stop():
        await cluster.start()
        slow_syncs.set()
        making = asyncio.get_running_loop().create_task(cluster.create_topic("t"))
        await asyncio.sleep(0.05)
        stopping = asyncio.get_running_loop().create_task(cluster.stop())
        await asyncio.sleep(0)
        return making, stopping

    asyncio.run(amid_stop())
    assert threads() == []
    with Cluster(nodes=3, data_dir=tmp_path):
        pass


@pytest.mark.slow
def test_a_restart_that_is_cancelled_amid_a_sync_can_be_asked_for_again(tmp_path, slow_syncs):
    async def story():
        cluster = AsyncCluster(3, data_dir=tmp_path, **FAST)
        await cluster.start()
        slow_syncs.set()
        making = asyncio.ensure_future(cluster.create_topic("t"))
        await asyncio.sleep(0.05)
        for node in (1, 2, 3):
            with suppress(asyncio.TimeoutError):  # one whose disk is idle is back by then
                await asyncio.wait_for(cluster.restart(node), 0.01)
        slow_syncs.clear()
        for node in (1, 2, 3):
            await cluster.restart(node)
        with suppress(OttlaError):
            await making
        await cluster.create_topic("u", timeout=60)
        await cluster.stop()

    asyncio.run(story())
    assert threads() == []
