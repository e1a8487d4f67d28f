"""What nodes know of the extra topics at the end (sim-I48).

Within the bound all nodes must know the same topics, and have exactly the replicas that are placed
on them, and each partition must have a leader. Nothing is raised here: the state becomes rows,
which the judge checks.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.broker.controller.controller import CONTROLLER_GROUP
from ottla.broker.images import PartitionImage
from ottla.raft.quorum import majority
from ottla.raft.types import GroupId
from ottla.sim.clients.own_topic import OWN_TOPICS
from ottla.sim.clients.topic_requests import is_numbered, number_of
from ottla.sim.world.frames import TOPIC
from ottla.sim.world.life import Life
from ottla.sim.world.world import World


def agreed(world: World) -> bool:
    """Whether all nodes know the same topics, each has exactly what is placed on it, and each
    partition that can have a leader has one."""
    lives = _lives(world)
    known = [dict(life.node.topics()) for life in lives]
    return (
        all(each == known[0] for each in known)
        and not any(
            _unserved(life, name) or _leftovers(life) for life in lives for name in known[0]
        )
        and not any(_unled(world))
    )


def note_topics(world: World) -> None:
    """A row for each topic that each node knows, for leftovers of deleted topics, and for each
    partition without a leader."""
    note = world.history.add
    for life in _lives(world):
        node, inc = life.node_id, life.inc
        note("topic", node=node, inc=inc, code="listed")
        for name, image in life.node.topics().items():
            code = "unserved" if _unserved(life, name) else "known"
            number = _number(world, name)
            if name != TOPIC and (code != "known" or number):
                count = len(image.partitions)
                note("topic", node=node, inc=inc, op=number, code=code, aux=count)
        for group in _leftovers(life):
            note("topic", node=node, inc=inc, code="leftover", log_index=group)
    for number, part in _unled(world):
        note("topic", op=number, partition=part.partition, code="unled")


def _lives(world: World) -> list[Life]:
    return [world.lives[node] for node in world.able if node in world.lives]


def _unserved(life: Life, name: str) -> bool:
    """Whether the node lacks a replica of a topic that it should have."""
    return any(
        life.node_id in image.replicas and life.node.replica(name, image.partition) is None
        for image in life.node.topics()[name].partitions
    )


def _leftovers(life: Life) -> list[GroupId]:
    """Groups on its disk that belong to no topic."""
    topics = life.node.topics().values()
    groups = {CONTROLLER_GROUP, *(each.group for image in topics for each in image.partitions)}
    return [each.group for each in life.store.groups() if each.group not in groups]


def _unled(world: World) -> Iterator[tuple[int, PartitionImage]]:
    """Partitions without a leader, of those that could have one: nodes that lost their disk do not
    come back."""
    lives = _lives(world)
    there = {life.node_id for life in lives}
    leading = {
        replica.group
        for life in lives
        for replica in life.view.replicas()
        if replica.partition is not None and replica.partition.serves
    }
    for name, image in lives[0].node.topics().items() if lives else ():
        for each in image.partitions if name != TOPIC else ():
            able = sum(node in there for node in each.replicas)
            if able >= majority(len(each.replicas)) and each.group not in leading:
                yield _number(world, name), each


def _number(world: World, name: str) -> int:
    """What rows call a topic; 0 is one of the sequential client, or of a client of a plugin."""
    of_plugin = bool(world.config.plugins) and not is_numbered(name)
    return 0 if of_plugin or name == TOPIC or name in OWN_TOPICS else number_of(name)
