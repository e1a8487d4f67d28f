"""Three real nodes and real aiokafka clients on the deterministic loop, while something fails.

`python -m sim_asyncio_cluster SEED [--without KIND]` prints what became of a run, as JSON, in a
process of its own; `--without` leaves out the patches of a kind.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.topics.topic import Topic
from ottla.sim.asyncio_runs.clockwork import LoopClockwork, LoopPort
from ottla.sim.asyncio_runs.event_loop import DeterministicLoop
from ottla.sim.asyncio_runs.network import StreamNetwork
from ottla.sim.asyncio_runs.outside import PATCHES, Patch
from ottla.sim.asyncio_runs.policies import Policy, shuffled
from ottla.sim.asyncio_runs.run import Outcome, run
from ottla.sim.chance.choices import Choices

TOPIC = "orders"
PARTITIONS = 2
CLIENT = {"request_timeout_ms": 2000, "retry_backoff_ms": 50, "metadata_max_age_ms": 2000}
UNACKNOWLEDGED = 100
"""Records that the program hands to the producer before it waits."""
PACE_SECONDS = 0.02
"""Between ten records and the next ten."""
DRAIN_SECONDS = 120


@dataclass
class World:
    """A run, as a fault sees it."""

    loop: DeterministicLoop
    cluster: AsyncCluster
    records: int
    sent: int = 0
    acknowledged: dict[int, int] = field(default_factory=dict)
    """Offset of each record, by its value."""
    consumed: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Offset and value of what was read, by partition, in the order in which it came."""
    story: list[Any] = field(default_factory=list)
    _milestone: int = 0
    _reached: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def network(self) -> StreamNetwork:
        """Between clients and nodes."""
        assert isinstance(self.loop.network, StreamNetwork)
        return self.loop.network

    async def leader(self) -> int:
        """Who leads the first partition."""
        return await self.cluster.leader(TOPIC, 0)

    def address(self, node: int) -> str:
        """As rules of the network name it."""
        return "{}:{}".format(*self.cluster.addresses[node])

    async def until_sent(self, share: float) -> None:
        """Until that share of the records has been handed to the producer."""
        self._milestone = math.ceil(share * self.records)
        self._reached = asyncio.Event()
        if self.sent < self._milestone:
            await self._reached.wait()

    def count_sent(self) -> None:
        """One more."""
        self.sent += 1
        if self.sent == self._milestone:
            self._reached.set()


Fault: TypeAlias = Callable[[World], Awaitable[None]]


async def kill_the_leader(world: World) -> None:
    """In the middle; it comes back, and its successor has to go as well."""
    for share in (0.3, 0.6):
        await world.until_sent(share)
        leader = await world.leader()
        before = len(world.acknowledged)
        await world.cluster.kill(leader)
        successor = await world.leader()
        world.story.append((leader, before, successor))
        await asyncio.sleep(0.1)
        await world.cluster.restart(leader)


async def cut_the_leader_off(world: World) -> None:
    """From the producer, first one way, then the other; the cluster goes on without noticing."""
    for share, turned in ((0.3, False), (0.6, True)):
        await world.until_sent(share)
        way = ("producer", world.address(await world.leader()))
        world.network.cut(*(reversed(way) if turned else way))
        await asyncio.sleep(5)
        world.network.heal()
        world.story.append((way[1], turned, len(world.acknowledged)))


async def reset_connections(world: World) -> None:
    """Whatever is under way is lost, again and again."""
    for tenth in range(1, 10):
        await world.until_sent(tenth / 10)
        world.story.append(world.network.reset("*", world.address(await world.leader())))


async def nothing(_: World) -> None:
    """A quiet day."""


async def _produce(world: World) -> None:
    with world.network.at("producer"):
        producer = AIOKafkaProducer(
            bootstrap_servers=world.cluster.bootstrap_servers,
            enable_idempotence=True,
            acks="all",
            linger_ms=1,
            **CLIENT,
        )
        await producer.start()

    room = asyncio.Semaphore(UNACKNOWLEDGED)

    async def acknowledged(value: int, answer: Awaitable[Any]) -> None:
        world.acknowledged[value] = (await answer).offset
        room.release()

    async with asyncio.TaskGroup() as answers:
        for value in range(world.records):
            await room.acquire()
            partition = value % PARTITIONS
            answer = await producer.send(TOPIC, b"%d" % value, partition=partition)
            answers.create_task(acknowledged(value, answer))
            world.count_sent()
            if value % 10 == 9:
                await asyncio.sleep(PACE_SECONDS)
    await producer.stop()


async def _consume(world: World) -> None:
    with world.network.at("consumer"):
        consumer = AIOKafkaConsumer(
            bootstrap_servers=world.cluster.bootstrap_servers, fetch_max_wait_ms=100, **CLIENT
        )
        await consumer.start()
    partitions = [TopicPartition(TOPIC, each) for each in range(PARTITIONS)]
    consumer.assign(partitions)
    await consumer.seek_to_beginning(*partitions)
    async with asyncio.timeout(DRAIN_SECONDS):
        while sum(map(len, world.consumed.values())) < world.records:
            message = await consumer.getone()
            found = world.consumed.setdefault(message.partition, [])
            found.append((message.offset, int(message.value)))
    # Nothing comes behind: a record stored twice would.
    try:
        raise AssertionError(f"stored twice: {await asyncio.wait_for(consumer.getone(), 5)}")
    except TimeoutError:
        await consumer.stop()


def program(
    fault: Fault, records: int, **settings: Any
) -> Callable[[DeterministicLoop], Awaitable[World]]:
    """Write, read, and let something fail meanwhile."""

    async def main(loop: DeterministicLoop) -> World:
        cluster = AsyncCluster(
            3,
            topics=[Topic(TOPIC, PARTITIONS)],
            clockwork=lambda _: LoopClockwork(loop),
            open_port=LoopPort,
            seed=loop.choices.stream("cluster").below(1 << 30),
            **{"link_delay_ms": 1, **settings},
        )
        await cluster.start()
        world = World(loop, cluster, records)
        async with asyncio.TaskGroup() as group:
            for each in (_produce(world), _consume(world), fault(world)):
                group.create_task(each)  # type: ignore[arg-type] # a coroutine, all three
        await cluster.stop()
        return world

    return main


def simulate(
    seed: Choices | int,
    fault: Fault = kill_the_leader,
    *,
    records: int = 1000,
    policy: Policy = shuffled,
    keep_trace: bool = False,
    patches: Sequence[Patch] = PATCHES,
    **settings: Any,
) -> Outcome[World]:
    """One run."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    return run(
        program(fault, records, **settings),  # type: ignore[arg-type] # an async function
        seed=seed,
        policy=policy,
        keep_trace=keep_trace,
        patches=patches,
        jitter=200,
        chop_ppm=50_000,
    )


def exactly_once_in_order(world: World) -> None:
    """Every record stands in its partition once, in order, where its producer was told."""
    for partition in range(PARTITIONS):
        values = list(range(partition, world.records, PARTITIONS))
        assert [value for _, value in world.consumed[partition]] == values
        for offset, value in world.consumed[partition]:
            assert world.acknowledged[value] == offset
    assert len(world.acknowledged) == world.records


def main(arguments: list[str]) -> None:
    """See the module's text."""
    left_out = arguments[arguments.index("--without") + 1] if "--without" in arguments else ""
    patches = [each for each in PATCHES if each.name not in left_out.split(",")]
    outcome = simulate(int(arguments[0]), patches=patches)
    exactly_once_in_order(outcome.result)
    told = {"digest": outcome.digest, "steps": outcome.steps, "micros": outcome.micros}
    json.dump({**told, "story": outcome.result.story}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
