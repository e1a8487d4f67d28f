"""`Catalog`: the topics, partitions and producer ids that the controller's log says.

The catalog changes only by `Catalog.apply(index, command)`. It depends on nothing but the commands
and their log indexes, so every node that has applied the same entries has the same catalog, by
replay or by a snapshot, whatever its settings. For this, commands in the log are *resolved*
(`broker/controller/requests.py`): they have counts instead of defaults, and the nodes to choose
from.

* Partitions are Raft groups, numbered from 1 in the order of their creation. Numbers are never
  reused. So a group below `next_group` that belongs to no topic is deleted for good.
* A topic id is a hash of cluster id and log index: unique, and the same in every replay.
* Producer ids are given out in blocks, each to one node (`ottla.idempotency.id_blocks`).

`broker/controller/commands.py` has the commands. `PlacementCounts` places a topic without
assignments.

`by` is the origin of a command that may be sent again (`broker/controller/outcomes.py`). A request
for producer ids has no origin: if it comes twice, one block is lost, and no block is given out
twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import ClassVar

import msgpack

from ottla.broker.controller.commands import Logged, PlaceTopic, stored_config
from ottla.broker.controller.outcomes import Outcome, RecentOutcomes, refused
from ottla.broker.controller.placement import PlacementCounts
from ottla.broker.errors import ErrorCode, SnapshotFormatError
from ottla.broker.images import PartitionImage, TopicImage
from ottla.broker.turn.commands import AllocateProducerIds, DeleteTopic
from ottla.idempotency.id_blocks import IdBlocks
from ottla.log.types import Unpacked
from ottla.raft.types import GroupId, LogIndex, Matched

FIRST_PARTITION_GROUP: GroupId = 1
"""The group of the first partition; group 0 is the controller's."""
SNAPSHOT_FORMAT = 2
WITHOUT_RECENT = 1
"""An older format of snapshots, without recent outcomes. It is still read."""


def topic_id_at(cluster_id: str, index: LogIndex) -> bytes:
    """The id (16 bytes) of a topic that is created at this log index: a version 8 uuid (RFC 9562).

    No entry has index 0: its id is the answer to a request that only validates.
    """
    digest = bytearray(blake2b(f"{cluster_id}:{index}".encode(), digest_size=16).digest())
    digest[6] = digest[6] & 0x0F | 0x80
    digest[8] = digest[8] & 0x3F | 0x80
    return bytes(digest)


def collision_key(name: str) -> str:
    """Topic names with the same key collide, because Kafka's metrics write `.` as `_`."""
    return name.replace(".", "_")


class Catalog:
    """See the module's docstring."""

    def __init__(self, cluster_id: str) -> None:
        self.cluster_id = cluster_id
        self.version = 0
        """Rises by one with every command that changes something."""
        self.topics: dict[str, TopicImage] = {}
        """All topics by name, in the order of their creation."""
        self.next_group: GroupId = FIRST_PARTITION_GROUP
        self.id_blocks = IdBlocks()
        self.loads = PlacementCounts()
        self.recent = RecentOutcomes()
        self._groups: dict[GroupId, tuple[str, int]] = {}
        self._ids: dict[bytes, str] = {}
        self._collisions: dict[str, str] = {}

    # ---- reading

    def partition_of(self, group: GroupId) -> tuple[TopicImage, PartitionImage] | None:
        """The topic and the partition of a group; None if no topic has it (any more)."""
        place = self._groups.get(group)
        if place is None:
            return None
        topic = self.topics[place[0]]
        return topic, topic.partitions[place[1]]

    def deleted(self, group: GroupId) -> bool:
        """Whether this group existed and was deleted."""
        return FIRST_PARTITION_GROUP <= group < self.next_group and group not in self._groups

    def colliding(self, name: str) -> str | None:
        """The existing topic that equals `name` except for `.` and `_` (it may be `name`); or
        None."""
        return self._collisions.get(collision_key(name))

    def name_refused(self, name: str) -> Outcome | None:
        """The refusal if no topic can be created under this name now; None if one can."""
        if name in self.topics:
            return refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        other = self.colliding(name)
        if other is not None:
            text = f"Topic '{name}' collides with existing topic: {other}"
            return refused(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
        return None

    def find(self, name: str | None, topic_id: bytes | None) -> TopicImage | Outcome:
        """The topic of this id or, if that is None, of this name. The refusal if there is none."""
        if topic_id is None:
            topic = None if name is None else self.topics.get(name)
            text = "This server does not host this topic-partition."
            return topic or refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        known = self._ids.get(topic_id)
        if known is None:
            text = "This server does not host this topic ID."
            return refused(ErrorCode.UNKNOWN_TOPIC_ID, text)
        return self.topics[known]

    # ---- changing

    def apply(self, index: LogIndex, command: Logged) -> Outcome:
        """Apply the command at log `index` and return its outcome. A refused command changes
        nothing; nor does one that was decided before, which gets its first outcome again."""
        known = self.recent.find(command.by)
        if known is not None:
            return known[1]
        outcome = self.COMMANDS[type(command)](self, index, command)
        if outcome.error is ErrorCode.NONE:
            self.version += 1
        if command.by is not None:
            self.recent.add(command.by, index, outcome)
        return outcome

    def _create_topic(self, index: LogIndex, command: PlaceTopic) -> Outcome:
        name = command.name
        refusal = self.name_refused(name)
        if refusal is not None:
            return refusal
        placed = command.assignments
        if placed is None:
            count, factor = command.partitions, command.replication_factor
            placed = self.loads.place(command.nodes, count, factor, command.unheard)
        partitions = tuple(
            PartitionImage(number, self.next_group + number, replicas)
            for number, replicas in enumerate(placed)
        )
        self.next_group += len(partitions)
        topic_id = topic_id_at(self.cluster_id, index)
        topic = TopicImage(name, topic_id, partitions, dict(command.configs))
        self._add(topic)
        return Outcome(result=created(topic))

    def _delete_topic(self, _: LogIndex, command: DeleteTopic) -> Outcome:
        topic = self.find(command.name, command.topic_id)
        if isinstance(topic, Outcome):
            return topic
        del self.topics[topic.name]
        del self._ids[topic.topic_id]
        del self._collisions[collision_key(topic.name)]
        for partition in topic.partitions:
            del self._groups[partition.group]
            self.loads.remove(partition.replicas)
        return Outcome(result={"name": topic.name, "topic_id": topic.topic_id})

    def _allocate_producer_ids(self, _: LogIndex, command: AllocateProducerIds) -> Outcome:
        return Outcome(result=self.id_blocks.allocate(command.node)._asdict())

    COMMANDS: ClassVar[Mapping[type, Callable[[Catalog, LogIndex, Matched], Outcome]]] = {
        PlaceTopic: _create_topic,
        DeleteTopic: _delete_topic,
        AllocateProducerIds: _allocate_producer_ids,
    }
    """The function that applies each class of command."""

    def _add(self, topic: TopicImage) -> None:
        self.topics[topic.name] = topic
        self._ids[topic.topic_id] = topic.name
        self._collisions[collision_key(topic.name)] = topic.name
        for partition in topic.partitions:
            self._groups[partition.group] = (topic.name, partition.partition)
            self.loads.add(partition.replicas)

    # ---- snapshots

    def encode(self) -> bytes:
        """The whole catalog, for `decode`. Equal catalogs give equal bytes."""
        topics = [
            (
                topic.name,
                topic.topic_id,
                [(partition.group, partition.replicas) for partition in topic.partitions],
                sorted(topic.configs.items()),
            )
            for topic in self.topics.values()
        ]
        state = (SNAPSHOT_FORMAT, self.version, self.next_group, self.id_blocks.next_id, topics)
        packed: bytes = msgpack.packb((*state, self.recent.state()))
        return packed

    @classmethod
    def decode(cls, cluster_id: str, data: bytes) -> Catalog:
        """The catalog that `encode` wrote. Raises `SnapshotFormatError` for another format."""
        state = msgpack.unpackb(data)
        if state[0] not in {WITHOUT_RECENT, SNAPSHOT_FORMAT}:
            text = f"controller snapshot has format {state[0]}, this Ottla reads 1 and 2"
            raise SnapshotFormatError(text)
        catalog = cls(cluster_id)
        _, catalog.version, catalog.next_group, catalog.id_blocks.next_id, topics, *recent = state
        catalog.recent = RecentOutcomes.restored(recent[0] if recent else ())
        for name, topic_id, partitions, configs in topics:
            images = tuple(
                PartitionImage(number, group, tuple(map(int, replicas)))
                for number, (group, replicas) in enumerate(partitions)
            )
            stored = {each: stored_config(value) for each, value in configs}
            catalog._add(TopicImage(name, topic_id, images, stored))
        return catalog


def created(topic: TopicImage) -> dict[str, Unpacked]:
    """The answer to create_topic."""
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "partitions": len(topic.partitions),
        "replication_factor": len(topic.partitions[0].replicas),
    }
