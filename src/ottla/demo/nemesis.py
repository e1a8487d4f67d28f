"""The faults of a run: a table of them, and a plan of steps.

| fault | what happens | what the run shows |
|---|---|---|
| kill | signal 9 to the leader; it comes back on its disk | failovers, retries |
| isolate | the leader is cut off from its peers, not from clients | failovers, step-downs |
| pause | the leader is stopped (SIGSTOP) and later continued | failovers, step-downs |
| park | followers stop, connections are cut after the append | duplicates parked |
| answer | the same, but the batch is committed before clients reconnect | duplicates answered |
| gap | a raw idempotent producer leaves out sequence numbers | gaps refused |
| lose | clients write to a leader that is cut off; it comes back deposed | lost records |

Each step begins in a healthy cluster: every replica is in sync, every partition acknowledges, and
each is led by its preferred node. The seed decides the order of faults and their partitions.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.cluster.description import PartitionDescription
from ottla.broker.event_loop.native import monotonic_micros
from ottla.demo.probe import skip_a_sequence
from ottla.demo.settings import NODES, PARTITIONS, TOPIC, DemoSettings
from ottla.demo.stage import Deed, Stage
from ottla.demo.work import Work

PATIENCE = 15.0
"""Seconds to wait for something that must happen."""
HOLD_STOPPED = 0.3
"""Seconds for which followers stop: less than an election timeout, so that the leader stays."""
LOSE_WINDOW = 0.25
DOWN_LONGER = 0.3
"""Seconds for which a deposed leader stays away after its successor was elected."""
TRIES = 8


class MissingError(Exception):
    """Something that must happen did not happen; the text says what."""


class Scene(NamedTuple):
    """The cluster, the producers and the partition that a fault works on."""

    stage: Stage
    work: Work
    partition: int

    @property
    def cluster(self) -> AsyncCluster:
        """The cluster."""
        return self.stage.cluster


async def until(condition: Callable[[], bool], what: str) -> None:
    """Check the condition every 5 ms until it holds. Raises `MissingError` after `PATIENCE`
    seconds."""
    for _ in range(round(PATIENCE / 0.005)):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise MissingError(f"waited {PATIENCE:g} s in vain for {what}")


# --- faults that take a leader away ---------------------------------------------------------------


async def kill(scene: Scene) -> tuple[int, str]:
    """Signal 9 to the leader."""
    old = await scene.cluster.leader(TOPIC, scene.partition)
    await scene.cluster.kill(old)
    await _deposed(scene, old)
    await scene.cluster.restart(old)
    return old, f"kill leader {old}"


async def isolate(scene: Scene) -> tuple[int, str]:
    """Cut the leader off from its peers."""
    old = await scene.cluster.leader(TOPIC, scene.partition)
    scene.cluster.isolate(old)
    await _deposed(scene, old)
    scene.cluster.heal(old)
    return old, f"isolate leader {old}"


async def pause(scene: Scene) -> tuple[int, str]:
    """Stop the leader."""
    old = await scene.cluster.leader(TOPIC, scene.partition)
    scene.cluster.pause(old)
    await _deposed(scene, old)
    scene.cluster.resume(old)
    return old, f"pause leader {old}"


async def _deposed(scene: Scene, old: int) -> None:
    """Wait until no partition is led by `old`, and a little longer."""

    def deposed() -> bool:
        partitions = scene.cluster.describe().topics[TOPIC]
        return all(each.leader not in {0, old} for each in partitions)

    await until(deposed, f"new leaders after node {old}")
    await asyncio.sleep(DOWN_LONGER)


# --- faults that take answers away ----------------------------------------------------------------


async def park(scene: Scene) -> tuple[int, str]:
    """Cut connections while a batch is appended but cannot commit; go on after the retry."""
    counters = scene.cluster.counters
    return await _cut_after_append(scene, "park", lambda: counters.duplicates_parked, HOLD_STOPPED)


async def answer(scene: Scene) -> tuple[int, str]:
    """Cut connections after the append, and let the batch commit before the retry comes."""
    counters = scene.cluster.counters
    return await _cut_after_append(scene, "answer", lambda: counters.duplicates_answered, 0.0)


async def _cut_after_append(
    scene: Scene, fault: str, count: Callable[[], int], stopped: float
) -> tuple[int, str]:
    cluster = scene.cluster
    before = count()
    for _ in range(TRIES):
        leader = await cluster.leader(TOPIC, scene.partition)
        followers = [node for node in range(1, NODES + 1) if node != leader]
        for node in followers:
            cluster.pause(node)
        try:
            await _appended(scene, leader)
            cluster.cut_connections(leader)
            for _ in range(round(stopped / 0.01)):
                if count() > before:
                    break
                await asyncio.sleep(0.01)
        finally:
            for node in followers:
                cluster.resume(node)
        await asyncio.sleep(0.2)
        if count() > before:
            return leader, f"{fault}: followers stopped, connections of {leader} cut"
        await recovered(scene)
    raise MissingError(f"no retry met its original in {TRIES} tries ({fault})")


async def _appended(scene: Scene, leader: int) -> None:
    """Wait, at most 100 ms, until the leader holds entries that are not committed."""
    for _ in range(50):
        member = scene.cluster.describe().topics[TOPIC][scene.partition].members[leader]
        if member.last_index > member.commit_index:
            return
        await asyncio.sleep(0.002)


# --- a gap, and losing on purpose -----------------------------------------------------------------


async def gap(scene: Scene) -> tuple[int, str]:
    """Leave out sequence numbers; the broker must refuse the batch."""
    await skip_a_sequence(scene.cluster, scene.partition, scene.work.probe)
    return 0, "gap: a raw producer skips a sequence"


async def lose(scene: Scene) -> tuple[int, str]:
    """Let clients write to a leader that is cut off; then let its successor's log replace its own.

    In between, the writers rest, and the leadership is handed back before they go on. With acks=0 a
    client gets no answer that could say that the leader has moved (promise-P2).
    """
    cluster, work = scene.cluster, scene.work
    old = await cluster.leader(TOPIC, scene.partition)
    cluster.isolate(old)
    await asyncio.sleep(LOSE_WINDOW)
    work.hold()
    # Before it steps down by itself. It would refuse later records, and acks=0 gets no answer.
    await until(work.idle, "the writers to rest")
    await _deposed(scene, old)
    cluster.heal(old)
    await _all_caught_up(scene)
    await _hand_back(scene)
    work.release()
    return old, f"cut off leader {old}, clients write on"


FAULTS: dict[str, Callable[[Scene], Awaitable[tuple[int, str]]]] = {
    "kill": kill,
    "isolate": isolate,
    "pause": pause,
    "park": park,
    "answer": answer,
    "gap": gap,
    "lose": lose,
}
LEADER_FAULTS = ("kill", "isolate", "pause")
EXTRAS = ("answer", "park", "gap")


class Step(NamedTuple):
    """One fault on the leader of one partition."""

    fault: str
    partition: int


def plan(settings: DemoSettings) -> list[Step]:
    """The steps of a run: every kind of leader fault in turn, with the other faults in between."""
    chance = random.Random(settings.seed)
    if settings.acks != "all":
        return [Step("lose", number % PARTITIONS) for number in range(settings.leader_faults)]
    steps: list[Step] = []
    while len(steps) < settings.leader_faults:
        kinds = chance.sample(LEADER_FAULTS, len(LEADER_FAULTS))
        where = chance.sample(range(PARTITIONS), PARTITIONS)
        steps.extend(map(Step, kinds, where))
    del steps[settings.leader_faults :]
    for number, fault in enumerate(EXTRAS):
        steps.insert(1 + 2 * number, Step(fault, chance.randrange(PARTITIONS)))
    return steps


# --- carrying the plan out ------------------------------------------------------------------------


async def healthy(scene: Scene) -> None:
    """Wait until the cluster is healthy: every replica has everything committed, every partition
    has its preferred leader, and every writer is acknowledged there.

    Before the leadership is handed back, every writer must be acknowledged by the present leader.
    If librdkafka hears of another leader, and then of the old one again before it has reconnected,
    it stays with the wrong node for good (librdkafka #5593). On a slow machine, that once stopped a
    demo for 45 s.
    """
    await _all_caught_up(scene)
    await recovered(scene)
    await _hand_back(scene)
    await recovered(scene)


async def _all_caught_up(scene: Scene) -> None:
    def caught_up() -> bool:
        return all(_caught_up(each) for each in scene.cluster.describe().topics[TOPIC])

    await until(caught_up, "all replicas to catch up")


async def _hand_back(scene: Scene) -> None:
    """Transfer every partition to its preferred node."""
    cluster = scene.cluster
    for partition, image in enumerate(cluster.describe().topics[TOPIC]):
        if await cluster.leader(TOPIC, partition) != image.replicas[0]:
            await cluster.transfer_leadership(TOPIC, partition, image.replicas[0])


def _caught_up(partition: PartitionDescription) -> bool:
    leader = partition.members.get(partition.leader)
    return (
        leader is not None
        and len(partition.members) == NODES
        and all(
            each.term == leader.term and each.last_index >= leader.commit_index
            for each in partition.members.values()
        )
    )


async def recovered(scene: Scene) -> None:
    """Wait until every writer is acknowledged on every partition again."""
    work = scene.work
    before = work.acked()

    def waiting() -> list[tuple[str, int]]:
        return [lane for lane, count in work.acked().items() if count == before[lane]]

    try:
        await until(lambda: not waiting(), "every producer to be acknowledged on every partition")
    except MissingError as error:
        raise MissingError(f"{error}: {_those(scene, waiting())}") from None


def _those(scene: Scene, waiting: list[tuple[str, int]]) -> str:
    """Producers that wait for an acknowledgement, each with the leader of its partition."""
    partitions = scene.cluster.describe().topics[TOPIC]
    return ", ".join(
        f"not {producer} on partition {partition}, which node {partitions[partition].leader} "
        f"leads in term {partitions[partition].leader_epoch}"
        for producer, partition in waiting
    )


async def carry_out(stage: Stage, work: Work, steps: list[Step]) -> None:
    """Do one step after the other, and note each in `stage.deeds`. Raises `MissingError`."""
    for step in steps:
        scene = Scene(stage, work, step.partition)
        stage.now_doing = "healthy"
        await healthy(scene)
        await asyncio.sleep(0.1)
        stage.now_doing = f"{step.fault} on partition {step.partition}"
        at = monotonic_micros()
        node, text = await FAULTS[step.fault](scene)
        deed = Deed(at, monotonic_micros(), step.fault, step.partition, node, text)
        stage.deeds.append(deed)
    stage.now_doing = "done"
    scene = Scene(stage, work, 0)
    await healthy(scene)
