"""Replicas are opened and dropped in slices: a wide topic keeps nobody waiting.

A topic of 10,000 partitions was opened in one turn of the loop on each node: 15 to 37 s in which no
client was served and no signal heard. So did the log of one partition: 184 ms for 100,000 batches.
What is counted here is how many replicas a turn opens, and how much of their logs it learns.
"""

import asyncio
import time
from collections import Counter

import pytest

from ottla import Cluster, Topic
from ottla.broker.client import Client
from ottla.broker.driver.runner import Runner
from ottla.broker.errors import ErrorCode
from ottla.broker.event_loop.slices import TURN_UNITS
from ottla.broker.node import hosting, replica_factory
from ottla.broker.node.hosting import AT_ONCE, DROPPING_UNITS, LEARNING, OPENING_UNITS
from ottla.broker.node.replica_factory import Opening
from ottla.log.build import build_batch

NODES = 3
WIDE = 300


class Turns:
    """Which turn of the loop it is; how many replicas each added and removed, and learned of."""

    def __init__(self):
        self.now = 0
        self.added: Counter[int] = Counter()
        self.removed: Counter[int] = Counter()
        self.learned: Counter[int] = Counter()

    def count(self):
        """Called once in each turn."""
        self.now += 1
        asyncio.get_running_loop().call_soon(self.count)


@pytest.fixture
def turns(monkeypatch):
    """See `Turns`."""
    turns = Turns()
    add, remove = Runner.add, Runner.remove

    def adding(runner, replica, **options):
        turns.added[turns.now] += 1
        return add(runner, replica, **options)

    def removing(runner, group):
        turns.removed[turns.now] += 1
        remove(runner, group)

    learn = Opening.learn

    def learning(opening):
        turns.learned[turns.now] += 1
        return learn(opening)

    monkeypatch.setattr(Opening, "learn", learning)
    monkeypatch.setattr(Runner, "add", adding)
    monkeypatch.setattr(Runner, "remove", removing)
    return turns


def run(test, turns=None, **settings):
    """Run `test(cluster)`."""

    async def main():
        async with Cluster(nodes=NODES, **settings) as cluster:
            if turns is not None:
                turns.count()
            await asyncio.wait_for(test(cluster), 60)

    asyncio.run(main())


async def ask_for(cluster, partitions):
    """Create topic `wide` as a client does: nobody waits until it is served."""
    client = await Client.connect(*cluster.addresses[1])
    topic = {"name": "wide", "num_partitions": partitions, "replication_factor": -1}
    topics = [topic | {"assignments": [], "configs": []}]
    fields = {"topics": topics, "timeout": 5000, "validate_only": False}
    answer = await client.call("create_topics", 7, **fields)
    client.close()
    return answer.topics[0]


async def tick():
    """Let the loop go round."""
    await asyncio.sleep(0.01)


async def until(condition):
    """Wait for it; the test has a limit of time."""
    while not condition():
        await tick()


def most(units):
    """Replicas that a turn may see opened or dropped, at so many units each: a first few by each
    node, and what is left of the turn's budget by all of them together."""
    return NODES * AT_ONCE + 2 * TURN_UNITS // units + NODES


@pytest.mark.slow
def test_a_wide_topic_is_opened_and_dropped_in_slices(turns):
    async def test(cluster):
        await cluster.create_topic("wide", partitions=WIDE, timeout=60)
        assert sum(turns.added.values()) == NODES * (WIDE + 1)  # and the controller's
        assert max(turns.added.values()) <= most(OPENING_UNITS)
        await cluster.delete_topic("wide")
        await until(lambda: sum(turns.removed.values()) == NODES * WIDE)
        assert max(turns.removed.values()) <= most(DROPPING_UNITS)
        await cluster.create_topic("wide", partitions=2)  # its name is free again

    run(test, turns)


def test_a_small_topic_is_open_where_its_creation_is_heard_of(turns):
    async def test(cluster):
        turns.added.clear()
        await cluster.create_topic("small", partitions=4)
        assert sum(turns.added.values()) == NODES * 4
        assert not any(count % 4 for count in turns.added.values())

    run(test, turns)


@pytest.mark.slow
def test_a_node_that_comes_back_opens_what_it_had_in_slices(turns):
    async def test(cluster):
        await cluster.kill(2)
        turns.added.clear()
        await cluster.restart(2)
        await until(lambda: sum(turns.added.values()) == WIDE + 1)
        assert max(turns.added.values()) <= most(OPENING_UNITS)

    run(test, turns, topics=[Topic("wide", WIDE)])


BATCHES = 200
STEPS = 100
"""In which the log of one partition is learned."""


async def written(cluster):
    """Topic `t` with batches; returns a node that does not lead it."""
    await cluster.create_topic("t")
    stages = [cluster.replicate_in_stages("t", 0, build_batch([b"v"])) for _ in range(BATCHES)]
    for each in stages:
        await each.replicated
    return await cluster.leader("t") % NODES + 1


def test_a_long_log_is_learned_in_slices(turns, monkeypatch):
    monkeypatch.setattr(replica_factory, "SCAN_ENTRIES", BATCHES // STEPS)

    async def test(cluster):
        node = await written(cluster)
        await cluster.kill(node)
        turns.learned.clear()
        await cluster.restart(node)
        hosted_replicas = cluster.node(node).runner.hosted_replicas
        await until(lambda: len(hosted_replicas) == 2)
        assert sum(turns.learned.values()) >= STEPS
        at_once = AT_ONCE // LEARNING
        a_turn = 2 * TURN_UNITS // (LEARNING * OPENING_UNITS) + 2
        assert (
            max(turns.learned.values()) <= STEPS // 10 + at_once + a_turn
        )  # the controller's, too
        (hosted,) = (each for group, each in hosted_replicas.items() if group)
        await until(lambda: hosted.replica.machine.state.high_watermark == BATCHES)

    run(test, turns)


def test_a_topic_that_is_deleted_while_its_log_is_learned_leaves_nothing(monkeypatch):
    learn = Opening.learn

    async def test(cluster):
        node = await written(cluster)
        await cluster.kill(node)
        with monkeypatch.context() as patch:
            patch.setattr(Opening, "learn", lambda each: each.group == 0 and learn(each))
            await cluster.restart(node)
            life = cluster.node(node)
            await until(lambda: "t" in life.topics())
            assert list(life.runner.hosted_replicas) == [0]
            await cluster.delete_topic("t")
            await until(lambda: [each.group for each in life.store.groups()] == [0])
            assert list(life.runner.hosted_replicas) == [0]
        await cluster.create_topic("t")
        assert len(life.runner.hosted_replicas) == 2

    run(test)


def test_a_topic_that_is_deleted_while_it_is_opened_leaves_nothing(monkeypatch):
    monkeypatch.setattr(hosting, "OPENING_UNITS", TURN_UNITS)  # one a turn

    async def test(cluster):
        await ask_for(cluster, WIDE)
        await cluster.delete_topic("wide")
        await cluster.create_topic("wide", partitions=20)
        for node in cluster.addresses:
            hosted_replicas = cluster.node(node).runner.hosted_replicas
            await until(lambda hosted_replicas=hosted_replicas: len(hosted_replicas) == 21)
        await cluster.leader("wide", 19)

    run(test)


def test_a_cluster_stops_in_the_midst_of_it(monkeypatch):
    """20 s after SIGTERM the process was still there."""
    monkeypatch.setattr(hosting, "OPENING_UNITS", TURN_UNITS)

    async def test(cluster):
        await ask_for(cluster, WIDE)
        assert len(cluster.node(1).runner.hosted_replicas) < WIDE
        began = time.process_time()
        await cluster.stop()
        assert time.process_time() - began < 2

    run(test)


def test_more_partitions_than_a_topic_may_have_are_refused():
    """A thousand by default: each turn of the loop stays short with them."""

    async def test(cluster):
        topic = await ask_for(cluster, 1001)
        assert topic.error_code == ErrorCode.INVALID_PARTITIONS
        assert "at most 1000 partitions" in topic.error_message

    run(test)
