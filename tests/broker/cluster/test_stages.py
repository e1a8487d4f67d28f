"""Replication in two steps (promise-R1): `enqueued` fixes the order, `replicated` the outcome.

The order is certain before anything is replicated: with the followers stopped, stage one ends and
stage two does not, for as many batches as one likes to pipeline.
"""

import asyncio

import pytest

from ottla import Cluster, Topic
from ottla.broker.errors import ErrorCode, NodeStateError, RequestFailedError, UnknownTopicError
from ottla.log.build import build_batch

PRODUCER = 7


def batch(sequence, *values):
    return build_batch(
        list(values) or [b"value"], producer_id=PRODUCER, producer_epoch=0, base_sequence=sequence
    )


async def followers_of(cluster):
    leader = await cluster.leader("t")
    return leader, [node for node in (1, 2, 3) if node != leader]


def on_a_cluster(story, profile="reference"):
    async def run():
        async with Cluster(nodes=3, topics=[Topic("t")], profile=profile) as cluster:
            await asyncio.wait_for(story(cluster), 20)

    asyncio.run(run())


def test_the_order_is_certain_before_anything_is_replicated():
    async def story(cluster):
        _, followers = await followers_of(cluster)
        for node in followers:
            cluster.pause(node)
        stages = [cluster.replicate_in_stages("t", 0, batch(n)) for n in range(4)]
        indexes = [await each.enqueued for each in stages]
        assert indexes == list(range(indexes[0], indexes[0] + 4))
        assert not any(each.replicated.done() for each in stages)
        for node in followers:
            cluster.resume(node)
        assert [await each.replicated for each in stages] == [0, 1, 2, 3]

    on_a_cluster(story)


def test_where_there_is_one_stage_it_ends_with_the_result():
    """Redpanda up to v22.1.4 (RP-STAGING)."""

    async def story(cluster):
        _, followers = await followers_of(cluster)
        for node in followers:
            cluster.pause(node)
        stages = cluster.replicate_in_stages("t", 0, batch(0))
        behind = cluster.replicate_in_stages("t", 0, batch(1), acks=1)
        assert await behind.replicated == 1  # so the one before it is in the leader's log
        assert not stages.enqueued.done()
        for node in followers:
            cluster.resume(node)
        assert await stages.replicated == 0
        assert await stages.enqueued > 0

    on_a_cluster(story, "redpanda-22.1.3")


def test_a_duplicate_has_the_originals_offset_and_no_place_of_its_own():
    async def story(cluster):
        first = cluster.replicate_in_stages("t", 0, batch(0, b"a", b"b"))
        assert await first.replicated == 0
        again = cluster.replicate_in_stages("t", 0, batch(0, b"a", b"b"))
        assert (await again.enqueued, await again.replicated) == (0, 0)

    on_a_cluster(story)


def test_a_gap_fails_both_stages_for_good():
    async def story(cluster):
        await cluster.replicate_in_stages("t", 0, batch(0)).replicated
        stages = cluster.replicate_in_stages("t", 0, batch(2))
        with pytest.raises(RequestFailedError) as refused:
            await stages.replicated
        assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert refused.value.definite
        with pytest.raises(RequestFailedError):
            await stages.enqueued

    on_a_cluster(story)


def test_a_leader_that_dies_in_between_leaves_the_outcome_open():
    async def story(cluster):
        leader, followers = await followers_of(cluster)
        for node in followers:
            cluster.pause(node)
        stages = cluster.replicate_in_stages("t", 0, batch(0))
        await stages.enqueued
        await cluster.kill(leader)
        with pytest.raises(RequestFailedError) as failed:
            await stages.replicated
        assert failed.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert not failed.value.definite

    on_a_cluster(story)


def test_what_is_no_batch_and_who_is_not_there_is_told_at_once():
    async def story(cluster):
        with pytest.raises(RequestFailedError, match="INVALID_RECORD"):
            cluster.replicate_in_stages("t", 0, b"no batch")
        with pytest.raises(UnknownTopicError):
            cluster.replicate_in_stages("t", 1, batch(0))
        for node in (1, 2):
            await cluster.kill(node)
        assert not await leads_alone(cluster)
        with pytest.raises(NodeStateError, match="no node serves"):
            cluster.replicate_in_stages("t", 0, batch(0))

    on_a_cluster(story)


async def leads_alone(cluster):
    """The last node may have led; without a quorum it resigns within two election timeouts."""
    for _ in range(300):
        if cluster.describe().topics["t"][0].leader == 0:
            return False
        await asyncio.sleep(0.01)
    return True


def test_a_leader_is_waited_for_when_all_nodes_have_just_come_back():
    async def story(cluster):
        await cluster.replicate_in_stages("t", 0, batch(0)).replicated
        for node in (1, 2, 3):
            await cluster.kill(node)
        for node in (1, 2, 3):
            await cluster.restart(node)
        assert await cluster.leader("t") in (1, 2, 3)
        assert await cluster.replicate_in_stages("t", 0, batch(1)).replicated == 1

    on_a_cluster(story)
