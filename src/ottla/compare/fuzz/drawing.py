"""Draws sequences of requests: topics, and steps that stay near what the log of each has.

**A sequence** is a case of some dozen steps, with topics of its own. The n-th one of a seed depends
on the two numbers alone, and on which versions both brokers serve. `t` has two partitions and no
configs; `u` has a config that was drawn; `x` is no topic.

**A step** is drawn from `STEPS`, with parameters that a model of the log proposes
(`ottla.compare.fuzz.model`): offsets at and around the ends, sequences at and around the next one.
What differs from broker to broker stays a reference: an id of a producer (`$id.producer_id`) and
leader epochs (`$leaders...`), which two steps at the beginning ask for. After that no step depends
on an answer.

**What is never drawn**, because it would say nothing or take long: null records (Kafka falls
silent; a case shows it), fetches that wait, transactions, sessions of Fetch, topics that are made
and used at once, times long ago for a producer's batches (Kafka would forget it meanwhile), the
largest time of a log whose beginning is deleted (Kafka may name a record that is gone) or whose
records the broker stamps (two of one millisecond here are of two there).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ottla.compare.fuzz import others, reads, writes
from ottla.compare.fuzz.batches import HOUR_MS, SMALL_LIMIT
from ottla.compare.fuzz.dice import Dice
from ottla.compare.fuzz.sketch import Sketch, Steps, sketch_of
from ottla.compare.fuzz.world import ABSENT, World
from ottla.sim.chance.choices import Drawn

LENGTHS = (20, 60, 100, 150)
"""Steps of a sequence."""
MOST_PIPELINED = 8
"""Requests in one write."""
CONFIGS: tuple[dict[str, str], ...] = (
    {},
    {"message.timestamp.type": "LogAppendTime"},
    {"max.message.bytes": str(SMALL_LIMIT)},
    {"min.insync.replicas": "2"},
    {"message.timestamp.before.max.ms": str(HOUR_MS)},
    {"message.timestamp.after.max.ms": "60000"},
)
"""What the second topic of a sequence may be like."""
_PRODUCERS = (1_000_000_007, 1_000_000_008, 1_000_000_009)
"""Ids of producers that no broker gives so soon: `$id` must not be one of them."""
_FIRST = 5
"""How often the first producer is drawn when each of the others is drawn once: what is remembered
of a producer matters only once it has stored some batches in one place."""
_Draw: TypeAlias = Callable[[World], dict[str, Any]]
STEPS: tuple[tuple[int, str, _Draw], ...] = (
    (60, "produce", writes.produce),
    (8, "produce", writes.produce_several),
    (1, "produce", writes.produce_nowhere),
    (10, "list_offsets", reads.list_offsets),
    (14, "fetch", reads.fetch),
    (3, "offset_for_leader_epoch", reads.leader_epoch),
    (2, "delete_records", reads.delete_records),
    (2, "metadata", others.metadata),
    (2, "create_topics", others.create_topics),
    (1, "delete_topics", others.delete_topics),
    (2, "init_producer_id", others.init_producer_id),
    (1, "api_versions", others.api_versions),
    (1, "describe_cluster", others.describe_cluster),
    (1, "list_offsets", others.frame),
)
"""How often each kind of step is drawn, the API that both brokers must serve, and who draws it."""


def draw_sequence(seed: int, number: int, served: Mapping[str, tuple[int, int]]) -> Sketch:
    """The sequence of that number, from 1. `served`: the versions that both brokers serve, by
    API."""
    dice = Dice(Drawn(seed).stream(f"sequence {number}"))
    world = World(dice, served)
    configs = dice.pick(CONFIGS)
    topics = {"t": {"partitions": 2}, "u": {"configs": configs} if configs else {}}
    world.stamped = configs.get("message.timestamp.type") == "LogAppendTime"
    steps = _opening(world)
    opened, length, group = len(steps), dice.pick(LENGTHS), 1
    table = [(weight, draw) for weight, api, draw in STEPS if world.serves(api)]
    while len(steps) < length:
        step = dice.weighed(table)(world)
        pipelined = len(steps) > opened and group < MOST_PIPELINED and dice.one_in(3)
        group = group + 1 if pipelined else 1
        if pipelined:
            step["pipelined"] = True
        # What is written at once goes over one connection: of two nobody knows which is first.
        other = steps[-1].get("connection") == "b" if pipelined else dice.one_in(10)
        if other:
            step["connection"] = "b"
        steps.append(step)
    return sketch_of(f"Sequence {number} of seed {seed}", topics, [ABSENT], steps)


def _opening(world: World) -> Steps:
    """The steps that later ones refer to."""
    steps: Steps = []
    world.producers = _PRODUCERS[:1] * _FIRST + _PRODUCERS[1:]
    if world.serves("init_producer_id") and world.dice.one_in(2):
        steps.append({"name": "id", "init_producer_id": {}})
        world.producers = ("$id.producer_id",) * _FIRST + _PRODUCERS
    if world.serves("metadata") and world.dice.one_in(2):
        steps.append({"name": "leaders", "metadata": {"topics": ["t", "u"]}})
        world.knows_epochs = True
    return steps
