"""Handing leadership to a node that does not answer blocks no write for longer than an election.

Asked again for as long as the caller had patience, the leader took no write for 3 to 8 s. Who is
known to be silent is refused at once, who turns out to be is given up after an election timeout.
"""

import asyncio
import time
from contextlib import suppress

import pytest

from ottla import Cluster, OttlaError
from ottla.broker.client import Client
from ottla.broker.cluster.faults import DiskFault
from ottla.broker.errors import ClusterTimeoutError, ErrorCode, NodeStateError

ELECTION_MS = 300
SLACK = 0.7
"""Seconds that a busy machine may need beside the election timeout."""


async def longest_wait(cluster, work):
    """The longest time without a stored record while `work` goes on, and what that ended with."""
    client = await Client.connect(*cluster.addresses[await cluster.leader("t")])
    doing = asyncio.ensure_future(work)
    longest, stored = 0.0, time.monotonic()
    while not doing.done() or time.monotonic() - stored > 0.05:
        try:
            answer = await client.produce("t", 0, [b"x"], timeout_ms=5_000)
        except ConnectionError:
            client = await Client.connect(*cluster.addresses[await cluster.leader("t")])
            continue
        if answer is not None and answer.error is ErrorCode.NONE:
            longest, stored = max(longest, time.monotonic() - stored), time.monotonic()
        elif doing.done():
            client.close()
            client = await Client.connect(*cluster.addresses[await cluster.leader("t")])
        await asyncio.sleep(0.01)
    client.close()
    return longest, await asyncio.gather(doing, return_exceptions=True)


async def started(cluster):
    await cluster.create_topic("t")
    leader = await cluster.leader("t")
    return leader, leader % 3 + 1


def play(story, **settings):
    async def main():
        async with Cluster(
            nodes=3, election_timeout_ms=ELECTION_MS, heartbeat_ms=30, **settings
        ) as cluster:
            leader, target = await started(cluster)
            await story(cluster, leader, target)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        (lambda cluster, node: cluster.pause(node), "is paused; resume"),
        (lambda cluster, node: cluster.isolate(node), "is isolated; heal"),
        (lambda cluster, node: cluster.break_disk(node, DiskFault.STALLED), "hangs; mend_disk"),
    ],
)
def test_a_successor_known_to_be_silent_is_refused_at_once(fault, hint):
    async def story(cluster, leader, target):
        fault(cluster, target)
        with pytest.raises(NodeStateError, match=hint):
            await cluster.transfer_leadership("t", 0, to=target)
        assert await cluster.leader("t") == leader

    play(story)


def test_a_dead_successor_is_refused_at_once():
    async def story(cluster, _, target):
        await cluster.kill(target)
        with pytest.raises(NodeStateError, match="is dead"):
            await cluster.transfer_leadership("t", 0, to=target)

    play(story)


@pytest.mark.parametrize("cut_ms", [0, 2 * ELECTION_MS])
def test_one_that_does_not_hear_the_leader_costs_an_election_timeout_at_most(cut_ms):
    async def story(cluster, leader, target):
        cluster.network.cut(leader, target)
        await asyncio.sleep(cut_ms / 1000)
        hand_over = cluster.transfer_leadership("t", 0, to=target, timeout=8)
        longest, (outcome,) = await longest_wait(cluster, hand_over)
        assert isinstance(outcome, ClusterTimeoutError)
        assert f"node {leader} goes on" in str(outcome)
        assert longest < ELECTION_MS / 1000 + SLACK

    play(story)


def test_one_whose_disk_begins_to_hang_on_the_way_costs_as_little():
    async def story(cluster, _, target):
        async def hand_over():
            await asyncio.sleep(0.02)
            doing = asyncio.ensure_future(cluster.transfer_leadership("t", 0, to=target, timeout=8))
            cluster.break_disk(target, DiskFault.STALLED)
            await doing

        longest, outcome = await longest_wait(cluster, hand_over())
        assert longest < ELECTION_MS / 1000 + SLACK
        assert len(outcome) == 1
        cluster.mend_disk(target)

    play(story)


def test_one_that_lags_catches_up_or_is_given_up():
    async def story(cluster, leader, target):
        cluster.isolate(target)
        client = await Client.connect(*cluster.addresses[leader])
        for _ in range(50):
            await client.produce("t", 0, [bytes(10_000)])
        client.close()
        cluster.heal(target)
        hand_over = cluster.transfer_leadership("t", 0, to=target, timeout=8)
        longest, _ = await longest_wait(cluster, hand_over)
        assert longest < ELECTION_MS / 1000 + SLACK

    play(story)


@pytest.mark.slow
@pytest.mark.parametrize("who", ["leader", "successor", "third"])
def test_racing_with_kills_it_ends_and_the_others_lead(who):
    async def story(cluster, leader, target):
        victim = {"leader": leader, "successor": target, "third": target % 3 + 1}[who]
        for delay in range(4):
            doing = asyncio.ensure_future(cluster.transfer_leadership("t", 0, to=target, timeout=3))
            for _ in range(delay):
                await asyncio.sleep(0)
            await cluster.kill(victim)
            begun = time.monotonic()
            with suppress(OttlaError):
                await doing
            assert time.monotonic() - begun < 3 + SLACK
            assert await cluster.leader("t") != victim
            await cluster.restart(victim)
            leader = await cluster.leader("t")
            target = leader % 3 + 1
            victim = {"leader": leader, "successor": target, "third": target % 3 + 1}[who]

    play(story)


def test_a_healthy_one_takes_over_as_before():
    async def story(cluster, _, target):
        await cluster.transfer_leadership("t", 0, to=target)
        assert await cluster.leader("t") == target
        await cluster.transfer_leadership("t", 0, to=target)

    play(story)
