"""What others see of a node: its view says what the node says, and whoever watches hears first."""

import asyncio

from ottla import Cluster, Topic
from ottla.broker.controller.controller import CONTROLLER_GROUP
from ottla.broker.turn.watcher import Watcher, told_first
from ottla.log.build import build_batch


def on_a_cluster(story):
    async def run():
        async with Cluster(nodes=3, topics=[Topic("t")]) as cluster:
            await asyncio.wait_for(story(cluster), 20)

    asyncio.run(run())


def test_a_view_says_what_the_partition_serves():
    async def story(cluster):
        leader = await cluster.leader("t")
        node = cluster.node(leader)
        stored = build_batch([b"a", b"b"], producer_id=7, producer_epoch=0, base_sequence=0)
        assert await cluster.replicate_in_stages("t", 0, stored).replicated == 0
        (image,) = node.topics()["t"].partitions
        view = node.inspect()
        replica = view.replica(image.group)
        assert replica is not None
        made = replica.of_partition()
        assert (made.serves, replica.leads, replica.leader) == (True, True, leader)
        assert (made.log_start_offset, made.high_watermark, made.log_end_offset) == (0, 2, 2)
        assert (made.applied, replica.last_index) == (replica.commit, replica.commit)
        assert (made.producers, list(made.describe_producers())) == (1, [7])
        assert view.placed(image.group) == (node.topics()["t"], image)
        # It is no copy: what comes later is seen, too.
        await cluster.replicate_in_stages("t", 0, build_batch([b"c"])).replicated
        assert made.high_watermark == 3

    on_a_cluster(story)


def test_the_controllers_replica_has_decisions_and_no_partition():
    async def story(cluster):
        await cluster.leader("t")
        views = [cluster.node(each).inspect() for each in (1, 2, 3)]
        assert sum(each.controls for each in views) == 1
        for view in views:
            replica = view.controller()
            assert replica is not None
            assert next(each.group for each in view.replicas()) == CONTROLLER_GROUP
            assert replica.partition is None
            assert replica.decisions is not None
            assert replica.decisions.applied == view.decisions_applied
            assert view.replica(99) is None

    on_a_cluster(story)


def test_who_watches_hears_what_it_asked_for():
    async def story(cluster):
        leader = await cluster.leader("t")
        node = cluster.node(leader)
        (image,) = node.topics()["t"].partitions
        view, heard = node.inspect(), []

        def applied(group):
            replica = view.replica(group)
            assert replica is not None
            heard.append((group, replica.applied == replica.commit))

        node.watch(Watcher(applied=applied))
        await cluster.replicate_in_stages("t", 0, build_batch([b"a"])).replicated
        assert (image.group, True) in heard

    on_a_cluster(story)


def test_a_watcher_hears_before_the_node_acts_and_the_latest_watcher_first():
    heard = []

    class Hosted:
        group = 5

    act = told_first(
        lambda group: heard.append(("first", group)), lambda _: heard.append(("acts", 5))
    )
    act = told_first(lambda group: heard.append(("second", group)), act)
    act(Hosted())
    assert heard == [("second", 5), ("first", 5), ("acts", 5)]


def test_what_nobody_wants_to_hear_costs_no_call():
    def act(_):
        """Nothing."""

    assert told_first(None, act) is act
