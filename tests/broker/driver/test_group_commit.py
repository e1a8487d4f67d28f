"""When turns become durable: flush policies, group commit, syncs that fail or hang.

Expectations from `log/store.py`, promise 4, and promise-R5. The store and
the writer thread are stand-ins whose syncs end when the test says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from ottla import Cluster
from ottla.broker.client import Client, produced
from ottla.broker.config import ClusterConfig, FlushPolicy
from ottla.broker.driver.group_commit import Syncer
from ottla.broker.errors import ErrorCode
from ottla.broker.event_loop.clockwork import AsyncioClockwork, RunningClock
from ottla.log.build import build_batch
from ottla.log.errors import StoreError
from ottla.log.memory_store import MemoryStore
from ottla.log.store import Write


class Writer:
    """A writer thread that works when told to."""

    def __init__(self):
        self.jobs = []

    def run_soon(self, job):
        self.jobs.append(job)

    async def work(self):
        """Do the oldest job and let the loop hear of it."""
        self.jobs.pop(0)()
        await asyncio.sleep(0.001)


class Job:
    def run(self):
        """Nothing: `finish_sync` says how it went."""


class Disk:
    """A store as a syncer sees it."""

    def __init__(self, *, at_once=False):
        self.at_once = at_once
        self.begun = 0
        self.error: StoreError | None = None

    def begin_sync(self):
        self.begun += 1
        if self.at_once and self.error is not None:
            raise self.error
        return None if self.at_once else Job()

    def finish_sync(self, job):
        if self.error is not None:
            raise self.error


class RigClockwork(AsyncioClockwork):
    """The test's own time, and its own writer."""

    def __init__(self, rig):
        super().__init__(RunningClock(asyncio.get_running_loop(), 10_000), rig.writer)
        self.now = lambda: rig.now


class Rig:
    """A syncer with everything around it."""

    def __init__(self, flush, *, at_once=False):
        self.disk = Disk(at_once=at_once)
        self.writer = Writer()
        self.now = 0
        self.durable: list[list[str]] = []
        self.failed: list[StoreError] = []
        self.syncer: Syncer[str] = Syncer(
            self.disk,  # type: ignore[arg-type]
            ClusterConfig(flush=flush, flush_interval_ms=10, sync_stall_ms=100),
            clockwork=RigClockwork(self),
            on_durable=lambda turns: self.durable.append(list(turns)),
            on_failed=self.failed.append,
        )

    def take(self, *turns):
        for turn in turns:
            self.syncer.add(turn)
        self.syncer.poll()


def scenario(play):
    """Run an async test on a loop of its own."""

    def test():
        asyncio.run(play())

    test.__name__ = play.__name__
    return test


@scenario
async def test_each_turn_is_durable_when_the_sync_after_it_has_ended():
    rig = Rig(FlushPolicy.EACH_TURN)
    rig.take("a")
    assert rig.durable == []
    await rig.writer.work()
    assert rig.durable == [["a"]]


@scenario
async def test_what_arrives_during_a_sync_shares_the_next_one():
    rig = Rig(FlushPolicy.EACH_TURN)
    rig.take("a")
    for turn in "bcdef":
        rig.take(turn)
    assert (len(rig.writer.jobs), rig.disk.begun) == (1, 1)
    await rig.writer.work()
    assert rig.durable == [["a"]]
    await rig.writer.work()
    assert rig.durable == [["a"], ["b", "c", "d", "e", "f"]]
    assert (rig.syncer.syncs, rig.writer.jobs) == (2, [])


@scenario
async def test_a_store_that_syncs_at_once_needs_no_thread():
    rig = Rig(FlushPolicy.EACH_TURN, at_once=True)
    rig.take("a", "b")
    assert (rig.durable, rig.writer.jobs) == ([["a", "b"]], [])


@scenario
async def test_interval_waits_for_the_intervals_sync():
    rig = Rig(FlushPolicy.INTERVAL)
    rig.take("a")
    assert (rig.syncer.due, rig.writer.jobs) == (10_000, [])
    rig.now = 9_999
    rig.take("b")
    assert rig.writer.jobs == []
    rig.now = 10_000
    rig.syncer.poll()
    await rig.writer.work()
    assert rig.durable == [["a", "b"]]


@scenario
async def test_off_calls_everything_durable_at_once_and_syncs_in_the_background():
    rig = Rig(FlushPolicy.OFF)
    rig.take("a")
    rig.take("b")
    assert (rig.durable, rig.disk.begun) == ([["a"], ["b"]], 0)
    wanted = rig.syncer.due
    assert wanted == 10_000
    rig.now = 10_000
    rig.syncer.poll()
    await rig.writer.work()
    assert rig.disk.begun == 1
    assert rig.syncer.due is None
    assert [each for each in rig.durable if each] == [["a"], ["b"]]
    rig.now = 50_000
    rig.syncer.poll()
    assert rig.disk.begun == 1, "nothing is owed"


@pytest.mark.parametrize("at_once", [True, False])
def test_a_sync_that_fails_makes_nothing_durable_and_is_told_once(at_once):
    async def play():
        rig = Rig(FlushPolicy.EACH_TURN, at_once=at_once)
        rig.disk.error = StoreError("the disk is gone")
        rig.take("a")
        if not at_once:
            await rig.writer.work()
        assert (rig.durable, rig.failed) == ([], [rig.disk.error])

    asyncio.run(play())


@scenario
async def test_a_sync_that_breaks_in_its_thread_makes_nothing_durable():
    rig = Rig(FlushPolicy.EACH_TURN)

    def breaks(_):
        raise MemoryError("no room for the transaction")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Job, "run", breaks)
        rig.take("a")
        await rig.writer.work()
    assert rig.durable == []
    assert "no room for the transaction" in str(rig.failed[0])


@scenario
async def test_a_sync_that_hangs_counts_as_stalled_until_it_ends():
    rig = Rig(FlushPolicy.EACH_TURN)
    rig.take("a")
    rig.now = 99_999
    assert not rig.syncer.stalled()
    rig.now = 100_000
    assert rig.syncer.stalled()
    await rig.writer.work()
    assert not rig.syncer.stalled()


@scenario
async def test_a_closed_syncer_calls_nothing_durable_any_more():
    rig = Rig(FlushPolicy.EACH_TURN)
    rig.take("a")
    rig.syncer.close()
    draining = asyncio.ensure_future(rig.syncer.drained())
    await asyncio.sleep(0)
    assert not draining.done()
    await rig.writer.work()
    await draining
    assert (rig.durable, rig.failed) == ([], [])


# ---- in a node


async def until(condition):
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("waited 10 s")


async def served(cluster):
    await cluster.create_topic("t")
    leader = await cluster.leader("t")
    store = cluster.node(leader).store
    assert isinstance(store, MemoryStore)
    return leader, store.disk, await Client.connect(*cluster.addresses[leader])


@scenario
async def test_a_stalled_disk_costs_its_node_the_leadership_and_nobody_else_anything():
    async with Cluster(
        nodes=3, election_timeout_ms=200, heartbeat_ms=20, sync_stall_ms=100
    ) as cluster:
        leader, disk, client = await served(cluster)
        disk.defer_syncs = True
        disk.hold_syncs()
        try:
            answer = produced(await client.send_batch("t", 0, build_batch([b"x"]), acks=1))
            assert answer is not None
            assert answer.error is ErrorCode.NONE
            partition = cluster.describe().topics["t"][0]
            await until(lambda: cluster.describe().topics["t"][0].leader not in (0, leader))
            assert partition.leader == leader
        finally:
            disk.release_syncs()
        assert cluster.node(leader).failed is None
        disk.defer_syncs = False
        await cluster.transfer_leadership("t", 0, leader)
        client.close()


@scenario
async def test_answers_are_given_once_when_the_sync_behind_them_fails():
    async with Cluster(nodes=1) as cluster:
        _, disk, client = await served(cluster)
        disk.fail_syncs(StoreError("the disk is gone"))
        sent = [client.send_batch("t", 0, build_batch([b"x"]), acks=acks) for acks in (1, -1)]
        answers = [produced(each) for each in await asyncio.gather(*sent)]
        told = [each.error for each in answers if each is not None]
        assert told == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]
        await client.closed
        assert cluster.node(1).failed is not None


@pytest.mark.parametrize(("flush", "kept"), [("each-turn", True), ("off", False)])
def test_a_killed_node_keeps_what_its_flush_policy_says(flush, kept):
    async def play():
        policy = FlushPolicy(flush)
        async with Cluster(nodes=1, flush=policy, flush_interval_ms=60_000) as cluster:
            _, disk, client = await served(cluster)
            answer = await client.produce("t", 0, [b"acknowledged"])
            assert answer is not None
            assert answer.error is ErrorCode.NONE
            assert (disk.unsynced_appends == 0) is kept
            await cluster.kill(1)
            await cluster.restart(1)
            if kept:
                await until(lambda: "t" in cluster.describe().topics)
            else:
                await asyncio.sleep(0.1)
                assert cluster.describe().topics == {}
            client.close()

    asyncio.run(play())


@scenario
async def test_a_write_outside_any_turn_that_fails_stops_the_node_too():
    """Replicas of new topics are written when the controller's decision is applied."""
    async with Cluster(nodes=3, election_timeout_ms=200, heartbeat_ms=20) as cluster:
        await cluster.create_topic("first")
        node = cluster.node(3)
        real = node.runner.write

        def append(writes: Sequence[Write]) -> None:
            if any(each.first == 1 for each in writes):
                raise StoreError("the disk is full")
            real(writes)

        node.runner.write = append
        await cluster.create_topic("second")
        await until(lambda: node.failed is not None)
        assert isinstance(node.failed, StoreError)
        assert [cluster.node(each).failed for each in (1, 2)] == [None, None]
